"""The output shapes and dtypes of each op, for tensors without data."""

import torch
from torch import Tensor

from ._registration import register


@register("foveal_native::chain_log_partition")
def _chain_log_partition(unary: Tensor, transitions: Tensor, mask: Tensor | None) -> Tensor:
    return unary.new_empty(unary.shape[0])


@register("foveal_native::chain_marginals")
def _chain_marginals(
    unary: Tensor, transitions: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    batch, length, states = unary.shape
    return (
        unary.new_empty(batch),
        unary.new_empty(batch, length, states),
        unary.new_empty(batch, length - 1, states, states),
    )


@register("foveal_native::chain_tangent")
def _chain_tangent(
    nodes: Tensor,
    pairs: Tensor,
    mask: Tensor | None,
    on_nodes: Tensor | None,
    on_pairs: Tensor | None,
    want_pairs: bool,
) -> tuple[Tensor, Tensor]:
    along = nodes.new_empty(pairs.shape) if want_pairs else nodes.new_empty(0)
    return nodes.new_empty(nodes.shape), along


@register("foveal_native::chain_nodes")
def _chain_nodes(
    unary: Tensor, transitions: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch, length, states = unary.shape
    return (
        unary.new_empty(batch),
        unary.new_empty(batch, length, states),
        unary.new_empty(batch, 3, length, states, dtype=torch.float64),
        unary.new_empty(batch, dtype=torch.bool),
    )


@register("foveal_native::chain_nodes_tangent")
def _chain_nodes_tangent(
    unary: Tensor,
    transitions: Tensor,
    mask: Tensor | None,
    kept: Tensor,
    safe: Tensor,
    on_nodes: Tensor,
) -> tuple[Tensor, Tensor]:
    return unary.new_empty(unary.shape), unary.new_empty(transitions.shape)


@register("foveal_native::chain_best")
def _chain_best(unary: Tensor, transitions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    batch, length, _ = unary.shape
    return unary.new_empty(batch, length, dtype=torch.long), unary.new_empty(batch)


@register("foveal_native::chain_sample")
def _chain_sample(
    unary: Tensor, transitions: Tensor, mask: Tensor | None, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    batch = unary.shape[0]
    labels = unary.new_empty(uniforms.shape, dtype=torch.long)
    return labels, unary.new_empty(batch, dtype=torch.bool)


# As in src/kernels.h.
_GRAIN, _MOST_WORDS_WITH_ARCS, _MOST_WORDS_WITH_SPANS = 16, 48, 56


def _padded(count: int) -> int:
    return (count + _GRAIN - 1) // _GRAIN * _GRAIN


def _kept(potentials: Tensor, words: int, most_words: int, *, nodes: int, sums: int) -> Tensor:
    """Return the tensor kept for the tangent pass of trees; see `is_together` and `kept_of_sentence` in src/kernels.h."""
    batch = potentials.shape[0]
    together = words <= most_words and 3 * batch >= words * (_padded(batch) // _GRAIN)
    spans = ((width, nodes - width) for width in range(1, nodes))
    size = sum((width + 2) * (count if together else _padded(count)) for width, count in spans)
    return potentials.new_empty(_padded(batch) if together else batch, sums * size)


@register("foveal_native::projective_log_partition")
def _projective_log_partition(arcs: Tensor, mask: Tensor | None, single_root: bool) -> Tensor:
    return arcs.new_empty(arcs.shape[0])


@register("foveal_native::projective_marginals")
def _projective_marginals(
    arcs: Tensor, mask: Tensor | None, single_root: bool, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    batch, size, _ = arcs.shape
    words, nodes = size - 1, size - 1 if single_root else size
    kept = arcs.new_empty(0)
    if keep:
        kept = _kept(arcs, words, _MOST_WORDS_WITH_ARCS, nodes=nodes, sums=3)
    return arcs.new_empty(batch), arcs.new_empty(arcs.shape), kept


@register("foveal_native::projective_tangent")
def _projective_tangent(
    marginals: Tensor, kept: Tensor, mask: Tensor | None, direction: Tensor, single_root: bool
) -> Tensor:
    return marginals.new_empty(marginals.shape)


@register("foveal_native::projective_best")
def _projective_best(arcs: Tensor, mask: Tensor | None, single_root: bool) -> tuple[Tensor, Tensor]:
    batch, size, _ = arcs.shape
    return arcs.new_empty(batch, size - 1, dtype=torch.long), arcs.new_empty(batch)


@register("foveal_native::projective_sample")
def _projective_sample(
    arcs: Tensor, mask: Tensor | None, uniforms: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    batch, size, _ = arcs.shape
    heads = arcs.new_empty(uniforms.shape[0], batch, size - 1, dtype=torch.long)
    return heads, arcs.new_empty(batch, dtype=torch.bool)


@register("foveal_native::span_log_partition")
def _span_log_partition(spans: Tensor, mask: Tensor | None) -> Tensor:
    return spans.new_empty(spans.shape[0])


@register("foveal_native::span_marginals")
def _span_marginals(
    spans: Tensor, mask: Tensor | None, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    batch, words, _ = spans.shape
    kept = spans.new_empty(0)
    if keep:
        kept = _kept(spans, words, _MOST_WORDS_WITH_SPANS, nodes=words, sums=1)
    return spans.new_empty(batch), spans.new_empty(spans.shape), kept


@register("foveal_native::span_tangent")
def _span_tangent(kept: Tensor, mask: Tensor | None, direction: Tensor) -> Tensor:
    return direction.new_empty(direction.shape)


@register("foveal_native::span_best")
def _span_best(spans: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    return spans.new_empty(spans.shape, dtype=torch.bool), spans.new_empty(spans.shape[0])


@register("foveal_native::span_sample")
def _span_sample(spans: Tensor, mask: Tensor | None, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    chosen = spans.new_empty(uniforms.shape[0], *spans.shape, dtype=torch.bool)
    return chosen, spans.new_empty(spans.shape[0], dtype=torch.bool)


@register("foveal_native::alignment_log_partition")
def _alignment_log_partition(moves: Tensor, mask: Tensor | None) -> Tensor:
    return moves.new_empty(moves.shape[0])


@register("foveal_native::alignment_marginals")
def _alignment_marginals(moves: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    return moves.new_empty(moves.shape[0]), moves.new_empty(moves.shape)


@register("foveal_native::alignment_tangent")
def _alignment_tangent(marginals: Tensor, mask: Tensor | None, direction: Tensor) -> Tensor:
    return direction.new_empty(direction.shape)


@register("foveal_native::alignment_best")
def _alignment_best(moves: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    return moves.new_empty(moves.shape, dtype=torch.bool), moves.new_empty(moves.shape[0])


@register("foveal_native::alignment_sample")
def _alignment_sample(
    moves: Tensor, mask: Tensor | None, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    paths = moves.new_empty(uniforms.shape[0], *moves.shape, dtype=torch.bool)
    return paths, moves.new_empty(moves.shape[0], dtype=torch.bool)


@register("foveal_native::ctc_log_partition")
def _ctc_log_partition(
    log_probs: Tensor,
    labels: Tensor,
    frame_mask: Tensor | None,
    label_mask: Tensor | None,
    blank: int,
) -> Tensor:
    return log_probs.new_empty(log_probs.shape[0])


@register("foveal_native::ctc_marginals")
def _ctc_marginals(
    log_probs: Tensor,
    labels: Tensor,
    frame_mask: Tensor | None,
    label_mask: Tensor | None,
    blank: int,
) -> tuple[Tensor, Tensor]:
    return log_probs.new_empty(log_probs.shape[0]), log_probs.new_empty(log_probs.shape)


def _kept_of_spanning(words: int, single_root: bool) -> int:
    """Return the number of values kept per sentence; see `kept_of_spanning` in src/spanning_kernels.h."""
    size = words + (2 if single_root else 1)
    return 2 * size * (size + 1)


@register("foveal_native::spanning_log_partition")
def _spanning_log_partition(arcs: Tensor, mask: Tensor | None, single_root: bool) -> Tensor:
    return arcs.new_empty(arcs.shape[0])


@register("foveal_native::spanning_marginals")
def _spanning_marginals(
    arcs: Tensor, mask: Tensor | None, single_root: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch, size, _ = arcs.shape
    kept = arcs.new_empty(batch, _kept_of_spanning(size - 1, single_root), dtype=torch.float64)
    safe = arcs.new_empty(batch, dtype=torch.bool)
    return arcs.new_empty(batch), arcs.new_empty(arcs.shape), kept, safe


@register("foveal_native::spanning_tangent")
def _spanning_tangent(
    arcs: Tensor,
    mask: Tensor | None,
    kept: Tensor,
    safe: Tensor,
    direction: Tensor,
    single_root: bool,
) -> Tensor:
    return arcs.new_empty(arcs.shape)


@register("foveal_native::spanning_best")
def _spanning_best(arcs: Tensor, mask: Tensor | None, single_root: bool) -> tuple[Tensor, Tensor]:
    batch, size, _ = arcs.shape
    return arcs.new_empty(batch, size - 1, dtype=torch.long), arcs.new_empty(batch)


@register("foveal_native::spanning_sample")
def _spanning_sample(
    arcs: Tensor, mask: Tensor | None, seeds: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    batch, size, _ = arcs.shape
    heads = arcs.new_empty(seeds.shape[0], batch, size - 1, dtype=torch.long)
    return heads, arcs.new_empty(batch, dtype=torch.bool)


@register("foveal_native::k_subset_log_partition")
def _k_subset_log_partition(scores: Tensor, mask: Tensor | None, k: int) -> Tensor:
    return scores.new_empty(scores.shape[0])


@register("foveal_native::k_subset_marginals")
def _k_subset_marginals(
    scores: Tensor, mask: Tensor | None, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    batch, items = scores.shape
    kept = scores.new_empty(_padded(batch), items, min(k, items + 1))
    return scores.new_empty(batch), scores.new_empty(batch, items), kept


@register("foveal_native::k_subset_tangent")
def _k_subset_tangent(
    marginals: Tensor, kept: Tensor, mask: Tensor | None, direction: Tensor
) -> Tensor:
    return marginals.new_empty(marginals.shape)


@register("foveal_native::k_subset_sample")
def _k_subset_sample(
    scores: Tensor, mask: Tensor | None, k: int, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    chosen = scores.new_empty(uniforms.shape, dtype=torch.bool)
    return chosen, scores.new_empty(scores.shape[0], dtype=torch.bool)
