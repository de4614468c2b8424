"""How large are the errors of the marginals of trees, and of gradients through them?

As for chains (see `accuracy`), the exact values come from float64 autograd through a plain log-space
recursion, and the inputs are float32: scores of U(-50, 50) over eighty words, and the case of a bug report
about far too large gradients in torch-struct, harvardnlp/pytorch-struct#72.
"""

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from foveal.distributions import ProjectiveTree, SpanTree

from .accuracy import (
    GRADIENT_TARGET,
    SEEDS,
    answer,
    error_rows,
    errors_of,
    largest_difference,
)
from .cases import US
from .results import Row
from .tree_peers import (
    between_fence_posts,
    one_label,
    root_on_diagonal,
    supar_projective,
    supar_spans,
    torch_struct_projective,
    torch_struct_spans,
    word_first,
)

BATCH, WORDS = 2, 80
WORDS_OF_ISSUE_72 = 50


def rows() -> Iterator[Row]:
    """Yield all accuracy rows of trees."""
    yield from _large_scores(
        "projective tree",
        WORDS + 1,
        _true_arc_marginals,
        {
            US: _our_arc_marginals,
            "torch-struct": lambda arcs: _root_in_row(
                torch_struct_projective(root_on_diagonal(arcs)).marginals()
            ),
            "supar": lambda arcs: supar_projective(word_first(arcs)).marginals().transpose(-1, -2),
        },
    )
    yield from _large_scores(
        "span tree",
        WORDS,
        _true_span_marginals,
        {
            US: lambda spans: SpanTree(spans).marginals(),
            "torch-struct": lambda spans: torch_struct_spans(one_label(spans)).marginals()[..., 0],
            "supar": lambda spans: supar_spans(between_fence_posts(spans)).marginals()[:, :-1, 1:],
        },
    )
    yield from issue_72()


def issue_72() -> Iterator[Row]:
    """Arcs of N(0, 1) over fifty words, with an upstream gradient uniform on [0, 1).

    No exact gradient is much above 0.2; the report has 19.6 for torch-struct of its time.
    """
    size = WORDS_OF_ISSUE_72 + 1
    torch.manual_seed(0)
    arcs, upstream = torch.randn(BATCH, size, size), torch.rand(BATCH, size, size)
    truth = answer(_true_arc_marginals, arcs.double(), upstream.double()).gradient
    ours = answer(_our_arc_marginals, arcs, upstream).gradient
    theirs = answer(
        lambda scores: torch_struct_projective(scores).marginals(),
        root_on_diagonal(arcs),
        root_on_diagonal(upstream),
    ).gradient
    for name, gradient in (("float64", truth), (US, ours), ("torch-struct", theirs)):
        yield Row(
            name=f"projective tree largest gradient, pytorch-struct#72, {name}",
            value=gradient.abs().max().item(),
            unit="largest absolute value",
            seeds=(0,),
        )
    for name, error in (
        (US, largest_difference(ours, truth)),
        ("torch-struct", largest_difference(theirs, root_on_diagonal(truth))),
    ):
        yield Row(
            name=f"projective tree gradient error, pytorch-struct#72, {name}",
            value=error,
            unit="largest absolute error",
            seeds=(0,),
            target=GRADIENT_TARGET if name == US else None,
            sense="<=" if name == US else None,
        )


def _large_scores(
    family: str,
    size: int,
    truth_of: Callable[[Tensor], Tensor],
    libraries: Mapping[str, Callable[[Tensor], Tensor]],
) -> Iterator[Row]:
    """Scores of U(-50, 50); the marginals of every library are converted to our layout."""
    errors: dict[str, list[tuple[float, float]]] = {name: [] for name in libraries}
    for seed in SEEDS:
        torch.manual_seed(seed)
        scores = torch.rand(BATCH, size, size) * 100 - 50
        weights = torch.randn_like(scores)
        truth = answer(truth_of, scores.double(), weights.double())
        for name, marginals in libraries.items():
            errors[name].append(errors_of(answer(marginals, scores, weights), truth))
    yield from error_rows(family, (BATCH, WORDS), errors)


def _our_arc_marginals(arcs: Tensor) -> Tensor:
    return ProjectiveTree(arcs, single_root=False).marginals()


def _root_in_row(scores: Tensor) -> Tensor:
    """Convert torch-struct's layout to ours: the diagonal becomes row 0."""
    roots = scores.diagonal(dim1=-2, dim2=-1)
    words = torch.diagonal_scatter(scores, torch.zeros_like(roots), dim1=-2, dim2=-1)
    rows = torch.cat([roots.unsqueeze(-2), words], -2)
    return torch.nn.functional.pad(rows, (1, 0))


def _true_arc_marginals(arcs: Tensor) -> Tensor:
    log_partition = projective_log_partition(arcs).sum()
    return torch.autograd.grad(log_partition, arcs, create_graph=True)[0]


def _true_span_marginals(spans: Tensor) -> Tensor:
    log_partition = span_log_partition(spans).sum()
    return torch.autograd.grad(log_partition, spans, create_graph=True)[0]


def projective_log_partition(arcs: Tensor) -> Tensor:
    """Eisner's recursion, (B,) from arcs (B, n+1, n+1), any number of roots.

    Lists by width; the item at i of width w covers i to i + w. A triangle is headed by its left or its right
    end; a trapezoid is headed the same way and has an arc from end to end.
    """
    last = arcs.shape[-1] - 1
    left = [arcs.new_zeros(arcs.shape[:-1])]  # triangles headed by their left end
    right = [arcs.new_zeros(arcs.shape[:-1])]
    left_arc, right_arc = [left[0]], [right[0]]  # width 0 is never used
    for width in range(1, last + 1):
        count = last + 1 - width
        both = _sum_over_splits(
            [
                left[split][:, :count] + right[width - 1 - split][:, split + 1 :][:, :count]
                for split in range(width)
            ]
        )
        left_arc.append(both + arcs.diagonal(width, -2, -1))
        right_arc.append(both + arcs.diagonal(-width, -2, -1))
        left.append(
            _sum_over_splits(
                [
                    left_arc[split][:, :count] + left[width - split][:, split:][:, :count]
                    for split in range(1, width + 1)
                ]
            )
        )
        right.append(
            _sum_over_splits(
                [
                    right[split][:, :count] + right_arc[width - split][:, split:][:, :count]
                    for split in range(width)
                ]
            )
        )
    return left[last][:, 0]


def span_log_partition(spans: Tensor) -> Tensor:
    """CKY, (B,) from spans (B, n, n). A list by width; the item at i covers i to i + width."""
    num_words = spans.shape[-1]
    inside = [spans.diagonal(0, -2, -1)]
    for width in range(1, num_words):
        count = num_words - width
        split_sum = _sum_over_splits(
            [
                inside[split][:, :count] + inside[width - 1 - split][:, split + 1 :][:, :count]
                for split in range(width)
            ]
        )
        inside.append(split_sum + spans.diagonal(width, -2, -1))
    return inside[-1][:, 0]


def _sum_over_splits(splits: list[Tensor]) -> Tensor:
    return torch.logsumexp(torch.stack(splits), dim=0)
