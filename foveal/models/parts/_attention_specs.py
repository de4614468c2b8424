"""Which attention reads the memory.

`PerQueryAttentionSpec` is every attention whose queries know nothing of each other, and which may
therefore be the steps of a decoder; `AttentionSpec` has several heads of one as well, and
`SummedAttentionSpec`, which reads one place at a time and sums over which: a likelihood of its own,
so that a decoder alone can have it. Syntactic attention makes one tree of all its queries, the words
of a sentence, and is for encoders.

Each builds an attention for queries and values of given widths; the equations are in
`foveal.attention`, those of summed attention in `foveal.networks.LatentDecoder`.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, final

from typing_extensions import override

from ...attention import (
    Attention,
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
    """What a decoder asks of any attention."""

    __slots__ = ()

    @property
    def is_exclusive(self) -> bool:
        """Whether one position is chosen, so that the weights of a step sum to 1; otherwise each position
        is read or not.
        """
        return True

    @property
    def most_weight(self) -> float:
        """The largest weight of a position, where positions are read or not by themselves."""
        return 1.0

    @property
    def has_heads(self) -> bool:
        """Whether the weights have an axis of heads."""
        return False


class AbstractAttentionSpec(BaseAttentionSpec):
    """An attention whose queries know nothing of each other. Derive from it to use an attention of your
    own in decoders, in pooling, and in the heads of `MultiHeadSpec`.
    """

    __slots__ = ()

    @abstractmethod
    def build(self, query_size: int, value_size: int) -> Attention:
        """Build the attention for queries and values of these widths."""


class AbstractSelfAttentionSpec(AbstractSpec):
    """An attention of the words of a text to each other. Derive from it, beside `AbstractAttentionSpec` if
    decoders may use it too, for a self-attention of your own in encoders.
    """

    __slots__ = ()

    @abstractmethod
    def build_self(self, key_size: int, value_size: int) -> Attention:
        """Build the attention of words of width `value_size` to each other, scored by states of width
        `key_size`: the words themselves, or those of a network that reads them.
        """


class _EitherSpec(AbstractAttentionSpec, AbstractSelfAttentionSpec):
    """An attention of decoders that encoders may have as well."""

    __slots__ = ()

    @override
    def build_self(self, key_size: int, value_size: int) -> Attention:
        return self.build(key_size, key_size)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SoftmaxSpec(_EitherSpec):
    """One place is read: weights = softmax(scores)."""

    kind: Literal["softmax"] = "softmax"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """The attention."""
        scorer = self.scorer.build(query_size, value_size)
        return softmax_attention(query_size, value_size, scorer)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SigmoidSpec(_EitherSpec):
    """Each place is read or not by itself: weights = sigmoid(scores)."""

    kind: Literal["sigmoid"] = "sigmoid"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    @property
    @override
    def is_exclusive(self) -> bool:
        return False

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """The attention."""
        scorer = self.scorer.build(query_size, value_size)
        return sigmoid_attention(query_size, value_size, scorer)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentSpec(_EitherSpec):
    """Runs of neighboring places, on a grid within rows, are read: a chain of "skip" and "read" (Kim
    et al. 2017).
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
        """The attention."""
        scorer = self.scorer.build(query_size, value_size)
        return segment_attention(query_size, value_size, scorer, total=self.total)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LocalSpec(AbstractAttentionSpec):
    """Softmax around a place that the query predicts (Luong et al. 2015, local-p)."""

    kind: Literal["local"] = "local"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")
    window: float = setting(10.0, "places on each side of the predicted one that count", above=0)

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """The attention."""
        scorer = self.scorer.build(query_size, value_size)
        return local_attention(query_size, value_size, scorer, window=self.window)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SparsemaxSpec(_EitherSpec):
    """One place is read, and most have weight exactly 0 (Martins & Astudillo 2016)."""

    kind: Literal["sparsemax"] = "sparsemax"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """The attention."""
        scorer = self.scorer.build(query_size, value_size)
        return sparsemax_attention(query_size, value_size, scorer)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class HardSpec(AbstractAttentionSpec):
    """One place is read, drawn while training and the best otherwise (Xu et al. 2015)."""

    kind: Literal["hard"] = "hard"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    @override
    def build(self, query_size: int, value_size: int) -> Attention:
        """The attention."""
        scorer = self.scorer.build(query_size, value_size)
        return hard_attention(query_size, value_size, scorer)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PathSpec(AbstractAttentionSpec):
    """At most one cell of each column of a grid is read: a chain over columns of "skip" and rows."""

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
        """The attention."""
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
    attention: PerQueryAttentionSpec = setting(SoftmaxSpec(), "what every head does")

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
        """The attention."""
        heads = self.num_heads
        head = self.attention.build(max(query_size // heads, 1), max(value_size // heads, 1))
        return MultiHead(head, num_heads=heads, query_size=query_size, value_size=value_size)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LatentHardSpec(BaseAttentionSpec):
    """Each step reads one place, any; which one is summed out exactly (Wu et al. 2018)."""

    kind: Literal["latent_hard"] = "latent_hard"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    def walk(self) -> IndependentPositions:
        """How places follow each other."""
        return IndependentPositions()


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LatentMonotoneSpec(BaseAttentionSpec):
    """Each step reads one place, never one before the last step's; which ones is summed out exactly
    (Wu & Cotterell 2019).
    """

    kind: Literal["latent_monotone"] = "latent_monotone"
    scorer: ScorerSpec = setting(AdditiveSpec(), "score function")

    def walk(self) -> MonotonicTransitions:
        """How places follow each other."""
        return MonotonicTransitions()


SummedAttentionSpec = LatentHardSpec | LatentMonotoneSpec
AttentionSpec = PerQueryAttentionSpec | MultiHeadSpec | SummedAttentionSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SyntacticSpec(AbstractSelfAttentionSpec):
    """Each word reads its head in a dependency tree over all words (Kim et al. 2017)."""

    kind: Literal["syntactic"] = "syntactic"
    hidden_size: int | None = setting(
        None, "width of the hidden layer of the score; none: as wide as a word", at_least=1
    )
    projective: bool = setting(True, "only trees without crossing arcs")
    single_root: bool = setting(True, "only trees in which one word has no head")
    bounded: bool = setting(False, "scores between -1 and 1, as in the paper's code")
    read: Literal["heads", "children"] = setting("heads", "what a word reads")

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
    """Each word reads its head, which it chooses by itself: syntactic attention without the tree."""

    kind: Literal["head_selection"] = "head_selection"
    hidden_size: int | None = setting(
        None, "width of the hidden layer of the score; none: as wide as a word", at_least=1
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
