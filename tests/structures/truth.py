"""The results of enumeration, in float64.

    log Z = log sum_z exp( score(z) ),   p(z) = exp( score(z) - log Z ),   marginals = sum_z p(z) marks(z)

The scores are differentiable functions of the potentials, so autograd through the sums gives the
reference gradients. A sparse structure has no log Z, but it has probabilities.

Axes: N structures of an item.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from tests.structures.enumeration import Structure


@dataclass(frozen=True)
class Listed:
    """All structures of one item: their values, and the entries that each of them counts."""

    values: Tensor  # (N, *event)
    parts: list[Tensor]  # for each potential: how often each structure reads each entry
    marks: Tensor  # (N, *shape of the marginals), 0 or 1

    def reads(self, potential: int) -> Tensor:
        """Return True on the entries that some structure reads."""
        return self.parts[potential].any(0)

    def scores(self, potentials: Sequence[Tensor]) -> Tensor:
        """Return differentiable scores, (N,); entries that a structure does not read may hold any
        value.
        """
        total = torch.zeros(len(self.values), dtype=torch.float64)
        for counts, potential in zip(self.parts, potentials, strict=True):
            held = torch.where(counts > 0, potential.double(), 0.0)
            total = total + (counts * held).flatten(1).sum(1)
        return total


def listed(
    structures: Iterable[Structure],
    shapes: Sequence[tuple[int, ...]],
    event: tuple[int, ...],
    marginals: tuple[int, ...],
    dtype: torch.dtype,
) -> Listed:
    """Return the structures of an enumeration as tensors."""
    every = list(structures)
    parts = [torch.zeros(len(every), *shape, dtype=torch.float64) for shape in shapes]
    marks = torch.zeros(len(every), *marginals, dtype=torch.float64)
    values = torch.zeros(len(every), *event, dtype=dtype)
    for n, (value, read, marked) in enumerate(every):
        values[n] = value
        for potential, index in read:
            parts[potential][(n, *index)] += 1
        for index in [index for at, index in read if at == 0] if marked is None else marked:
            marks[(n, *index)] = 1
    return Listed(values, parts, marks)


@dataclass(frozen=True)
class Truth:
    """Probabilities of the structures of one item; a sparse one has its smoothed maximum as log Z."""

    listed: Listed
    scores: Tensor  # (N,), -inf where a structure is forbidden
    log_partition: Tensor
    log_probs: Tensor  # (N,), -inf where a structure is impossible

    @property
    def possible(self) -> Tensor:
        return self.log_probs > -torch.inf

    @property
    def probs(self) -> Tensor:
        return torch.where(self.possible, torch.where(self.possible, self.log_probs, 0.0).exp(), 0)

    def marginals(self) -> Tensor:
        return torch.tensordot(self.probs, self.listed.marks, 1)

    def cross_entropy(self, other: "Truth") -> Tensor:
        """Return the cross-entropy; it is infinite if the other distribution forbids a possible
        structure.
        """
        drawn = self.probs > 0
        if bool((drawn & ~other.possible).any()):
            return torch.tensor(torch.inf, dtype=torch.float64)
        return -(self.probs[drawn] * other.log_probs[drawn]).sum()

    def entropy(self) -> Tensor:
        return self.cross_entropy(self)

    def kl(self, other: "Truth") -> Tensor:
        return self.cross_entropy(other) - self.entropy()


def dense(listed: Listed, potentials: Sequence[Tensor]) -> Truth:
    """p(z) proportional to exp(score)."""
    scores = listed.scores(potentials)
    possible = scores > -torch.inf
    if not bool(possible.any()):
        nothing = torch.full_like(scores, -torch.inf)
        return Truth(listed, scores, torch.tensor(-torch.inf, dtype=torch.float64), nothing)
    log_partition = scores[possible].logsumexp(0)
    log_probs = torch.where(
        possible, torch.where(possible, scores, 0.0) - log_partition, -torch.inf
    )
    return Truth(listed, scores, log_partition, log_probs)


def sparse_choice(listed: Listed, potentials: Sequence[Tensor], *, alpha: float) -> Truth:
    """Compute alpha-entmax of the scores."""
    scores = listed.scores(potentials)
    maximum, probs = entmax(scores, alpha)
    return Truth(listed, scores, maximum, probs.log())


def sparse_chain(listed: Listed, potentials: Sequence[Tensor], *, alpha: float) -> Truth:
    """Run Viterbi with a sparse maximum, then follow each labeling from its last position to its
    first.
    """
    unary, transitions = (part.double() for part in potentials)
    places = (listed.values[0] >= 0).nonzero().flatten().tolist()
    if not places:
        zeros = torch.zeros(1, dtype=torch.float64)  # one empty labeling
        return Truth(listed, zeros, zeros[0], zeros)
    best, back = unary[places[0]], dict[int, Tensor]()  # back[t][i, j] = p(i before | j at t)
    for _, t in pairwise(places):
        found = [entmax(best + transitions[t - 1, :, j], alpha) for j in range(len(best))]
        back[t] = torch.stack([probs for _, probs in found], -1)
        best = unary[t] + torch.stack([maximum for maximum, _ in found])
    maximum, last = entmax(best, alpha)
    probs = torch.stack(
        [
            math.prod(
                [back[t][value[s], value[t]] for s, t in pairwise(places)],
                start=last[value[places[-1]]],
            )
            for value in listed.values
        ]
    )
    return Truth(listed, listed.scores(potentials), maximum, probs.log())


def entmax(scores: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """Compute max over p of <p, scores> + H_alpha(p), and the maximizing p, by bisection.

    p_i = max(0, (alpha - 1) scores_i - tau)^(1 / (alpha - 1)), where tau makes the sum equal to 1.
    """
    if bool((scores == -torch.inf).all()):
        return torch.tensor(-torch.inf, dtype=torch.float64), torch.zeros_like(scores)
    top = scores.max()
    shifted = (alpha - 1) * (scores - top)
    power = 1 / (alpha - 1)
    low, high = torch.tensor(-1.0).double(), torch.tensor(0.0).double()
    for _ in range(80):
        tau = (low + high) / 2
        enough = (shifted - tau).clamp(min=0).pow(power).sum() >= 1
        low, high = (tau, high) if enough else (low, tau)
    probs = (shifted - low).clamp(min=0).pow(power)
    probs = probs / probs.sum()
    inside = probs > 0
    held = probs[inside]
    tsallis = (held - held.pow(alpha)).sum() / (alpha * (alpha - 1))
    return (held * scores[inside]).sum() + tsallis, probs
