"""Scorers for structures: states of a chain, steps over facts, heads in a tree.

Axes: *batch any leading shape, Q queries, S positions (n words), K states, V width of a value.
Reference: Kim et al. 2017, sections 3.1 and 3.2.
"""

from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

from ..batch_invariant import Linear
from ..errors import ShapeError
from ._additive import additive_scores
from ._scorers import AbstractScorer, check_width, scores_of


@final
class SelectionScorer(AbstractScorer):
    """Scores a chain with two states, 0 = "skip" and 1 = "read" (Kim et al. 2017, section 3.1, eq. for theta).

    "read" gets the score of the position, and a learned 2 x 2 table scores neighbors.

        unary[s, 1] = score of s,   unary[s, 0] = 0,   transitions[i, j] = b[i, j]
    """

    def __init__(self, inner: AbstractScorer) -> None:
        super().__init__()
        self.inner = inner
        self.transitions = nn.Parameter(torch.empty(2, 2).uniform_(-0.1, 0.1))

    @property
    @override
    def is_rotation_invariant(self) -> bool:
        return self.inner.is_rotation_invariant

    @override
    def remember(self, values: Tensor) -> Any:
        return self.inner.remember(values)

    @override
    def forward(
        self, query: Tensor, keys: Any
    ) -> tuple[Float[Tensor, "*batch Q S 2"], Float[Tensor, "2 2"]]:
        scores = scores_of(self.inner, query, keys)
        return torch.stack([torch.zeros_like(scores), scores], -1), self.transitions


@final
class StepScorer(AbstractScorer):
    """Scores a chain over steps whose states are the positions of the memory (Kim et al. 2017, section 4.3).

    Each step reads one position, which depends on the previous step: the K-step CRF over facts.

        unary[k, i] = inner score of query k at position i,   transitions[k, i, j] = x_i W x_j

    With `repeat=False`, no position is read at two consecutive steps.
    """

    def __init__(self, inner: AbstractScorer, value_size: int, *, repeat: bool = True) -> None:
        super().__init__()
        self.inner, self.repeat = inner, repeat
        self.follow = Linear(value_size, value_size, bias=False)

    @override
    def remember(self, values: Tensor) -> Any:
        check_width("StepScorer", "value", values.shape[-1], self.follow.in_features)
        pairs = self.follow(values) @ values.transpose(-1, -2)  # (*batch, S, S)
        if not self.repeat:
            same = torch.eye(pairs.shape[-1], dtype=torch.bool, device=pairs.device)
            pairs = pairs.masked_fill(same, -torch.inf)
        return self.inner.remember(values), pairs

    @override
    def forward(
        self, query: Tensor, keys: Any
    ) -> tuple[Float[Tensor, "*batch Q S"], Float[Tensor, "*batch N S S"]]:
        inner_keys, pairs = keys
        unary = scores_of(self.inner, query, inner_keys)
        steps = unary.shape[-2] - 1
        return unary, pairs.unsqueeze(-3).expand(*pairs.shape[:-2], steps, -1, -1)


@final
class ArcScorer(AbstractScorer):
    """Scores every head for every word (Kim et al. 2017, section 4.4).

    The queries are the words that look for their heads; the memory holds the heads, after a learned root.

        arcs[h, d] = s . tanh( W x_h + U q_d + b ),    bounded: tanh of that

    The paper's code bounds the scores. Bounded scores keep a softmax over 20 words below 0.28, while a tree
    can still be sharp; unbounded scores are the fair baseline.
    """

    queries_are_places = True

    def __init__(
        self, query_size: int, value_size: int, hidden_size: int, *, bounded: bool = False
    ) -> None:
        super().__init__()
        self.bounded = bounded
        self.head = Linear(value_size, hidden_size)
        self.word = Linear(query_size, hidden_size, bias=False)
        self.combine = Linear(hidden_size, 1, bias=False)
        self.root = nn.Parameter(torch.empty(hidden_size).uniform_(-0.1, 0.1))

    @override
    def remember(self, values: Tensor) -> Tensor:
        check_width("ArcScorer", "value", values.shape[-1], self.head.in_features)
        root = self.root.expand(*values.shape[:-2], 1, -1)
        return torch.cat([root, self.head(values)], -2)

    @override
    def forward(self, query: Tensor, keys: Tensor) -> tuple[Float[Tensor, "*batch heads heads"]]:
        check_width("ArcScorer", "query", query.shape[-1], self.word.in_features)
        if query.shape[-2] != keys.shape[-2] - 1:
            raise ShapeError(
                f"ArcScorer: expected one query for each of the {keys.shape[-2] - 1} words in "
                f"memory, got {query.shape[-2]}. Pass the words' own vectors, in memory's order."
            )
        # (*batch, n+1, n): head, word
        scores = additive_scores(keys, self.word(query), self.combine.weight[0])
        if self.bounded:
            scores = torch.tanh(scores)
        return (pad(scores, (1, 0)),)  # the root has no head: column 0 is ignored
