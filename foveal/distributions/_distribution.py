"""The base class of distributions over structures.

    p(z) = exp( score(z) - log Z ),     score(z) = sum of the log-potentials of the parts of z

A structure implements its score and the dynamic programs: log Z, marginals, the best structures and
samples. The information measures follow from the marginals, since scores are linear in the parts:

    log p(z)  = score(z) - log Z
    H(p, q)   = log Z_q - E_p[ score_q(z) ]          H(p) = H(p, p)      KL(p, q) = H(p, q) - H(p)
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import ShapeError
from ._checks import (
    check_rank,
    check_value,
    checks_values,
    refuse_vmap,
    require_numbers,
    require_possible,
)
from ._fields import AbstractFields


class TopK(NamedTuple):
    """The k most probable structures, best first, along a new leading axis.

    If there are fewer than k structures, the remaining ranks have log-probability -inf and a padding
    value (-1, or False).
    """

    values: Tensor  # (k, *batch, *event)
    log_probs: Float[Tensor, "k *batch"]


@dataclass(frozen=True, eq=False)
class AbstractDistribution(AbstractFields):
    """A distribution over structures, given by log-potentials.

    Subclasses are frozen dataclasses whose floating-point fields are the potentials.

    A structure with a `-inf` part has probability 0 and gets no gradient. If no structure is possible,
    log Z is -inf, marginals, gradients and entropies are 0, and `argmax` and `sample` raise
    `ImpossibleError`. If a score is NaN, then log Z, marginals, gradients and entropies are NaN, and
    `argmax`, `topk` and `sample` raise `NonFiniteError`. Entries that no structure uses, such as
    padding, may be NaN.
    """

    # Whether a structure is a boolean tensor, True on its parts; otherwise it is a tensor of indices.
    _is_boolean: ClassVar[bool] = False

    @abstractmethod
    def log_partition(self) -> Float[Tensor, "*batch"]:
        """Compute log Z: the log-sum of exp(score) over all structures.

        Returns:
            log Z of each batch item; -inf if no structure is possible.
        """

    @abstractmethod
    def marginals(self) -> Tensor:
        """Compute the probability of each part; differentiable.

        Returns:
            Probabilities in the shape of the first potential, 0 on padding.
        """

    @abstractmethod
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        """Find the k best structures (k, *batch, *event), best first, and their scores (k, *batch).

        If there are fewer than k structures, the remaining scores are -inf.
        """

    @abstractmethod
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Draw exact samples (S, *batch, *event), and return whether each item has a structure (*batch)."""

    @abstractmethod
    def _value_shape(self) -> tuple[int, ...]:
        """Return the shape of one structure, without batch axes."""

    @abstractmethod
    def _score(self, value: Tensor) -> Tensor:
        """Score values of the right shape, in the dtype of the potentials and at least float32.

        Indices are in range. If the value is not a structure, the result is arbitrary.
        """

    @abstractmethod
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        """Compute E[ other.score(z) ] for z sampled from this distribution; `other` has the same class."""

    def _require_structures(self, value: Tensor) -> None:
        """Raise if a value of the right shape is not a structure."""
        del value

    def score(self, value: Tensor) -> Tensor:
        """Sum the log-potentials of a structure's parts (unnormalized log-probability).

        Args:
            value: A structure for each batch item; leading axes before the batch shape are kept.

        Returns:
            Score of each structure.

        Raises:
            ShapeError: The shape or the dtype of `value` does not match the distribution.
            ValueRangeError: `value` is not a structure.
        """
        value = self._checked(value)
        return self._score(value)

    def argmax(self) -> Tensor:
        """Return the most probable structure.

        Returns:
            One structure for each batch item.

        Raises:
            ImpossibleError: An item of the batch has no structure.
            NonFiniteError: A score in use is NaN or +inf.
        """
        self._require_numbers("argmax")
        with torch.no_grad():
            values, scores = self._best(1)
        require_possible(f"{type(self).__name__}.argmax", scores[0] > -torch.inf)
        return values[0]

    def topk(self, k: int) -> TopK:
        """Return the k most probable structures and their log-probabilities, which are differentiable.

        Args:
            k: Number of structures for each batch item, at least 1.

        Returns:
            Structures and log-probabilities, best first, along a new leading axis.

        Raises:
            NonFiniteError: A score in use is NaN or +inf.
            ValueRangeError: `k` is less than 1.
        """
        check_rank(type(self).__name__, k)
        self._require_numbers("topk")
        with torch.no_grad():
            values, scores = self._best(k)
        exists = scores > -torch.inf
        log_probs = torch.where(exists, self._log_prob(values), -torch.inf)
        held = exists.reshape(exists.shape + (1,) * (values.ndim - exists.ndim))
        padding = False if values.dtype == torch.bool else -1
        return TopK(torch.where(held, values, padding), log_probs)

    def sample(
        self,
        sample_shape: tuple[int, ...] = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Draw independent exact samples.

        Args:
            sample_shape: Leading axes of the result; by default, one sample for each batch item.
            generator: Source of random numbers; by default, the generator of the device.

        Returns:
            Structures, with the axes `sample_shape` before the batch axes.

        Raises:
            ImpossibleError: An item of the batch has no structure.
            NonFiniteError: A score in use is NaN or +inf.
        """
        self._require_numbers("sample")
        with torch.no_grad():
            values, possible = self._draw(torch.Size(sample_shape).numel(), generator)
        require_possible(f"{type(self).__name__}.sample", possible)
        return values.reshape((*sample_shape, *values.shape[1:]))

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute log p(value) = score(value) - log Z.

        The difference is computed in float64 to avoid cancellation of float32 scores. While autograd
        records, it is computed in the dtype of the potentials, for speed.

        Args:
            value: A structure for each batch item; leading axes before the batch shape are kept.

        Returns:
            Log-probability of each structure.

        Raises:
            ShapeError: The shape or the dtype of `value` does not match the distribution.
            ValueRangeError: `value` is not a structure.
        """
        return self._log_prob(self._checked(value))

    def _log_prob(self, value: Tensor) -> Tensor:
        """Compute `log_prob` without checking the value."""
        wide = self if self._records_gradient() else self._widen()
        log_partition = wide.log_partition()
        # -inf - -inf is NaN; if no structure is possible, every log-probability is -inf.
        shift = torch.where(log_partition == -torch.inf, 0.0, log_partition)
        return (wide._score(value) - shift).to(self._dtype())

    def cross_entropy(self, other: "AbstractDistribution") -> Float[Tensor, "*batch"]:
        """Compute H(self, other) = - E[ log other.p(z) ] for z sampled from self, in nats.

        Args:
            other: Distribution of the same class, with the same sizes and the same mask.

        Returns:
            Cross-entropy of each batch item: infinite if `other` forbids a structure that self allows, and 0 if self
            has no structure.

        Raises:
            ShapeError: `other` is a distribution of another class.
        """
        if type(other) is not type(self):
            raise ShapeError(
                f"{type(self).__name__}.cross_entropy: expected another {type(self).__name__}, got "
                f"{type(other).__name__}; only distributions over the same structures compare."
            )
        # In float64, because log Z and the expected score cancel in most of their digits.
        wide_self, wide_other = self._widen(), other._widen()
        log_partition = wide_other.log_partition()
        own = log_partition if other is self else wide_self.log_partition()
        difference = log_partition - wide_self._expected_score(wide_other)
        if other is not self:
            difference = torch.where(log_partition == -torch.inf, torch.inf, difference)
        return torch.where(own == -torch.inf, 0.0, difference).to(self._dtype())

    def entropy(self) -> Float[Tensor, "*batch"]:
        """Compute H(self) = - E[ log p(z) ], in nats.

        The entropy is a difference of two numbers of the magnitude of the scores. Its absolute error is
        about 1e-16 times the score of the best structure: below 1e-6 for scores up to 1e9, and too large
        to be useful from scores of 1e15. The result is never negative.

        Returns:
            Entropy of each batch item.
        """
        return self.cross_entropy(self).clamp(min=0.0)

    def kl(self, other: "AbstractDistribution") -> Float[Tensor, "*batch"]:
        """Compute KL(self || other) = H(self, other) - H(self) >= 0, in nats.

        Args:
            other: Distribution of the same class, with the same sizes and the same mask.

        Returns:
            Divergence of each batch item.

        Raises:
            ShapeError: `other` is a distribution of another class.
        """
        wide_self = self._widen()
        difference = wide_self.cross_entropy(other._widen()) - wide_self.entropy()
        return difference.clamp(min=0.0).to(self._dtype())

    def indicators(self, value: Tensor) -> Tensor:
        """Return the parts of a structure in the layout of `marginals()`: 1 on its parts, 0 elsewhere.

        Their expectation is the marginals.

        Args:
            value: A structure for each batch item; leading axes before the batch shape are kept.

        Returns:
            Indicators of each structure.

        Raises:
            ShapeError: The shape or the dtype of `value` does not match the distribution.
            ValueRangeError: `value` is not a structure.
        """
        value = self._checked(value)
        with torch.no_grad():
            shape = self._score(value).shape
        first, like = self._first_potential()
        event = like.shape[like.ndim - self._num_event_axes(first) :]
        # A score is a sum of entries of the potentials, so its gradient marks the parts. Each value has
        # a separate copy of the first potential. Autograd cannot save tensors of an enclosing inference
        # mode, hence the clones.
        with torch.inference_mode(False), torch.enable_grad():
            parts = torch.zeros(*shape, *event, dtype=self._dtype(), device=like.device)
            changes: dict[str, Any] = {first: parts.requires_grad_()}
            for name, field in self._tensors().items():
                if name != first:
                    changes[name] = field.clone()
            total = replace(self, **changes)._score(value.clone()).sum()
            return torch.autograd.grad(total, parts, materialize_grads=True)[0]

    def tilt(self, parts: Tensor) -> "AbstractDistribution":
        """Add scores to the parts.

            score'(z) = score(z) + sum of parts * indicators(z)

        Args:
            parts: Added to the first potential, in the layout of `marginals()`. Leading axes before the batch shape
                become leading batch axes.

        Returns:
            A distribution of the same class.
        """
        name, first = self._first_potential()
        changes: dict[str, Any] = {name: first + parts}
        return replace(self, **changes)

    def log_potentials(self) -> dict[str, Tensor]:
        """Return the log-potentials by field name.

        Returns:
            Every floating-point field.
        """
        tensors = self._tensors().items()
        return {name: field for name, field in tensors if field.is_floating_point()}

    def _first_potential(self) -> tuple[str, Tensor]:
        return next(iter(self.log_potentials().items()))

    def _checked(self, value: Tensor) -> Tensor:
        """Return the value in the form that `_score` expects; raise if it is invalid."""
        owner = f"{type(self).__name__}.score"
        value = check_value(
            owner, value, self._value_shape(), self.batch_shape, is_boolean=self._is_boolean
        )
        if checks_values():
            self._require_structures(value)
        return value

    def _require_numbers(self, verb: str) -> None:
        """Raise if a structure uses a score that is NaN or +inf.

        Unused scores are harmless, so the check looks at log Z. It computes log Z only if such a score
        exists.
        """
        owner = f"{type(self).__name__}.{verb}"
        refuse_vmap(owner)
        if not checks_values():
            return
        for part in self.log_potentials().values():
            if part.numel() and not part.detach().amax().item() < torch.inf:  # also NaN
                with torch.no_grad():
                    require_numbers(owner, self.log_partition())

    def _records_gradient(self) -> bool:
        parts = self.log_potentials().values()
        return torch.is_grad_enabled() and any(part.requires_grad for part in parts)

    def _dtype(self) -> torch.dtype:
        """Return the dtype of results: the dtype of the potentials, at least float32."""
        dtypes = [part.dtype for part in self.log_potentials().values()]
        return reduce(torch.promote_types, dtypes, torch.float32)

    def _widen(self) -> "AbstractDistribution":
        """Convert the distribution to float64."""
        potentials = self.log_potentials().items()
        changes: dict[str, Any] = {name: part.double() for name, part in potentials}
        return replace(self, **changes)


def expectation(
    marginals: Tensor, potentials: Tensor, num_event_axes: int
) -> Float[Tensor, "*batch"]:
    """Sum marginal * potential over the event axes; a part with probability 0 adds 0.

    The potential of such a part may be -inf, or arbitrary on padding.
    """
    held = torch.where(marginals == 0, 0.0, potentials)
    return (marginals * held).sum(tuple(range(-num_event_axes, 0)))
