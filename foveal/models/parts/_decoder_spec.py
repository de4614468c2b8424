"""Specs of decoders: recurrent network, attention and additional inputs."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, final

from torch import nn
from typing_extensions import override

from ...errors import ValueRangeError
from ...networks import (
    AbstractBridge,
    AttentionDecoder,
    EveryStepBridge,
    InitialStateAndEveryStepBridge,
    InitialStateBridge,
    InputFeedingDecoder,
    LatentDecoder,
    NoBridge,
    PlainDecoder,
    RecurrentStack,
)
from ...networks.decoders._decoder import AbstractRecurrentDecoder, DecoderParts
from ...specs import AbstractSpec, setting
from ._attention_specs import AttentionSpec, LatentHardSpec, LatentMonotoneSpec, SoftmaxSpec
from ._recurrent_spec import AbstractRecurrentSpec


@dataclass(frozen=True, kw_only=True)
class AbstractDecoderSpec(AbstractSpec):
    """A decoder. Derive from it to use a custom decoder."""

    __slots__ = ()

    attention: AttentionSpec | None  # how the decoder reads the memory; None: no attention

    @abstractmethod
    def build(
        self, vocabulary: int, value_size: int, summary_size: int
    ) -> AbstractRecurrentDecoder:
        """Build the decoder.

        A custom decoder derives from `foveal.networks.AbstractDecoder`.

        Args:
            vocabulary: Number of tokens; their ids are 0 to `vocabulary` - 1.
            value_size: Width of the values of the memory.
            summary_size: Width of the summary of the memory.

        Returns:
            A decoder with new weights.
        """


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
    input_feeding: bool = setting(
        False, "input feeding: the next step reads the last context (Luong et al. 2015); slower"
    )
    bridge: Literal["initial_state", "every_step", "both", "none"] = setting(
        "initial_state", "where the decoder gets the summary of the memory"
    )
    tie_embeddings: bool = setting(False, "the output layer shares the table of the embeddings")

    @override
    def build(
        self, vocabulary: int, value_size: int, summary_size: int
    ) -> AbstractRecurrentDecoder:
        """Build the decoder for tokens 0 to `vocabulary` - 1 and a memory of these widths."""
        self._check()
        embedding = nn.Embedding(vocabulary, self.embedding_size)
        vector_size = self.embedding_size if self.tie_embeddings else self.hidden_size
        read_size = self.embedding_size + (vector_size if self.input_feeding else 0)
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
        decoder = InputFeedingDecoder if self.input_feeding else AttentionDecoder
        return decoder(
            **parts,
            attention=self.attention.build(self.hidden_size, value_size),
            value_size=value_size,
            vector_size=vector_size,
        )

    def _bridge(self, summary_size: int, stack: RecurrentStack) -> AbstractBridge:
        match self.bridge:
            case "initial_state":
                return InitialStateBridge(summary_size, stack)
            case "every_step":
                return EveryStepBridge(summary_size)
            case "both":
                return InitialStateAndEveryStepBridge(summary_size, stack)
            case "none":
                return NoBridge()

    def _check(self) -> None:
        """Raise an error for incompatible settings."""
        if self.input_feeding and isinstance(self.attention, LatentHardSpec | LatentMonotoneSpec):
            raise ValueRangeError(
                f"DecoderSpec: input_feeding feeds back one context, got attention "
                f"{self.attention.kind}, which has one for every place it may have read. "
                f"Set input_feeding to false, or choose another attention, for example softmax."
            )
        if self.attention is not None:
            return
        if self.input_feeding:
            raise ValueRangeError(
                "DecoderSpec: input_feeding feeds back what was attended to, got attention none. "
                "Choose an attention, for example softmax, or set input_feeding to false."
            )
        if self.bridge == "none":
            raise ValueRangeError(
                "DecoderSpec: with attention none and bridge none nothing of the source reaches the "
                "decoder. Choose an attention, or the bridge initial_state."
            )
        if self.tie_embeddings and self.embedding_size != self.hidden_size:
            raise ValueRangeError(
                f"DecoderSpec: tie_embeddings without attention needs embedding_size and hidden_size to be "
                f"equal, got {self.embedding_size} and {self.hidden_size}. Set embedding_size to "
                f"{self.hidden_size}, or tie_embeddings to false."
            )
