"""Biaffine scores: every word as the head of every other word, and the label of an arc.

    arcs[h, d]      = x_h . W y_d + u . x_h
    labels[d, k]    = [x_h; 1] . W_k [y_d; 1],    h the head of d

Here x_h is the vector of head h, with a learned vector for the root in front, and y_d is the vector of
word d. The parser of the paper computes both from the states of a BiLSTM, with two separate MLPs.

Reference: Dozat and Manning 2017, Deep biaffine attention for neural dependency parsing, section 3.1.

Axes: *batch any leading shape, n words, m = n + 1 words and the root, D width of a query (a word), V
width of a value (a head), K labels.
"""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

from ..batch_invariant import Linear, linear
from ..errors import ShapeError
from ._scorers import AbstractScorer, check_width


@final
class BiaffineScorer(AbstractScorer):
    """Scores every arc of a dependency tree: `arcs[h, d]`, as `SpanningTree` and `ProjectiveTree` expect.

    The queries are the words that look for their heads, and the memory holds the same words as heads.

    Args:
        query_size: Width of the vector of a word.
        value_size: Width of the vector of a head.

    Examples:
        >>> from foveal.distributions import SpanningTree
        >>> scorer = BiaffineScorer(4, 6)
        >>> words, heads = torch.randn(2, 5, 4), torch.randn(2, 5, 6)
        >>> arcs = scorer(words, scorer.remember(heads))
        >>> SpanningTree(arcs).argmax().shape
        torch.Size([2, 5])
    """

    queries_are_places = True

    def __init__(self, query_size: int, value_size: int) -> None:
        super().__init__()
        # The bias of this layer is u: W y_d + u, times x_h, has both terms.
        self.word = Linear(query_size, value_size)
        self.root = nn.Parameter(torch.empty(value_size).uniform_(-0.1, 0.1))

    @override
    def remember(self, values: Float[Tensor, "*batch n V"]) -> Float[Tensor, "*batch m V"]:
        """Prepend the root to the heads.

        Args:
            values: Vectors of the heads.

        Returns:
            Vectors of the heads, after the learned vector of the root.
        """
        check_width("BiaffineScorer", "value", values.shape[-1], self.word.out_features)
        return _with_root(values, self.root)

    @override
    def forward(
        self, query: Float[Tensor, "*batch n D"], keys: Float[Tensor, "*batch m V"]
    ) -> Float[Tensor, "*batch m m"]:
        """Score each head for each word; column 0, the head of the root, is 0 and is ignored.

        Args:
            query: Vectors of the words.
            keys: Heads, as `remember` returns them.

        Returns:
            Scores of all arcs, head by word, with the root at index 0.

        Raises:
            ShapeError: The number of queries differs from the number of words in memory, or a width is wrong.
        """
        check_width("BiaffineScorer", "query", query.shape[-1], self.word.in_features)
        _check_words("BiaffineScorer", query, keys)
        return pad(keys @ self.word(query).transpose(-1, -2), (1, 0))


@final
class BiaffineLabeler(nn.Module):
    """Scores every label of the given arcs, one arc for each word.

    Args:
        query_size: Width of the vector of a word.
        value_size: Width of the vector of a head.
        num_labels: Number of labels.

    Examples:
        >>> labeler = BiaffineLabeler(4, 6, num_labels=3)
        >>> words, heads = torch.randn(2, 5, 4), torch.randn(2, 5, 6)
        >>> labeler(words, labeler.remember(heads), torch.zeros(2, 5, dtype=torch.long)).shape
        torch.Size([2, 5, 3])
    """

    def __init__(self, query_size: int, value_size: int, num_labels: int) -> None:
        super().__init__()
        self.query_size, self.value_size, self.num_labels = query_size, value_size, num_labels
        # Zeros make all labels equally probable at first: a product of two arbitrary vectors has no natural scale.
        self.weight = nn.Parameter(torch.zeros(num_labels * (query_size + 1), value_size + 1))
        self.root = nn.Parameter(torch.empty(value_size).uniform_(-0.1, 0.1))

    def remember(self, values: Float[Tensor, "*batch n V"]) -> Float[Tensor, "*batch m V"]:
        """Prepend the root to the heads.

        Args:
            values: Vectors of the heads.

        Returns:
            Vectors of the heads, after the learned vector of the root.

        Raises:
            ShapeError: The width of the values is not `value_size`.
        """
        check_width("BiaffineLabeler", "value", values.shape[-1], self.value_size)
        return _with_root(values, self.root)

    @override
    def forward(
        self,
        query: Float[Tensor, "*batch n D"],
        keys: Float[Tensor, "*batch m V"],
        heads: Int[Tensor, "*batch n"],
    ) -> Float[Tensor, "*batch n K"]:
        """Score the labels of each word's arc.

        Args:
            query: Vectors of the words.
            keys: Heads, as `remember` returns them.
            heads: Head of each word, 0 for the root; -1, on padding, counts as the root.

        Returns:
            Score of every label for each word's arc.

        Raises:
            ShapeError: The number of queries differs from the number of words in memory, or a width is wrong.
        """
        check_width("BiaffineLabeler", "query", query.shape[-1], self.query_size)
        _check_words("BiaffineLabeler", query, keys)
        index = heads.clamp(min=0).unsqueeze(-1).expand(*heads.shape, keys.shape[-1])
        chosen = pad(keys.gather(-2, index), (0, 1), value=1.0)
        scores = linear(chosen, self.weight).unflatten(-1, (self.num_labels, self.query_size + 1))
        return (scores * pad(query, (0, 1), value=1.0).unsqueeze(-2)).sum(-1)


def _with_root(values: Tensor, root: Tensor) -> Tensor:
    return torch.cat([root.expand(*values.shape[:-2], 1, -1), values], -2)


def _check_words(owner: str, query: Tensor, keys: Tensor) -> None:
    if query.shape[-2] != keys.shape[-2] - 1:
        raise ShapeError(
            f"{owner}: expected one query for each of the {keys.shape[-2] - 1} words in memory, got "
            f"{query.shape[-2]}. Pass the vectors of the same words, in the same order."
        )
