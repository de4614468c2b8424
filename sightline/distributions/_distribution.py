"""What every distribution over structures can do.

    p(z) = exp( score(z) - log Z ),     score(z) = sum of the log-potentials of the parts of z

A structure gives its score and what needs a dynamic program: log Z, marginals, the best ones,
samples. The information measures follow from the marginals, since scores are linear in the parts:

    log p(z)  = score(z) - log Z
    H(p, q)   = log Z_q - E_p[ score_q(z) ]          H(p) = H(p, p)      KL(p, q) = H(p, q) - H(p)
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import ShapeError
from ._checks import check_rank, require_possible


class TopK(NamedTuple):
    """The k most probable structures, best first, along a new leading axis.

    Where there are fewer than k, the ranks beyond the last hold log-probability -inf and a value
    of padding (-1, or False).
    """

    values: Tensor  # (k, *batch, *event)
    log_probs: Float[Tensor, "k *batch"]


@dataclass(frozen=True, eq=False)
class AbstractDistribution(ABC):
    """A distribution over structures, given by log-potentials; subclasses are frozen dataclasses
    whose floating-point fields are the potentials.

    A structure with a `-inf` part has probability 0 and passes no gradient. Where no structure
    is possible, log Z is -inf, marginals and gradients are 0, entropies are 0, and `argmax` and
    `sample` raise `ImpossibleError`.
    """

    @property
    @abstractmethod
    def batch_shape(self) -> torch.Size:
        """The leading shape that the potentials share."""

    @abstractmethod
    def log_partition(self) -> Float[Tensor, "*batch"]:
        """log Z: the log-sum of exp(score) over all structures."""

    @abstractmethod
    def marginals(self) -> Tensor:
        """The probability of each part, in the shape of the first potential; differentiable."""

    @abstractmethod
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        """The k best structures (k, *batch, *event), best first, and their scores (k, *batch),
        -inf where there are fewer.
        """

    @abstractmethod
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Exact samples (S, *batch, *event), and where there is one to draw (*batch)."""

    @abstractmethod
    def score(self, value: Tensor) -> Tensor:
        """The sum of the log-potentials of a structure's parts (unnormalised log-probability).

        Axes that `value` has before the batch shape are kept.
        """

    @abstractmethod
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        """E[ other.score(z) ] for z drawn from this distribution; `other` is of the same class."""

    def argmax(self) -> Tensor:
        """The most probable structure."""
        values, scores = self._best(1)
        require_possible(f"{type(self).__name__}.argmax", scores[0] > -torch.inf)
        return values[0]

    def topk(self, k: int) -> TopK:
        """The k most probable structures and their log-probabilities."""
        check_rank(type(self).__name__, k)
        values, scores = self._best(k)
        exists = scores > -torch.inf
        log_probs = torch.where(exists, scores - self.log_partition().detach(), -torch.inf)
        held = exists.reshape(exists.shape + (1,) * (values.ndim - exists.ndim))
        padding = False if values.dtype == torch.bool else -1
        return TopK(torch.where(held, values, padding), log_probs)

    def sample(
        self,
        sample_shape: tuple[int, ...] = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Independent exact samples, `sample_shape` leading."""
        values, possible = self._draw(torch.Size(sample_shape).numel(), generator)
        require_possible(f"{type(self).__name__}.sample", possible)
        return values.reshape((*sample_shape, *values.shape[1:]))

    def log_prob(self, value: Tensor) -> Tensor:
        """log p(value) = score(value) - log Z."""
        log_partition = self.log_partition()
        # -inf - -inf is NaN; where nothing is possible, every structure has log-probability -inf.
        shift = torch.where(log_partition == -torch.inf, 0.0, log_partition)
        return self.score(value) - shift

    def cross_entropy(self, other: "AbstractDistribution") -> Float[Tensor, "*batch"]:
        """H(self, other) = - E[ log other.p(z) ] for z drawn from self, in nats.

        `other` has the same sizes and the same mask. Infinite where it forbids what self allows.
        """
        if type(other) is not type(self):
            raise ShapeError(
                f"{type(self).__name__}.cross_entropy: expected another {type(self).__name__}, got "
                f"{type(other).__name__}; only distributions over the same structures compare."
            )
        # In float64, because log Z and the expected score cancel in all but a few digits.
        wide_self, wide_other = self._widen(), other._widen()
        log_partition = wide_other.log_partition()
        own = log_partition if other is self else wide_self.log_partition()
        difference = log_partition - wide_self._expected_score(wide_other)
        return torch.where(own > -torch.inf, difference, 0.0).to(self._dtype())

    def entropy(self) -> Float[Tensor, "*batch"]:
        """H(self) = - E[ log p(z) ], in nats."""
        return self.cross_entropy(self)

    def kl(self, other: "AbstractDistribution") -> Float[Tensor, "*batch"]:
        """KL(self || other) = H(self, other) - H(self) >= 0."""
        wide_self = self._widen()
        difference = wide_self.cross_entropy(other._widen()) - wide_self.entropy()
        return difference.to(self._dtype())

    def indicators(self, value: Tensor) -> Tensor:
        """The parts of a structure in the layout of `marginals()`: 1 on those it has, 0 elsewhere.

        Their expectation is the marginals. Axes that `value` has before the batch shape are kept.
        """
        with torch.no_grad():
            shape = self.score(value).shape
        first, like = self._first_potential()
        event = like.shape[like.ndim - self._num_part_axes() :]
        # A score is a sum of entries of the potentials, whatever they hold: its gradient says
        # which. Each value has its own copy of the first potential. What autograd keeps must not
        # stem from an enclosing inference mode, hence the clones.
        with torch.inference_mode(False), torch.enable_grad():
            parts = torch.zeros(*shape, *event, dtype=self._dtype(), device=like.device)
            changes: dict[str, Any] = {first: parts.requires_grad_()}
            for name, field in self._tensors().items():
                if name != first:
                    changes[name] = field.clone()
            total = replace(self, **changes).score(value.clone()).sum()
            return torch.autograd.grad(total, parts, materialize_grads=True)[0]

    def tilt(self, parts: Tensor) -> "AbstractDistribution":
        """The distribution with `parts`, in the layout of `marginals()`, added to the first potential.

            score'(z) = score(z) + sum of parts * indicators(z)

        Axes that `parts` has before the batch shape become leading batch axes.
        """
        name, first = self._first_potential()
        changes: dict[str, Any] = {name: first + parts}
        return replace(self, **changes)

    def log_potentials(self) -> dict[str, Tensor]:
        """The log-potentials by the names of their fields."""
        tensors = self._tensors().items()
        return {name: field for name, field in tensors if field.is_floating_point()}

    def _tensors(self) -> dict[str, Tensor]:
        values = {field.name: self.__dict__[field.name] for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def _first_potential(self) -> tuple[str, Tensor]:
        return next(iter(self.log_potentials().items()))

    def _num_part_axes(self) -> int:
        """How many axes of the first potential, and so of the marginals, are not batch axes."""
        name, first = self._first_potential()
        # With more leading axes than any other field, it alone decides how many there are.
        num_extra = len(self.batch_shape) + 1
        changes: dict[str, Any] = {name: first.reshape((1,) * num_extra + first.shape)}
        return first.ndim + num_extra - len(replace(self, **changes).batch_shape)

    def _dtype(self) -> torch.dtype:
        """The dtype of results: that of the potentials, at least float32."""
        dtypes = [part.dtype for part in self.log_potentials().values()]
        return reduce(torch.promote_types, dtypes, torch.float32)

    def _widen(self) -> "AbstractDistribution":
        """The same distribution in float64."""
        potentials = self.log_potentials().items()
        changes: dict[str, Any] = {name: part.double() for name, part in potentials}
        return replace(self, **changes)


def expectation(
    marginals: Tensor, potentials: Tensor, num_event_axes: int
) -> Float[Tensor, "*batch"]:
    """sum of marginal * potential over the event axes; a part of probability 0 adds 0.

    Such a part may hold -inf, or anything at all where it is padding.
    """
    held = torch.where(marginals == 0, 0.0, potentials)
    return (marginals * held).sum(tuple(range(-num_event_axes, 0)))
