"""A segmentation of a sequence into labeled segments, each scored as a whole.

    score(y) = sum over segments (t, d, k) of segments[t, d, k]
             + sum over neighbors of transitions[t, i, j],   i ends with t, j starts at t+1

A segment starts at t, has d + 1 positions and label k; examples are phrases, named entities, and phones
with a duration. A linear chain scores one position at a time, whereas the score of a segment can depend
on all of its positions and on its length. Time and memory are O(T K (K + D)), also when training through
the marginals; no intermediate result has size (K D)^2.

Axes: *batch any leading shape, T positions, D lengths, K labels.
References: Sarawagi & Cohen 2004 (semi-Markov CRF); Kong et al. 2016 (segmental RNN).
"""

from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from typing_extensions import override

from ..errors import ValueRangeError
from ..inference import semi_markov_best, semi_markov_log_partition, semi_markov_marginals
from ..inference.semi_markov._functions import semi_markov_sample
from ..shapes import flatten_batch, join_batch_shapes, restore_batch
from ._checks import check_mask, check_scores, require_labels
from ._distribution import AbstractDistribution, expectation
from ._transitions import (
    batch_of_transitions,
    check_transitions,
    flatten_transitions,
    per_step,
    score_of_steps,
)


@final
@dataclass(frozen=True, eq=False)
class SemiMarkov(AbstractDistribution):
    """Labeled segments that cover a sequence.

    A value is `(..., T)`: the label of a segment at its first position, -1 at its other positions and
    on padding. For example, `[2, -1, 0]` is a segment with label 2 and length 2, then a segment with
    label 0 and length 1.

    A position outside `mask` is skipped: its neighbors become adjacent, a segment covers d + 1 real
    positions, and the score is the transition into the start of a segment.

    Args:
        segments: Score of the segment with start t, length d + 1 and label k at [t, d, k]; segments beyond the end
            are ignored.
        transitions: `(K, K)`, shared by all positions, or `(..., T-1, K, K)`: entry [t, i, j] scores a segment with
            label i that ends at t, followed by a segment with label j that starts at t+1.
        mask: True on real positions; by default, all are real.

    Examples:
        >>> segments = torch.zeros(3, 2, 1)       # three positions, lengths 1 and 2, one label
        >>> segments[0, 1] = 1.0                  # the first two belong together
        >>> model = SemiMarkov(segments, torch.zeros(1, 1))
        >>> model.argmax()
        tensor([ 0, -1,  0])
        >>> model.marginals()[..., 0]
        tensor([[0.4239, 0.5761],
                [0.2119, 0.2119],
                [0.7881, 0.0000]])
    """

    segments: Float[Tensor, "*#batch T D K"]
    transitions: Float[Tensor, "... K K"]
    mask: Bool[Tensor, "*#batch T"] | None = None

    def __post_init__(self) -> None:
        check_scores("SemiMarkov", "segments", self.segments, "T D K")
        length, _, num_labels = self.segments.shape[-3:]
        check_transitions("SemiMarkov", self.transitions, length, num_labels)
        check_mask("SemiMarkov", self.mask, length)

    @property
    @override
    def batch_shape(self) -> torch.Size:
        shapes = {"segments": self.segments.shape[:-3], **batch_of_transitions(self.transitions)}
        if self.mask is not None:
            shapes["mask"] = self.mask.shape[:-1]
        return join_batch_shapes("SemiMarkov", **shapes)

    def _flat(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Flatten the potentials to one leading axis, as `inference` expects."""
        batch = self.batch_shape
        segments = flatten_batch(self.segments, batch, 3)
        transitions = flatten_transitions(self.transitions, batch)
        mask = None if self.mask is None else flatten_batch(self.mask, batch, 1)
        return segments, transitions, mask

    @override
    def log_partition(self) -> Float[Tensor, "*batch"]:
        return restore_batch(semi_markov_log_partition(*self._flat()), self.batch_shape)

    @override
    def marginals(self) -> Float[Tensor, "*batch T D K"]:
        """Compute p(a segment starts at t, has length d+1 and label k); differentiable."""
        return self._marginals()[0]

    def pair_marginals(self) -> Float[Tensor, "*batch N K K"]:
        """Compute p(a segment of j starts at t+1 and follows a segment of i) for the N = T - 1 transitions.

        The layout matches per-position transitions; the result is differentiable.

        Returns:
            Probability of each pair of labels, earlier by later.

        Examples:
            >>> SemiMarkov(torch.zeros(2, 2, 1), torch.zeros(1, 1)).pair_marginals()
            tensor([[[0.5000]]])
        """
        return self._marginals()[1]

    def _marginals(self) -> tuple[Tensor, Tensor]:
        batch = self.batch_shape
        segments, pairs = semi_markov_marginals(*self._flat())
        return restore_batch(segments, batch), restore_batch(pairs, batch)

    @override
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        """Find the k best segmentations (k, *batch, T) and their scores (k, *batch)."""
        shape = (k, *self.batch_shape)
        found = semi_markov_best(*self._flat(), k=k)
        return found.labels.reshape(*shape, *self._value_shape()), found.scores.reshape(shape)

    @override
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        drawn = semi_markov_sample(*self._flat(), num_samples=num_samples, generator=generator)
        labels = drawn.labels.reshape(num_samples, *self.batch_shape, *self._value_shape())
        return labels, drawn.possible.reshape(self.batch_shape)

    @override
    def _value_shape(self) -> tuple[int, ...]:
        return (self.segments.shape[-3],)

    @override
    def _num_event_axes(self, name: str) -> int:
        return 3 if name == "transitions" else super()._num_event_axes(name)

    def _expanded(
        self, value: Int[Tensor, "... T"]
    ) -> tuple[Int[Tensor, "*shape T"], Bool[Tensor, "*shape T"], Bool[Tensor, "*shape T"]]:
        """Expand values to all batch axes, and return masks of real positions and of segment starts."""
        shape = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        value = value.expand(*shape, -1)
        mask = torch.ones_like(value, dtype=torch.bool)
        if self.mask is not None:
            mask = self.mask.expand_as(value)
        return value, mask, mask & (value != -1)

    @override
    def _require_structures(self, value: Int[Tensor, "... T"]) -> None:
        num_lengths, num_labels = self.segments.shape[-2:]
        value, mask, starts = self._expanded(value)
        require_labels("SemiMarkov.score", value, starts, num_labels)
        _require_segments(starts, mask, _lengths_less_one(starts, mask), num_lengths)

    @override
    def _score(self, value: Int[Tensor, "... T"]) -> Float[Tensor, "..."]:
        num_lengths, num_labels = self.segments.shape[-2:]
        value, mask, starts = self._expanded(value)
        shape = value.shape[:-1]
        less_one = _lengths_less_one(starts, mask)
        label = torch.where(starts, value, 0)
        less_one = less_one.clamp(0, num_lengths - 1)
        dtype = self._dtype()

        index = (less_one * num_labels + label).unsqueeze(-1)
        segments = self.segments.to(dtype).expand(*shape, -1, -1, -1).flatten(-2)
        own = segments.gather(-1, index).squeeze(-1)
        on_segments = torch.where(starts, own, 0.0).sum(-1)
        return on_segments + score_of_steps(self.transitions.to(dtype), label, starts)

    @override
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        segments, pairs = self._marginals()
        return expectation(segments, other.segments, 3) + expectation(
            pairs, per_step(other.transitions), 3
        )


def _lengths_less_one(
    starts: Bool[Tensor, "... T"], mask: Bool[Tensor, "... T"]
) -> Int[Tensor, "... T"]:
    """Count the real positions after each start within its segment: d, the length minus 1."""
    rank = mask.cumsum(-1)
    total = rank[..., -1:]
    # From the right: the rank of the nearest start at or after each position.
    coming = torch.where(starts, rank, total + 1).flip(-1).cummin(-1).values.flip(-1)
    following = torch.cat([coming[..., 1:], total + 1], -1)
    return following - rank - 1


def _require_segments(
    starts: Bool[Tensor, "... T"],
    mask: Bool[Tensor, "... T"],
    less_one: Int[Tensor, "... T"],
    num_lengths: int,
) -> None:
    """Raise if the segments do not cover a row, or if a segment is too long."""
    uncovered = mask & (starts.cumsum(-1) == 0)
    if bool(uncovered.any()):
        raise ValueRangeError(
            f"SemiMarkov.score: the first real position must hold the label of a segment, got -1 "
            f"at index {uncovered.nonzero()[0].tolist()}. Write the label of a segment at its "
            f"first position and -1 at the others."
        )
    too_long = starts & (less_one >= num_lengths)
    if bool(too_long.any()):
        raise ValueRangeError(
            f"SemiMarkov.score: a segment may have at most {num_lengths} positions (the size D of "
            f"segments), got {int(less_one[too_long][0]) + 1} from index "
            f"{too_long.nonzero()[0].tolist()} on. Cut it, or score longer segments."
        )
