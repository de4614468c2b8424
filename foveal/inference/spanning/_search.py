"""The best spanning trees, and exact samples.

Best: each component, initially one word, takes its best incoming arc. Components on a cycle are
merged, and the score of an arc into them is reduced by the score of the arc that it replaces
(Chu-Liu-Edmonds). All items of a batch contract their cycles together; the deepest nesting of
cycles determines the number of rounds. With a single root, any arc between words precedes any root
arc, regardless of scores, which gives the fewest root arcs: no cycle contains the root, so
contraction preserves this order. Branching on the best tree gives the k best trees (Lawler-Murty),
with all branches in one batch.

Samples: one word v after another draws its head h with probability proportional to

    exp( scores[h, v] ) P( a walk from h along heads reaches the root before v )

where words that have drawn a head walk to it, and all other words walk at random. Eliminating all
words except v, without subtraction, gives the second factor. All words of one half share the
elimination of the other half, so drawing a tree takes O(n^3) and not O(n^4) time.

Axes: B batch, n words, m = n + 1 heads, the root first; k ranks, r rows of the active words.
References: Edmonds 1967; Lawler 1972; Wilson 1996 and Colbourn et al. 1996 (samples).
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ._passes import LOWEST


def prepare(
    arcs: Float[Tensor, "B m m"], mask: Bool[Tensor, "B m-1"] | None
) -> Float[Tensor, "B m m-1"]:
    """Return the scores in float64 of each head of each word, with -inf where there is no arc; a
    masked word attaches to the root with score 0.
    """
    scores = arcs.detach().double()[..., 1:]
    n = scores.shape[-1]
    itself = torch.eye(n + 1, dtype=torch.bool, device=arcs.device)[:, 1:]
    scores = torch.where(itself, -torch.inf, scores)
    if mask is None:
        return scores
    words = torch.where(mask.unsqueeze(-1) & mask.unsqueeze(-2), scores[:, 1:], -torch.inf)
    return torch.cat([torch.where(mask, scores[:, 0], 0.0).unsqueeze(1), words], 1)


class Ranked(NamedTuple):
    """The k best trees, best first; ranks that do not exist score -inf."""

    heads: Int[Tensor, "k B n"]
    scores: Float[Tensor, "k B"]


def best(
    scores: Float[Tensor, "B m n"], mask: Bool[Tensor, "B n"] | None, single_root: bool, k: int
) -> Ranked:
    """Find the k trees of highest score."""
    batch, _, n = scores.shape
    items = torch.arange(batch, device=scores.device)
    real = None if mask is None else mask.repeat_interleave(n, 0)
    heads, totals = maximum(scores, mask, single_root)
    found = [(heads, totals)]
    # Scores of the set of trees in which each found tree is the best; its branches divide the rest of the set.
    domains = [scores]
    pool_heads, pool_totals = heads.new_empty(batch, 0, n), totals.new_empty(batch, 0)
    while len(found) < k and bool((totals > -torch.inf).any()):
        branches = _branch(domains[-1], found[-1][0])
        new_heads, new_totals = maximum(branches.flatten(0, 1), real, single_root)
        pool_heads = torch.cat([pool_heads, new_heads.view(batch, n, n)], 1)
        pool_totals = torch.cat([pool_totals, new_totals.view(batch, n)], 1)
        totals, chosen = pool_totals.max(1)
        heads = pool_heads[items, chosen]
        pool_totals[items, chosen] = -torch.inf
        parent, branch = chosen // n, chosen % n
        domain = torch.stack(domains)[parent, items]
        parent_heads = torch.stack([heads for heads, _ in found])[parent, items]
        domain = _branch(domain, parent_heads)[items, branch]
        # If the pool was empty, this branch was already taken.
        domains.append(torch.where((totals > -torch.inf)[:, None, None], domain, -torch.inf))
        found.append((heads, totals))
    absent = [(torch.zeros_like(heads), torch.full_like(totals, -torch.inf))]
    found += absent * (k - len(found))
    return Ranked(*map(torch.stack, zip(*found, strict=True)))


def _branch(domain: Float[Tensor, "B m n"], heads: Int[Tensor, "B n"]) -> Float[Tensor, "B n m n"]:
    """Divide the domain without one tree into n parts: in part i, words before i keep their heads in
    the tree, word i has another head, and the other words are free.
    """
    m, n = domain.shape[1:]
    chosen = torch.arange(m, device=heads.device).unsqueeze(-1) == heads.unsqueeze(1)
    chosen = chosen.unsqueeze(1)  # (B, 1, m, n)
    word = torch.arange(n, device=heads.device)
    part = word[:, None, None]
    allowed = torch.where(word < part, chosen, (word > part) | ~chosen)
    return torch.where(allowed, domain.unsqueeze(1), -torch.inf)


class _Round(NamedTuple):
    """The best arcs into the components; one word of a component is its name."""

    component: Int[Tensor, "B n"]  # of each word
    joined: Bool[Tensor, "B n"]  # components that this round merges with others
    head: Int[Tensor, "B n"]  # the head of the arc into a component
    word: Int[Tensor, "B n"]


def maximum(
    scores: Float[Tensor, "B m n"], mask: Bool[Tensor, "B n"] | None, single_root: bool
) -> tuple[Int[Tensor, "B n"], Float[Tensor, " B"]]:
    """Find the heads of the best tree and its score, -inf if there is no tree."""
    batch, _, n = scores.shape
    component = torch.arange(n, device=scores.device).expand(batch, n)
    offset = torch.zeros_like(scores[:, 0])
    rounds = []
    # Each round merges at least two components, so n rounds are enough. The bound also ends the search
    # if scores are NaN.
    for _ in range(n):
        value, head, word = _enter(scores - offset.unsqueeze(1), component, single_root)
        joined, name = _cycles(component, head)
        rounds.append(_Round(component, joined, head, word))
        if not bool(joined.any()):
            break
        offset = offset + torch.where(joined, value, 0.0).gather(1, component)
        component = name.gather(1, component)

    heads = torch.full_like(component, -1)
    for number, found in enumerate(reversed(rounds)):
        is_entered = torch.zeros_like(heads).scatter_reduce(
            1, found.component, (heads >= 0).long(), "amax"
        )
        is_name = found.component == torch.arange(n, device=scores.device)
        # The last round enters every component; earlier rounds enter components not entered later.
        enter = is_name if number == 0 else found.joined & (is_entered == 0)
        target = torch.where(enter, found.word, n)
        padded = torch.cat([heads, heads[:, :1]], 1).scatter(1, target, found.head)
        heads = padded[:, :n]
    totals = scores.gather(1, heads.unsqueeze(1)).squeeze(1).sum(1)
    if single_root:
        from_root = heads == 0 if mask is None else (heads == 0) & mask
        totals = torch.where(from_root.sum(1) > 1, -torch.inf, totals)
    return heads, totals


def _enter(
    scores: Float[Tensor, "B m n"], component: Int[Tensor, "B n"], single_root: bool
) -> tuple[Float[Tensor, "B n"], Int[Tensor, "B n"], Int[Tensor, "B n"]]:
    """Find the best arc into each component: its value, head and word. Without any, return the root."""
    within = component.unsqueeze(2) == component.unsqueeze(1)
    names = torch.arange(component.shape[1], device=scores.device)
    is_member = names.unsqueeze(-1) == component.unsqueeze(1)  # (B, component, word)

    def best_member(values: Tensor) -> tuple[Tensor, Tensor]:
        found = torch.where(is_member, values.unsqueeze(1), -torch.inf).max(2)
        return found.values, found.indices

    to_word = torch.where(within, -torch.inf, scores[:, 1:]).max(1)
    value, word = best_member(to_word.values)
    root_value, root_word = best_member(scores[:, 0])
    by_root = value == -torch.inf if single_root else value <= root_value
    head = torch.where(by_root, 0, to_word.indices.gather(1, word) + 1)
    # Without any arc, every word scores -inf, and `max` may return a word of another component.
    root_word = torch.where(root_value == -torch.inf, names, root_word)
    return torch.where(by_root, root_value, value), head, torch.where(by_root, root_word, word)


def _cycles(
    component: Int[Tensor, "B n"], head: Int[Tensor, "B n"]
) -> tuple[Bool[Tensor, "B n"], Int[Tensor, "B n"]]:
    """Return which components are on a cycle, and the name of each component after merging."""
    n = component.shape[1]
    names = torch.arange(n, device=component.device)
    root = torch.full_like(component[:, :1], n)
    # The origin of the arc into each component; the root for words that name no component.
    origin = torch.cat([root, component], 1).gather(1, head)
    origin = torch.where(component == names, origin, n)
    up = torch.cat([origin, root], 1)
    least = torch.arange(n + 1, device=component.device).expand_as(up)
    for _ in range(n.bit_length()):
        least = torch.minimum(least, least.gather(1, up))
        up = up.gather(1, up)
    # After at least n steps, each walk is at the root or on a cycle, and the walks cover each cycle.
    reached = torch.zeros_like(up).scatter(1, up, 1)[:, :n] == 1
    return reached, torch.where(reached, least[:, :n], names)


def hang_from_root(
    scores: Float[Tensor, "*batch m n"],
    root: Int[Tensor, "*batch 1"],
    mask: Bool[Tensor, "B n"] | None,
) -> Float[Tensor, "*batch m n"]:
    """Return scores that allow only one given word as a dependent of the root."""
    is_root = torch.arange(scores.shape[-1], device=scores.device) == root
    from_root = is_root if mask is None else is_root | ~mask
    first = torch.where(from_root, scores[..., 0, :], -torch.inf).unsqueeze(-2)
    words = torch.where(is_root.unsqueeze(-2), -torch.inf, scores[..., 1:, :])
    return torch.cat([first, words], -2)


def draw(scores: Float[Tensor, "B m n"], generator: torch.Generator | None) -> Int[Tensor, "B n"]:
    """Draw one exact sample for each item, with any number of root arcs."""
    m, n = scores.shape[1:]
    exits = torch.eye(m, dtype=scores.dtype, device=scores.device).log().expand(len(scores), m, m)
    heads = torch.zeros_like(scores[:, 0], dtype=torch.long)
    _draw_words(torch.cat([exits, scores], -1), 0, n, scores, heads, generator)
    return heads


def _draw_words(
    walks: Float[Tensor, "B r c"],
    first: int,
    last: int,
    scores: Float[Tensor, "B m n"],
    heads: Int[Tensor, "B n"],
    generator: torch.Generator | None,
) -> None:
    """Draw the heads of words first .. last - 1, given the heads already drawn for the other words.

    The rows of `walks` are the root and the active words. A column is the log-probability that a walk
    through the other words first reaches each row: the first m columns are for walks from each node,
    the others for walks from each active word after its first move.
    """
    m = scores.shape[1]
    size = last - first
    if size == 1:
        # Only this word and the root are active: the walk must not return to the word.
        logits = scores[:, :, first] + walks[:, 0, :m]
        noise = torch.empty_like(logits).exponential_(generator=generator)
        heads[:, first] = (logits - noise.log()).argmax(-1)  # a race of exponentials
        return
    half = size // 2
    middle = first + half
    _draw_words(_eliminate_last(walks, size - half), first, middle, scores, heads, generator)
    drawn = heads[:, first:middle].unsqueeze(1).expand(-1, walks.shape[1], -1)
    moves = walks.gather(2, drawn)  # a word with a drawn head moves to that head
    columns = torch.cat([walks[:, :, :m], walks[:, :, m + half :], moves], -1)
    rows = torch.cat([columns[:, :1], columns[:, half + 1 :], columns[:, 1 : half + 1]], 1)
    _draw_words(_eliminate_last(rows, half), middle, last, scores, heads, generator)


def _eliminate_last(walks: Float[Tensor, "B r c"], count: int) -> Tensor:
    """Deactivate the last words: walks continue through them."""
    for _ in range(count):
        rest, word = walks[:, :-1], walks[:, -1:, :-1]
        log_q = rest[:, :, -1:] - rest[:, :, -1:].logsumexp(1, keepdim=True).clamp(min=LOWEST)
        walks = torch.logaddexp(rest[:, :, :-1], log_q + word)
    return walks
