"""The passes of binary bracketings (CKY), in PyTorch operations: the reference on any device.

A span of width w covers the w + 1 words i .. j = i + w and has w splits: at u its left part is
i .. i + u, its right part i + u + 1 .. j.

    inside    a[i, j]    = s[i, j] + log sum_u exp( a[i, i+u] + a[i+u+1, j] ),      a[i, i] = s[i, i]
    weights   q[u, i, j] = exp( a[i, i+u] + a[i+u+1, j] + s[i, j] - a[i, j] )  =  p( split u | span )
    outside   m[i, i+u] and m[i+u+1, j] receive q[u, i, j] m[i, j], from the widest span down
    tangent   the derivative of m: two linear recursions over the same q

The labels of a span are summed before the recursion (s = log sum_l exp s_l). Afterwards, the softmax
over the labels distributes its probability. The inside recursion is in float64, so a wide range of scores costs no accuracy. The weights
are probabilities; they and all later results have the dtype of the result. Before the recursion, the real
words of a sentence are moved to its end. Padding and entries below the diagonal are never read.

Axes: B batch, n words, L labels, H = sum_w w (n - w) splits of all spans. Charts have the batch
last: a step is then a few operations on long blocks of memory.
References: Baker 1979 (inside-outside); Mensch & Blondel 2018, section 3.2 (tangents).
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .._compaction import order, places, take
from .._derivatives import Solved, Tensors
from .._precision import result_dtype
from .._recursions import keep, softmax_or_zero


def sum_labels(
    spans: Float[Tensor, "B n n L"], mask: Bool[Tensor, "B n"] | None
) -> tuple[Float[Tensor, "B n n"], Float[Tensor, "#B #n #n L"]]:
    """Compute log sum_l exp s_l, and p(label | span), 0 if every label is forbidden."""
    dtype = result_dtype(spans)
    if spans.shape[-1] == 1:
        return spans.squeeze(-1), spans.new_ones(1, 1, 1, 1, dtype=dtype)
    wide = keep(spans, read_spans(spans, mask)).double()
    return wide.logsumexp(-1), softmax_or_zero(wide, dtype)


def read_spans(
    square: Float[Tensor, "B n n ..."], mask: Bool[Tensor, "B n"] | None
) -> Bool[Tensor, "#B n n"]:
    """Return True on the spans of real words, the only ones that bracketings read."""
    upper = square.new_ones(square.shape[1:3], dtype=torch.bool).triu().unsqueeze(0)
    return upper if mask is None else upper & mask.unsqueeze(-1) & mask.unsqueeze(-2)


def to_chart(
    square: Float[Tensor, "B n n"], mask: Bool[Tensor, "B n"] | None, dtype: torch.dtype
) -> Float[Tensor, "n n B"]:
    """Copy to a new chart, with padding before the real words and 0 on padding."""
    if mask is not None:
        square = keep(square, mask.unsqueeze(-1) & mask.unsqueeze(-2))
        index = order(mask)
        square = take(take(square, index), index, axis=2)
    chart = square.permute(1, 2, 0)
    return torch.empty_like(chart, dtype=dtype, memory_format=torch.contiguous_format).copy_(chart)


def _from_chart(
    chart: Float[Tensor, "n n B"], mask: Bool[Tensor, "B n"] | None
) -> Float[Tensor, "B n n"]:
    """Convert a chart to the layout of the potentials, with 0 on padding."""
    square = chart.permute(2, 0, 1).contiguous()
    if mask is None:
        return square
    index = places(mask)
    return keep(take(take(square, index), index, axis=2), mask.unsqueeze(-1) & mask.unsqueeze(-2))


def spans_of(chart: Tensor, width: int) -> Tensor:
    """Return the spans of a width, as a view (n - w, B) of a contiguous chart (n, n, B)."""
    num_words, _, batch = chart.shape
    return chart.as_strided((num_words - width, batch), ((num_words + 1) * batch, 1), width * batch)


def parts(chart: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the left and right parts of all splits of the spans of a width: views (w, n - w, B)."""
    num_words, _, batch = chart.shape
    size, diagonal = (width, num_words - width, batch), (num_words + 1) * batch
    left = chart.as_strided(size, (batch, diagonal, 1))
    right = chart.as_strided(size, (num_words * batch, diagonal, 1), (num_words + width) * batch)
    return left, right


def split_blocks(weights: Tensor, num_words: int) -> list[Tensor]:
    """Return the weights (w, n - w, B) of every width, w = 0 first."""
    sizes = [(width, num_words - width) for width in range(num_words)]
    blocks = weights.split([width * count for width, count in sizes])
    return [block.view(*size, weights.shape[-1]) for block, size in zip(blocks, sizes, strict=True)]


def inside(
    chart: Float[Tensor, "n n B"], dtype: torch.dtype, *, keep_weights: bool = True
) -> Float[Tensor, "H B"]:
    """Replace the scores in a chart by inside scores, in place. Return p(split | span), 0 for an
    impossible span; or an empty tensor if `keep_weights` is False.
    """
    num_words, _, batch = chart.shape
    num_splits = num_words * (num_words**2 - 1) // 6
    weights = chart.new_empty(num_splits if keep_weights else 0, batch, dtype=dtype)
    splits = split_blocks(weights, num_words) if keep_weights else []
    lowest = torch.finfo(chart.dtype).min
    for width in range(1, num_words):
        left, right = parts(chart, width)
        joined = left + right
        # If all are -inf, subtract a finite number: -inf - -inf would be NaN.
        highest = joined.amax(0).clamp(lowest)
        exps = joined.sub_(highest).exp_()
        total = exps.sum(0)
        spans_of(chart, width).add_(highest).add_(total.log())
        if keep_weights:
            # The highest split adds exp(0), so a total below 1 is 0: no split is possible.
            splits[width].copy_(exps.div_(total.clamp(1.0)))
    return weights


def _whole(chart: Float[Tensor, "n n B"], mask: Tensor | None) -> Float[Tensor, " B"]:
    """Return log Z from a chart of inside scores."""
    if mask is None:
        return chart[0, -1]
    lengths = mask.sum(-1)
    first = (len(chart) - lengths).clamp(max=len(chart) - 1).unsqueeze(0)
    # The empty sentence has one bracketing, of score 0.
    return torch.where(lengths == 0, 0.0, chart[:, -1].gather(0, first).squeeze(0))


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z: O(n^3) work, O(n^2) memory."""
    (spans,) = potentials
    chart = to_chart(sum_labels(spans, mask)[0], mask, torch.float64)
    inside(chart, chart.dtype, keep_weights=False)
    return _whole(chart, mask).to(result_dtype(spans))


def solve(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Solved:
    """Compute log Z, split weights (H, B), label weights (B, n, n, L), and the probability (n, B) that
    the sentence starts at each word: 1 or 0; all 0 if no bracketing is possible.
    """
    (spans,) = potentials
    dtype = result_dtype(spans)
    totals, labels = sum_labels(spans, mask)
    chart = to_chart(totals, mask, torch.float64)
    weights = inside(chart, dtype)
    log_partition = _whole(chart, mask)
    words = torch.arange(len(chart), device=chart.device).unsqueeze(-1)
    first = 0 if mask is None else len(chart) - mask.sum(-1)
    whole = (words == first) & (log_partition > -torch.inf)
    return Solved(log_partition.to(dtype), (weights, labels, whole.to(dtype)))


def marginals(saved: Tensors, mask: Bool[Tensor, "B n"] | None) -> tuple[Tensors, Tensors]:
    """Compute the span marginals (B, n, n, L)."""
    weights, labels, whole = saved
    nodes = outside(weights, whole)
    found = labels * _from_chart(nodes, mask).unsqueeze(-1)
    return (found,), (weights.view_as(weights), labels.view_as(labels), nodes)


def outside(weights: Float[Tensor, "H B"], whole: Float[Tensor, "n B"]) -> Float[Tensor, "n n B"]:
    """Compute the probability of each span, from the whole sentence down."""
    num_words, batch = whole.shape
    nodes = whole.new_zeros(num_words, num_words, batch)
    nodes[:, -1].copy_(whole)
    splits = split_blocks(weights, num_words)
    for width in range(num_words - 1, 0, -1):
        passed = splits[width] * spans_of(nodes, width)
        for part in parts(nodes, width):
            part.add_(passed)
    # A word is a span of every bracketing: set its probability to exactly 1.
    spans_of(nodes, 0).copy_(whole.cumsum(0))
    return nodes


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B n"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivative of the span marginals, in the layout of the marginals."""
    del wanted  # the only potential always needs its gradient
    weights, labels, nodes = saved
    (direction,) = directions
    assert direction is not None
    on_labels = keep(direction.to(nodes.dtype), read_spans(direction, mask))
    on_spans = (labels * on_labels).sum(-1)
    along = push(weights, nodes, to_chart(on_spans, mask, nodes.dtype))
    along = _from_chart(along, mask).unsqueeze(-1)
    if direction.shape[-1] == 1:
        return (along,)
    shares = _from_chart(nodes, mask).unsqueeze(-1) * (on_labels - on_spans.unsqueeze(-1))
    return (labels * (along + shares),)


def push(
    weights: Float[Tensor, "H B"], nodes: Float[Tensor, "n n B"], direction: Float[Tensor, "n n B"]
) -> Float[Tensor, "n n B"]:
    """Compute the derivative of the span marginals along a direction g in the span scores.

    With G(tree) the sum of g over the spans of a tree, the derivative is Cov(span, G). It takes two
    recursions that are linear in q and need neither exp nor division:

        below[i, j] = E[ G below the span | span ] = sum_u q[u] joined[u]
        joined[u]   = (g + below) of the left part + (g + below) of the right part
        m' of both parts receives q[u] ( m' + m (joined[u] - below) )

    Every tree contains all words: their g adds a constant to G and is left out. All trees have the
    same number of wider spans, so subtracting a constant from their g changes nothing. The constant
    that makes E[G] = 0 keeps the numbers small.
    """
    num_words = len(nodes)
    splits = split_blocks(weights, num_words)
    wider = direction.new_ones(num_words, num_words).triu(1).unsqueeze(-1)
    total = (nodes * wider).sum((0, 1))
    mean = (nodes * direction * wider).sum((0, 1)) / total.clamp(min=1.0)  # 0 / 0: no wider span
    chart = (direction - mean) * wider
    joined, below = [chart], [chart]
    for width in range(1, num_words):
        left, right = parts(chart, width)
        joined.append(left + right)
        below.append((splits[width] * joined[-1]).sum(0))
        spans_of(chart, width).add_(below[-1])

    along = torch.zeros_like(chart)
    for width in range(num_words - 1, 0, -1):
        probability = nodes.diagonal(width).T  # `nodes` may have any strides
        change = torch.addcmul(spans_of(along, width), below[width], probability, value=-1)
        passed = torch.addcmul(change, joined[width], probability).mul_(splits[width])
        for part in parts(along, width):
            part.add_(passed)
    # The probability of a word is constant.
    spans_of(along, 0).zero_()
    return along
