"""Decoders that predict each token from one vector, and may copy tokens of the source.

    p(y_t | y_<t) = softmax( W v_t + b ),   or its mixture with copying

A decoder that points copies all tokens: it generates only the end.

Axes: *batch any leading shape, T tokens, Q queries, S positions, W tokens of the vocabulary, A width of the vector v.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NotRequired, Unpack

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from typing_extensions import override

from ...attention import Memory
from ...errors import ValueRangeError
from ._copying import CopyGate
from ._output import EndOutput
from ._recurrent_decoder import AbstractRecurrentDecoder, DecoderParts
from ._steps import DecoderState, Reading, TeacherForced, TokenLosses, Unrolled, joined_weights
from ._token_decoder import AbstractTokenDecoder


class VectorDecoderParts(DecoderParts):
    """The parts of every recurrent decoder that predicts from one vector, as keyword arguments."""

    copy: NotRequired[bool]
    point_end: NotRequired[int | None]


class AbstractVectorDecoder(AbstractTokenDecoder):
    """A decoder that predicts the token of each step from one vector.

    Subclasses compute the vectors of all steps; this class turns them into log-probabilities and losses, and mixes them
    with copying.
    """

    copying: CopyGate | None  # None: every token is generated

    @property
    @override
    def copies(self) -> bool:
        return self.copying is not None

    def log_probs(
        self,
        vectors: Float[Tensor, "*batch Q A"],
        attended: Sequence[Reading],
        memory: Memory,
    ) -> Float[Tensor, "*batch Q W"]:
        """Compute the log-probabilities of the next token for each vector.

        Args:
            vectors: Vectors v, after dropout.
            attended: The attention of these steps.
            memory: Encoded input.

        Returns:
            Log-probabilities, generated or copied.
        """
        generated = self.output(vectors, self.embedding)
        if self.copying is None:
            return generated
        return self.copying(vectors, generated, _copy_weights(attended, vectors), memory)

    @override
    def unroll(
        self,
        tokens: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
    ) -> Unrolled:
        memory = self._remembered(memory)
        vectors, attended, state = self._teach(tokens, memory, mask, state)
        log_probs = self.log_probs(vectors, attended, memory)
        if mask is not None:
            log_probs = log_probs.masked_fill(~mask.unsqueeze(-1), 0.0)
        copied = None if self.copying is None else self.copying.probabilities(vectors)
        return Unrolled(log_probs, attended, state, copied)

    @override
    def score(
        self,
        tokens: Int[Tensor, "*batch T"],
        targets: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> TokenLosses:
        memory = self._remembered(memory)
        vectors, attended, state = self._teach(tokens, memory, mask, state)
        if self.copying is not None and label_smoothing:  # over the whole table of the mixture
            log_probs = self.log_probs(vectors, attended, memory)
            loss, log_prob = self._losses(log_probs, targets, mask, label_smoothing)
            return TokenLosses(loss, log_prob, attended, state)
        loss, log_prob = self.output.score(
            vectors, self.embedding, targets, mask, label_smoothing=label_smoothing
        )
        if self.copying is not None:
            weights = _copy_weights(attended, vectors)
            mixture = self.copying.target_log_probs(vectors, -loss, weights, targets, memory)
            mixture = mixture if mask is None else mixture.masked_fill(~mask, 0.0)
            loss, log_prob = -mixture, mixture.detach()
        return TokenLosses(loss, log_prob, attended, state)

    def _losses(
        self,
        log_probs: Float[Tensor, "*batch T W"],
        targets: Int[Tensor, "*batch T"],
        mask: Bool[Tensor, "*batch T"] | None,
        label_smoothing: float,
    ) -> tuple[Float[Tensor, "*batch T"], Float[Tensor, "*batch T"]]:
        """Compute losses and log-probabilities of the targets from the whole table, both 0 on padding."""
        targets = targets if mask is None else targets.masked_fill(~mask, 0)
        log_prob = log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        loss = -log_prob
        if label_smoothing:
            loss = (1 - label_smoothing) * loss - label_smoothing * _mean_of_possible(log_probs)
        if mask is not None:
            loss, log_prob = loss.masked_fill(~mask, 0.0), log_prob.masked_fill(~mask, 0.0)
        return loss, log_prob.detach()

    @abstractmethod
    def _teach(
        self, tokens: Tensor, memory: Memory, mask: Tensor | None, state: DecoderState | None
    ) -> TeacherForced:
        """Compute the vectors of all steps, after dropout."""


class AbstractRecurrentVectorDecoder(AbstractVectorDecoder, AbstractRecurrentDecoder):
    """A recurrent decoder that predicts the token of each step from one vector.

    Args:
        vector_size: Width of the vector v before the output layer.
        fed_size: Width of the inputs of the stack apart from token and bridge.
        copy: Copy tokens of the source; the memory must have `copies`, and the attention weights must sum to 1.
        point_end: Id of the end token, to generate only this token and copy all others (pointer network).
        **parts: The parts of every decoder.
    """

    def __init__(
        self,
        *,
        vector_size: int,
        fed_size: int = 0,
        copy: bool = False,
        point_end: int | None = None,
        **parts: Unpack[DecoderParts],
    ) -> None:
        super().__init__(vector_size=vector_size, fed_size=fed_size, **parts)
        points = point_end is not None
        self.copying = CopyGate(vector_size) if copy or points else None
        if points:
            self.output = EndOutput(vector_size, self.embedding.num_embeddings, point_end)


def _mean_of_possible(log_probs: Float[Tensor, "*batch T W"]) -> Float[Tensor, "*batch T"]:
    """Return the mean over the tokens with a probability above 0: a decoder that points cannot write the others."""
    possible = log_probs > -torch.inf
    return torch.where(possible, log_probs, 0.0).sum(-1) / possible.sum(-1)


def _copy_weights(attended: Sequence[Reading], vectors: Tensor) -> Float[Tensor, "*batch Q S"]:
    """Return the weights with which a step copies; several heads copy with their mean."""
    weights = joined_weights(tuple(attended))
    if weights is None:
        raise ValueRangeError(
            "Decoder: copying follows the attention, got a decoder without attention. "
            "Build it with an attention whose weights sum to 1, or with copy=False."
        )
    return weights.mean(-3) if weights.ndim > vectors.ndim else weights
