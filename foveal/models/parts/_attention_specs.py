"""Specs of attentions over a memory.

The members of `PerQueryAttentionSpec` are attentions with independent queries, which can therefore be the
steps of a decoder. `AttentionSpec` adds multi-head attention, attention to the sentences and words of a document, and
`SummedAttentionSpec`, which reads one position at a time and sums over all choices; only decoders support it, because
it defines a likelihood.
Syntactic attention builds one tree over all queries, the words of a sentence, and is for encoders.

Each spec builds an attention for queries and values of given widths. The equations are in
`foveal.attention`, and in `foveal.networks.LatentDecoder` for summed attention.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, final

from typing_extensions import override

from ...attention import (
    Attention,
    HierarchicalAttention,
    MultiHead,
    hard_attention,
    head_selection_attention,
    local_attention,
    path_attention,
    segment_attention,
    sigmoid_attention,
    softmax_attention,
    sparsemax_attention,
    syntactic_attention,
)
from ...networks.decoders.latent._transitions import IndependentPositions, MonotonicTransitions
from ...specs import AbstractSpec, setting
from ._scorer_specs import AdditiveSpec, ScorerSpec


class BaseAttentionSpec(AbstractSpec):
    """The properties that a decoder needs of any attention."""

    __slots__ = ()

    @property
    def is_exclusive(self) -> bool:
        """Return whether one position is chosen: the weights of a step then sum to 1.

        Otherwise each position is read or skipped.
        """
        return True

    @property
    def most_weight(self) -> float:
        """Return the largest possible weight of a position in an attention that is not exclusive."""
        return 1.0

    @property
    def has_heads(self) -> bool:
        """Return whether the weights have an axis of heads."""
        return False


class AbstractAttentionSpec(BaseAttentionSpec):
    """An attention with independent queries.

    Derive from it to use a custom attention in decoders, in pooling, and in the heads of `MultiHeadSpec`.
    """

    __slots__ = ()

    @abstractmethod
    def build(self, query_size: int, value_size: int) -> Attention:
        """Build the attention.

        Args:
            query_size: Width of a query, for example of the state of a decoder.
            value_size: Width of the values of the memory.

        Returns:
            An attention with new weights.
        """


class AbstractSelfAttentionSpec(AbstractSpec):
    """A self-attention of the words of a text.

    Derive from it to use a custom self-attention in encoders, and also from `AbstractAttentionSpec` if
    decoders may use it.
    """

    __slots__ = ()

    @abstractmethod
    def build_self(self, key_size: int, value_size: int) -> Attention:
        """Build the self-attention of the words of a text.

        Args:
            key_size: Width of the states that score the attention: the words, or the outputs of a network over
                the words.
            value_size: Width of the words.

        Returns:
            An attention with new weights.
        """


class _EitherSpec(AbstractAttentionSpec, AbstractSelfAttentionSpec):
    """An attention for decoders and for encoders."""

    __slots__ = ()

    @override
    def build_self(self, key_size: int, value_size: int) -> Attention:
        return self.build(key_size, key_size)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SoftmaxSpec(_EitherSpec):
    """Attention to one position: weights = softmax(scores)."""

    kind: Literal["softmax"] = "softmax"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """Build the attention."""
        scorer = self.scorer.build(query_size, value_size)
        return softmax_attention(query_size, value_size, scorer)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SigmoidSpec(_EitherSpec):
    """Independent attention to each position: weights = sigmoid(scores)."""

    kind: Literal["sigmoid"] = "sigmoid"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    @property
    @override
    def is_exclusive(self) -> bool:
        return False

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """Build the attention."""
        scorer = self.scorer.build(query_size, value_size)
        return sigmoid_attention(query_size, value_size, scorer)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentSpec(_EitherSpec):
    """Attention to segments of neighboring positions: a chain of "skip" and "read" (Kim et al. 2017).

    On a grid, segments end at the end of a row.
    """

    kind: Literal["segment"] = "segment"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")
    total: float | None = setting(
        None,
        "scale the weights of a query to this sum (the paper has 2); none: as they are",
        above=0,
    )

    @property
    @override
    def is_exclusive(self) -> bool:
        return False

    @property
    @override
    def most_weight(self) -> float:
        return self.total or 1.0

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """Build the attention."""
        scorer = self.scorer.build(query_size, value_size)
        return segment_attention(query_size, value_size, scorer, total=self.total)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LocalSpec(AbstractAttentionSpec):
    """Softmax around a position that the query predicts (Luong et al. 2015, local-p)."""

    kind: Literal["local"] = "local"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")
    window: float = setting(
        10.0, "positions on each side of the predicted position that attention reads", above=0
    )

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """Build the attention."""
        scorer = self.scorer.build(query_size, value_size)
        return local_attention(query_size, value_size, scorer, window=self.window)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SparsemaxSpec(_EitherSpec):
    """Attention to one position, where most weights are exactly 0 (Martins & Astudillo 2016)."""

    kind: Literal["sparsemax"] = "sparsemax"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """Build the attention."""
        scorer = self.scorer.build(query_size, value_size)
        return sparsemax_attention(query_size, value_size, scorer)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class HardSpec(AbstractAttentionSpec):
    """Attention to one position, sampled during training and the best otherwise (Xu et al. 2015)."""

    kind: Literal["hard"] = "hard"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """Build the attention."""
        scorer = self.scorer.build(query_size, value_size)
        return hard_attention(query_size, value_size, scorer)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PathSpec(AbstractAttentionSpec):
    """Attention to at most one cell of each column of a grid: a chain over columns of "skip" and rows."""

    kind: Literal["path"] = "path"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")
    total: float | None = setting(
        1.0, "scale the weights of a query to this sum; none: as they are", above=0
    )

    @property
    @override
    def is_exclusive(self) -> bool:
        return False

    @property
    @override
    def most_weight(self) -> float:
        return self.total or 1.0

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """Build the attention."""
        scorer = self.scorer.build(query_size, value_size)
        return path_attention(query_size, value_size, scorer, total=self.total)


PerQueryAttentionSpec = (
    SoftmaxSpec
    | SigmoidSpec
    | SegmentSpec
    | PathSpec
    | LocalSpec
    | SparsemaxSpec
    | HardSpec
    | AbstractAttentionSpec
)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class MultiHeadSpec(BaseAttentionSpec):
    """Several heads of one attention over projections of the memory (Vaswani et al. 2017)."""

    kind: Literal["multi_head"] = "multi_head"
    num_heads: int = setting(
        4, "number of heads; divides the widths of query and value", at_least=1
    )
    attention: PerQueryAttentionSpec = setting(SoftmaxSpec(), "attention of every head")

    @property
    @override
    def is_exclusive(self) -> bool:
        return self.attention.is_exclusive

    @property
    @override
    def most_weight(self) -> float:
        return self.attention.most_weight

    @property
    @override
    def has_heads(self) -> bool:
        return True

    def build(self, query_size: int, value_size: int) -> MultiHead:
        """Build the attention.

        Args:
            query_size: Width of a query; a multiple of the number of heads.
            value_size: Width of the values of the memory; a multiple of the number of heads.

        Returns:
            A multi-head attention with new weights.
        """
        heads = self.num_heads
        head = self.attention.build(max(query_size // heads, 1), max(value_size // heads, 1))
        return MultiHead(head, num_heads=heads, query_size=query_size, value_size=value_size)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class HierarchicalSpec(BaseAttentionSpec):
    """Attention to the words of each sentence, then to the sentences (Yang et al. 2016).

    The weight of a word is the product of both. The encoder must encode documents.
    """

    kind: Literal["hierarchical"] = "hierarchical"
    words: PerQueryAttentionSpec = setting(SoftmaxSpec(), "attention to the words of a sentence")
    sentences: PerQueryAttentionSpec = setting(SoftmaxSpec(), "attention to the sentences")

    @property
    @override
    def is_exclusive(self) -> bool:
        return self.words.is_exclusive and self.sentences.is_exclusive

    @property
    @override
    def most_weight(self) -> float:
        return self.words.most_weight * self.sentences.most_weight

    def build(self, query_size: int, value_size: int) -> HierarchicalAttention:
        """Build the attention.

        Args:
            query_size: Width of a query.
            value_size: Width of the values of the memory.

        Returns:
            An attention with new weights, for memories with the layout "sentences".
        """
        return HierarchicalAttention(
            self.words.build(query_size, value_size), self.sentences.build(query_size, value_size)
        )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LatentHardSpec(BaseAttentionSpec):
    """Attention to any one position at each step, summed out exactly (Wu et al. 2018)."""

    kind: Literal["latent_hard"] = "latent_hard"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    def walk(self) -> IndependentPositions:
        """Return the model of position sequences.

        Returns:
            Positions that do not depend on previous positions.
        """
        return IndependentPositions()


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LatentMonotoneSpec(BaseAttentionSpec):
    """Attention to one position at each step, never before the previous one, summed out exactly (Wu &
    Cotterell 2019).
    """

    kind: Literal["latent_monotone"] = "latent_monotone"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    def walk(self) -> MonotonicTransitions:
        """Return the model of position sequences.

        Returns:
            Positions that stay or move to a later position.
        """
        return MonotonicTransitions()


SummedAttentionSpec = LatentHardSpec | LatentMonotoneSpec
AttentionSpec = PerQueryAttentionSpec | MultiHeadSpec | HierarchicalSpec | SummedAttentionSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SyntacticSpec(AbstractSelfAttentionSpec):
    """Attention of each word to its head in a dependency tree over all words (Kim et al. 2017)."""

    kind: Literal["syntactic"] = "syntactic"
    hidden_size: int | None = setting(
        None, "width of the hidden layer of the score; none: the width of a word", at_least=1
    )
    projective: bool = setting(True, "only trees without crossing arcs")
    single_root: bool = setting(True, "only trees in which one word has no head")
    bounded: bool = setting(False, "scores between -1 and 1, as in the paper's code")
    read: Literal["heads", "children"] = setting(
        "heads", "distribution over the words that a word reads"
    )

    @override
    def build_self(self, key_size: int, value_size: int) -> Attention:
        return syntactic_attention(
            key_size,
            value_size,
            key_size if self.hidden_size is None else self.hidden_size,
            key_size=key_size,
            projective=self.projective,
            single_root=self.single_root,
            bounded=self.bounded,
            read=self.read,
        )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class HeadSelectionSpec(AbstractSelfAttentionSpec):
    """Attention of each word to an independently selected head: syntactic attention without the tree."""

    kind: Literal["head_selection"] = "head_selection"
    hidden_size: int | None = setting(
        None, "width of the hidden layer of the score; none: the width of a word", at_least=1
    )
    bounded: bool = setting(False, "scores between -1 and 1, as in the paper's code")

    @override
    def build_self(self, key_size: int, value_size: int) -> Attention:
        return head_selection_attention(
            key_size,
            value_size,
            key_size if self.hidden_size is None else self.hidden_size,
            key_size=key_size,
            bounded=self.bounded,
        )


SelfAttentionSpec = (
    SyntacticSpec
    | HeadSelectionSpec
    | SoftmaxSpec
    | SigmoidSpec
    | SegmentSpec
    | SparsemaxSpec
    | AbstractSelfAttentionSpec
)
