"""The shapes and types that the ops of semi-Markov models give, for tensors without data."""

import torch
from torch import Tensor

from ._registration import register


@register("foveal_native::semi_markov_log_partition")
def _semi_markov_log_partition(
    segments: Tensor, transitions: Tensor, mask: Tensor | None
) -> Tensor:
    return segments.new_empty(segments.shape[0])


@register("foveal_native::semi_markov_marginals")
def _semi_markov_marginals(
    segments: Tensor, transitions: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    batch, length, _, labels = segments.shape
    return (
        segments.new_empty(batch),
        segments.new_empty(segments.shape),
        segments.new_empty(batch, length - 1, labels, labels),
    )


@register("foveal_native::semi_markov_tangent")
def _semi_markov_tangent(
    segments: Tensor,
    pairs: Tensor,
    mask: Tensor | None,
    on_segments: Tensor | None,
    on_pairs: Tensor | None,
    want_pairs: bool,
) -> tuple[Tensor, Tensor]:
    along = segments.new_empty(pairs.shape) if want_pairs else segments.new_empty(0)
    return segments.new_empty(segments.shape), along


@register("foveal_native::semi_markov_best")
def _semi_markov_best(
    segments: Tensor, transitions: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    batch, length = segments.shape[:2]
    return segments.new_empty(batch, length, dtype=torch.long), segments.new_empty(batch)


@register("foveal_native::semi_markov_sample")
def _semi_markov_sample(
    segments: Tensor, transitions: Tensor, mask: Tensor | None, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    batch, length = segments.shape[:2]
    labels = segments.new_empty(uniforms.shape[0], batch, length, dtype=torch.long)
    return labels, segments.new_empty(batch, dtype=torch.bool)
