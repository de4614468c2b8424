"""Score functions: how well a query matches each position in memory.

    dot        score = q . k
    scaled     score = q . k / sqrt(D)                     Vaswani et al. 2017, eq. 1
    bilinear   score = q W k                               Luong et al. 2015, eq. 8 ("general")
               score = q W k / sqrt(D)                     scaled
    additive   score = v . tanh(W q + U k + b)             Bahdanau et al. 2015, appendix A.1.2
    linear     score = w . [q; k]                          the lectures' simplest learned score

`remember` computes the part that depends only on the memory once and returns it as `keys`.

Axes: *batch any leading shape, Q queries, S positions, D width of a query, V width of a value.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from ..batch_invariant import Linear, sigmoid
from ..errors import ShapeError
from ._additive import additive_scores


class AbstractScorer(nn.Module, ABC):
    """Computes log-potentials from a query and the keys of a memory.

    `forward` returns the potentials that a distribution takes: one tensor, which for most scorers
    holds scores `(*batch, Q, S)`, or a tuple of tensors.
    """

    # True if query s is position s of the memory: a padded position is then also a padded query, and the
    # attention sets both to 0.
    queries_are_places: ClassVar[bool] = False

    @property
    def is_rotation_invariant(self) -> bool:
        """Whether the potentials stay the same if all queries and keys are rotated by one angle, as in rotary positions."""
        return False

    @abstractmethod
    def remember(self, values: Float[Tensor, "*batch S V"]) -> Any:
        """Compute the keys: the part of the score that depends only on the memory.

        Args:
            values: Values of the memory, with padding set to 0.

        Returns:
            Keys for `forward`, a tensor or nested tuples of tensors.
        """

    @abstractmethod
    def forward(self, query: Float[Tensor, "*batch Q D"], keys: Any) -> Tensor | tuple[Tensor, ...]:
        """Compute the potentials of every query at every position.

        Args:
            query: The queries.
            keys: Keys, as `remember` returns them.

        Returns:
            One tensor, for most scorers scores `(*batch, Q, S)`, or a tuple of tensors for a structure.
        """


def potentials_of(
    scorer: AbstractScorer, query: Float[Tensor, "*batch Q D"], keys: Any
) -> tuple[Tensor, ...]:
    """Return the potentials as a tuple, even if the scorer returns a single tensor."""
    potentials = scorer(query, keys)
    return (potentials,) if isinstance(potentials, Tensor) else potentials


def scores_of(
    scorer: AbstractScorer, query: Float[Tensor, "*batch Q D"], keys: Any
) -> Float[Tensor, "*batch Q S"]:
    """Return the scores of a scorer whose potentials are one tensor.

    Args:
        scorer: Scorer to call.
        query: The queries.
        keys: Keys, as `scorer.remember` returns them.

    Returns:
        Score of every query at every position.

    Raises:
        ShapeError: The scorer returns several tensors.
    """
    potentials = potentials_of(scorer, query, keys)
    if len(potentials) != 1:
        raise ShapeError(
            f"{type(scorer).__name__}: expected one tensor of scores, got {len(potentials)} "
            f"potentials. Use a scorer that returns scores of shape (*batch, Q, S)."
        )
    return potentials[0]


def check_width(owner: str, name: str, got: int, expected: int) -> None:
    """Check the last axis of a tensor against the expected size."""
    if got != expected:
        raise ShapeError(
            f"{owner}: {name} must have width {expected}, got {got}. "
            f"Build it with {name}_size={got}, or project the {name} first."
        )


@final
class DotScorer(AbstractScorer):
    """score = q . k, times `scale`; it has no parameters, so queries and values must have the same width.

    Args:
        scale: Factor of every score.

    Examples:
        >>> DotScorer()(torch.ones(1, 2), torch.eye(2))[0]
        tensor([[1., 1.]])
    """

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    @property
    @override
    def is_rotation_invariant(self) -> bool:
        return True

    @override
    def remember(self, values: Tensor) -> Tensor:
        return (self.scale * values).transpose(-1, -2).contiguous()

    @override
    def forward(self, query: Tensor, keys: Tensor) -> tuple[Float[Tensor, "*batch Q S"]]:
        check_width("DotScorer", "query", query.shape[-1], keys.shape[-2])
        return (query @ keys,)


def scaled_dot_scorer(size: int) -> DotScorer:
    """score = q . k / sqrt(size): unit variance for unit-variance queries and keys.

    Args:
        size: Width of a query and of a value.

    Returns:
        A dot scorer whose scale is 1 / sqrt(size).
    """
    return DotScorer(scale=1 / math.sqrt(size))


@final
class BilinearScorer(AbstractScorer):
    """score = q W k, divided by the square root of the query's width if scaled.

    Many weights of W contribute to one score. When a step of Adam moves each of them, the score of a wide
    query changes by more than one, and a softmax over many positions can saturate too early.

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scaled: Whether to divide the scores by the square root of `query_size`.
    """

    def __init__(self, query_size: int, value_size: int, *, scaled: bool = False) -> None:
        super().__init__()
        self.project = Linear(value_size, query_size, bias=False)
        self.scale = 1 / math.sqrt(query_size) if scaled else 1.0

    @override
    def remember(self, values: Tensor) -> Tensor:
        check_width("BilinearScorer", "value", values.shape[-1], self.project.in_features)
        keys = self.project(values)
        keys = keys if self.scale == 1 else self.scale * keys
        return keys.transpose(-1, -2).contiguous()

    @override
    def forward(self, query: Tensor, keys: Tensor) -> tuple[Float[Tensor, "*batch Q S"]]:
        check_width("BilinearScorer", "query", query.shape[-1], keys.shape[-2])
        return (query @ keys,)


@final
class AdditiveScorer(AbstractScorer):
    """score = v . tanh(W q + U k + b).

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        hidden_size: Width of the tanh layer.
    """

    def __init__(self, query_size: int, value_size: int, hidden_size: int) -> None:
        super().__init__()
        self.query = Linear(query_size, hidden_size, bias=False)
        self.key = Linear(value_size, hidden_size)
        self.combine = Linear(hidden_size, 1, bias=False)

    @override
    def remember(self, values: Tensor) -> Tensor:
        check_width("AdditiveScorer", "value", values.shape[-1], self.key.in_features)
        keys = self.key(values)
        return keys.to(torch.promote_types(keys.dtype, torch.float32))  # once, not at every step

    @override
    def forward(self, query: Tensor, keys: Tensor) -> tuple[Float[Tensor, "*batch Q S"]]:
        check_width("AdditiveScorer", "query", query.shape[-1], self.query.in_features)
        return (additive_scores(self.query(query), keys, self.combine.weight[0]),)


@final
class LinearScorer(AbstractScorer):
    """score = w . [q; k], the sum of a score of the query and a score of the key.

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
    """

    def __init__(self, query_size: int, value_size: int) -> None:
        super().__init__()
        self.query = Linear(query_size, 1, bias=False)
        self.key = Linear(value_size, 1, bias=False)

    @override
    def remember(self, values: Tensor) -> Tensor:
        check_width("LinearScorer", "value", values.shape[-1], self.key.in_features)
        return self.key(values).transpose(-1, -2)

    @override
    def forward(self, query: Tensor, keys: Tensor) -> tuple[Float[Tensor, "*batch Q S"]]:
        check_width("LinearScorer", "query", query.shape[-1], self.query.in_features)
        return (self.query(query) + keys,)


@final
class LocalScorer(AbstractScorer):
    """Computes scores and a position that the query predicts (Luong et al. 2015, section 3.2, local-p).

    The position is a fraction of the distance from the first to the last real position; `local_window`
    combines it with the scores.

        share = sigmoid( v . tanh(W q) )
    """

    def __init__(self, inner: AbstractScorer, query_size: int) -> None:
        super().__init__()
        self.inner = inner
        self.place = nn.Sequential(
            Linear(query_size, query_size, bias=False),
            nn.Tanh(),
            Linear(query_size, 1, bias=False),
        )

    @override
    def remember(self, values: Tensor) -> Any:
        return self.inner.remember(values)

    @override
    def forward(
        self, query: Tensor, keys: Any
    ) -> tuple[Float[Tensor, "*batch Q S"], Float[Tensor, "*batch Q 1"]]:
        scores = scores_of(self.inner, query, keys)
        return scores, sigmoid(self.place(query))
