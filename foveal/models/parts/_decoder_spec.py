"""Specs of decoders: recurrent network, attention and additional inputs."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, TypedDict, final

from torch import nn
from typing_extensions import override

from ...attention import Attention, CoverageScorer, shift_attention
from ...errors import ValueRangeError
from ...networks import (
    AbstractBridge,
    AttentionDecoder,
    BahdanauDecoder,
    EveryStepBridge,
    InitialStateAndEveryStepBridge,
    InitialStateBridge,
    InputFeedingDecoder,
    LatentDecoder,
    LearnedStateBridge,
    NoBridge,
    PlainDecoder,
    RecurrentStack,
)
from ...networks.decoders._decoder import Attends
from ...networks.decoders._recurrent_decoder import DecoderParts
from ...networks.decoders._token_decoder import AbstractTokenDecoder
from ...specs import AbstractSpec, setting
from ._attention_specs import (
    AttentionSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    SoftmaxSpec,
    SparsemaxSpec,
)
from ._recurrent_spec import AbstractRecurrentSpec

END = 3  # the id of the end token: foveal.data.Vocabulary
POINT = "write only tokens of the source, to which the attention points (pointer network, Vinyals et al. 2015)"


@dataclass(frozen=True, kw_only=True)
class AbstractDecoderSpec(AbstractSpec):
    """A decoder. Derive from it to use a custom decoder."""

    __slots__ = ()

    attention: AttentionSpec | None  # how the decoder reads the memory; None: no attention

    @property
    def copies(self) -> bool:
        """Whether the decoder copies tokens of the source, which then share the vocabulary of the outputs."""
        return False

    @property
    def points(self) -> bool:
        """Whether the decoder can write only tokens of the source."""
        return False

    @property
    def attention_kind(self) -> str | None:
        """Name of the attention in traces; None without attention."""
        return None if self.attention is None else self.attention.kind

    @property
    def is_exclusive(self) -> bool:
        """Whether the attention weights of a step sum to 1."""
        return self.attention is not None and self.attention.is_exclusive

    @abstractmethod
    def build(self, vocabulary: int, value_size: int, summary_size: int) -> AbstractTokenDecoder:
        """Build the decoder.

        A custom decoder derives from `foveal.networks.AbstractDecoder`.

        Args:
            vocabulary: Number of tokens; their ids are 0 to `vocabulary` - 1.
            value_size: Width of the values of the memory.
            summary_size: Width of the summary of the memory.

        Returns:
            A decoder with new weights.
        """


def check_point(name: str, point: bool, *, copy: bool, tie_embeddings: bool) -> None:
    """Raise an error for settings that contradict a decoder that points."""
    for other, is_set in {"copy": copy, "tie_embeddings": tie_embeddings}.items():
        if point and is_set:
            raise ValueRangeError(
                f"{name}: a decoder with point copies every token and has no table of outputs, got point and {other} "
                f"true. Set one of them to false."
            )


class _Reading(TypedDict):
    """The arguments of every decoder with attention."""

    attention: Attends
    value_size: int
    copy: bool
    point_end: int | None


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class DecoderSpec(AbstractRecurrentSpec, AbstractDecoderSpec):
    """A recurrent network that generates one token after another, with or without attention.

    Some widths follow from other settings: the input of the stack, the vector before the output (the width
    of the embedding if tie_embeddings, otherwise the width of the state), the bridge.
    """

    kind: Literal["recurrent"] = "recurrent"
    embedding_size: int = setting(128, "width of a token's vector", at_least=1)
    attention: AttentionSpec | None = setting(SoftmaxSpec(), "how the decoder reads the memory")
    attend: Literal["after", "before"] = setting(
        "after",
        "query of the attention: the state after the step (Luong et al. 2015), or before it (Bahdanau et al. 2015); "
        "before is slower",
    )
    input_feeding: bool = setting(
        False, "input feeding: the next step reads the last context (Luong et al. 2015); slower"
    )
    bridge: Literal["initial_state", "every_step", "both", "learned", "none"] = setting(
        "initial_state",
        "where the decoder gets the summary of the memory; learned: nowhere, its initial state is a parameter",
    )
    deep_output: bool = setting(
        False, "with attend before: predict from state, token and context (Bahdanau et al. 2015)"
    )
    tie_embeddings: bool = setting(False, "the output layer shares the table of the embeddings")
    copy: bool = setting(
        False, "copy tokens of the source, unseen ones too (pointer-generator, See et al. 2017)"
    )
    point: bool = setting(False, POINT)
    coverage: bool = setting(
        False,
        "scores read the attention that each position has received (coverage, See et al. 2017); slower",
    )
    shift: int = setting(
        0,
        "the attention moves from its previous weights by at most this many positions (location addressing, Graves et "
        "al. 2014); 0: it does not read them; slower",
        at_least=0,
    )

    @property
    @override
    def copies(self) -> bool:
        return self.copy or self.point

    @property
    @override
    def points(self) -> bool:
        return self.point

    @override
    def build(self, vocabulary: int, value_size: int, summary_size: int) -> AbstractTokenDecoder:
        """Build the decoder for tokens 0 to `vocabulary` - 1 and a memory of these widths."""
        self._check()
        embedding = nn.Embedding(vocabulary, self.embedding_size)
        vector_size = self.embedding_size if self.tie_embeddings else self.hidden_size
        read_size = self.embedding_size
        if self.attend == "before":
            read_size += value_size
        elif self.input_feeding:
            read_size += vector_size
        if self.bridge in ("every_step", "both"):
            read_size += summary_size
        stack = self.stack(read_size)
        bridge = self._bridge(summary_size, stack)
        parts = DecoderParts(
            embedding=embedding,
            stack=stack,
            bridge=bridge,
            tie_embeddings=self.tie_embeddings,
            dropout=self.dropout,
        )
        if self.attention is None:
            return PlainDecoder(**parts)
        if isinstance(self.attention, LatentHardSpec | LatentMonotoneSpec):
            return LatentDecoder(
                **parts,
                scorer=self.attention.scorer.build(self.hidden_size, value_size),
                walk=self.attention.walk(),
                value_size=value_size,
                vector_size=vector_size,
            )
        reading = _Reading(
            attention=self._with_history(
                self.attention.build(self.hidden_size, value_size), value_size
            ),
            value_size=value_size,
            copy=self.copy,
            point_end=END if self.point else None,
        )
        if self.attend == "before":
            deep_size = vector_size if self.deep_output else None
            return BahdanauDecoder(**parts, **reading, deep_size=deep_size)
        decoder = InputFeedingDecoder if self.input_feeding else AttentionDecoder
        return decoder(**parts, **reading, vector_size=vector_size)

    def _with_history(self, built: Attends, value_size: int) -> Attends:
        """Return the attention, whose scores read its coverage or its previous weights if the spec says so."""
        if not self.coverage and not self.shift:
            return built
        assert isinstance(built, Attention)
        if self.shift:
            return shift_attention(self.hidden_size, value_size, built.scorer, most=self.shift)
        return Attention(
            scorer=CoverageScorer(built.scorer), distribute=built.distribute, reader=built.reader
        )

    @property
    def _copying(self) -> str:
        """Name of the setting by which the decoder copies, for messages."""
        return "point" if self.point else "copy"

    def _bridge(self, summary_size: int, stack: RecurrentStack) -> AbstractBridge:
        match self.bridge:
            case "initial_state":
                return InitialStateBridge(summary_size, stack)
            case "every_step":
                return EveryStepBridge(summary_size)
            case "both":
                return InitialStateAndEveryStepBridge(summary_size, stack)
            case "learned":
                return LearnedStateBridge(stack)
            case "none":
                return NoBridge()

    def _check(self) -> None:
        """Raise an error for incompatible settings."""
        check_point("DecoderSpec", self.point, copy=self.copy, tie_embeddings=self.tie_embeddings)
        if self.attention is None:
            self._check_without_attention()
        elif isinstance(self.attention, LatentHardSpec | LatentMonotoneSpec):
            self._check_latent(self.attention)
        elif self.copies and not self.attention.is_exclusive:
            raise ValueRangeError(
                f"DecoderSpec: {self._copying} needs attention weights that sum to 1, got attention "
                f"{self.attention.kind}, whose weights do not. Choose softmax, sparsemax or local attention, or set "
                f"{self._copying} to false."
            )
        if self.coverage and not isinstance(self.attention, SoftmaxSpec | SparsemaxSpec):
            kind = "none" if self.attention is None else self.attention.kind
            raise ValueRangeError(
                f"DecoderSpec: coverage is a feature of the score of each position, got attention {kind}. "
                f"Choose softmax or sparsemax attention, or set coverage to false."
            )
        if self.shift and (self.coverage or not isinstance(self.attention, SoftmaxSpec)):
            kind = "none" if self.attention is None else self.attention.kind
            raise ValueRangeError(
                f"DecoderSpec: shift moves the weights of softmax attention without coverage, got attention {kind} and "
                f"coverage {str(self.coverage).lower()}. Choose softmax attention and set coverage to false, or set "
                f"shift to 0."
            )
        if self.attend == "before" and self.input_feeding:
            raise ValueRangeError(
                "DecoderSpec: with attend before, every step already reads its context, got input_feeding true. "
                "Set input_feeding to false, or attend to after."
            )
        if self.attend == "after" and self.deep_output:
            raise ValueRangeError(
                "DecoderSpec: deep_output is the output of a decoder that attends before the step, got attend after, "
                "whose output reads state and context already. Set attend to before, or deep_output to false."
            )
        is_plain = self.attention is None or (self.attend == "before" and not self.deep_output)
        if is_plain and self.tie_embeddings and self.embedding_size != self.hidden_size:
            raise ValueRangeError(
                f"DecoderSpec: tie_embeddings needs embedding_size and hidden_size to be equal where the output reads "
                f"the state alone, got {self.embedding_size} and {self.hidden_size}. Set embedding_size to "
                f"{self.hidden_size}, or tie_embeddings to false."
            )

    def _check_latent(self, attention: LatentHardSpec | LatentMonotoneSpec) -> None:
        """Raise an error for settings that need one context, where there is one for each position."""
        if self.copies:
            raise ValueRangeError(
                f"DecoderSpec: {self._copying} needs the attention weights of a step, got attention {attention.kind}, "
                f"which sums over all positions. Choose softmax attention, or set {self._copying} to false."
            )
        for name, is_set in {
            "input_feeding": self.input_feeding,
            "attend before": self.attend == "before",
        }.items():
            if is_set:
                raise ValueRangeError(
                    f"DecoderSpec: {name} feeds one context to the next step, got attention {attention.kind}, which "
                    f"has one for every position that it may have read. Set input_feeding to false and attend to "
                    f"after, or choose another attention, for example softmax."
                )

    def _check_without_attention(self) -> None:
        """Raise an error for settings that need an attention."""
        if self.input_feeding:
            raise ValueRangeError(
                "DecoderSpec: input_feeding needs attention, got attention none. Choose an "
                "attention, for example softmax, or set input_feeding to false."
            )
        if self.copies:
            raise ValueRangeError(
                f"DecoderSpec: {self._copying} follows the attention, got attention none. "
                f"Choose softmax attention, or set {self._copying} to false."
            )
        if self.attend == "before":
            raise ValueRangeError(
                "DecoderSpec: attend before says when the decoder attends, got attention none. "
                "Choose an attention, for example softmax, or set attend to after."
            )
        if self.bridge in ("none", "learned"):
            raise ValueRangeError(
                f"DecoderSpec: with attention none and bridge {self.bridge} nothing of the source reaches the "
                f"decoder. Choose an attention, or the bridge initial_state."
            )
