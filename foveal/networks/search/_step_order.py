"""One step of a decoder in search, from tokens to the vector before the output layer.

    after     the stack advances, then its output is the query                   Luong et al. 2015
    before    the state before the step is the query, then the stack advances    Bahdanau et al. 2015

Axes: B items, K hypotheses of each, S positions, H width of the stack's output, A of the vector v.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import override

from ...attention import Memory
from ...attention.history._history import with_history
from ..decoders._bahdanau import BahdanauDecoder
from ..decoders._decoder import AbstractDecoder, AttentionDecoder
from ..decoders._history import history_after
from ..decoders._steps import DecoderState
from ._advancing import LSTMs, prepare_advance
from ._matrix import Matrix
from ._reading import SoftmaxRead, attention_of, context_with, mean_weights, prepare_read
from ._whole_step import WholeStep, whole_step


class StepVectors(NamedTuple):
    """The input of the output layer for each hypothesis, its attention weights, and the state after the step."""

    vectors: Float[Tensor, "B K A"]
    weights: Float[Tensor, "B K S"] | None
    state: DecoderState


class AbstractSteps(ABC):
    """Takes steps with all hypotheses."""

    @abstractmethod
    def remember(self, memory: Memory) -> Memory:
        """Compute the parts of the memory that every step needs."""

    @abstractmethod
    def run(
        self,
        state: DecoderState,
        tokens: Int[Tensor, "B K"],
        memory: Memory,
        forced: Float[Tensor, "B K S"] | None,
    ) -> StepVectors:
        """Feed one token to every hypothesis; `forced` are weights that replace the weights of the attention."""

    @abstractmethod
    def queries(
        self, state: DecoderState, tokens: Int[Tensor, "B K"], memory: Memory
    ) -> Float[Tensor, "B K H"]:
        """Return the queries with which this step attends."""


@final
class AttendAfter(AbstractSteps):
    """Advances, then attends."""

    def __init__(self, decoder: AbstractDecoder, *, half: bool) -> None:
        self._decoder = decoder
        self._advance = prepare_advance(decoder, half=half)
        self._read = prepare_read(decoder, half=half)
        self._is_plain = type(decoder) is AttentionDecoder and decoder.copying is None

    @override
    def remember(self, memory: Memory) -> Memory:
        return self._read.remember(self._advance.remember(memory))

    @override
    def run(
        self, state: DecoderState, tokens: Tensor, memory: Memory, forced: Tensor | None
    ) -> StepVectors:
        hidden, layers = self._advance.advance(state, tokens, memory)
        vectors, weights = self._read.read(hidden, with_history(memory, state.history), forced)
        history = history_after(attention_of(self._decoder), state, weights)
        after = DecoderState(layers, self._decoder.own(vectors), history)
        return StepVectors(vectors, weights, after)

    def whole_step(self, output: Matrix, bias: Tensor) -> WholeStep | None:
        """Return all of a step in one call of a kernel; None if the decoder has a different form."""
        advance, read = self._advance, self._read
        if (
            not self._is_plain
            or not isinstance(advance, LSTMs)
            or not isinstance(read, SoftmaxRead)
        ):
            return None
        if not read.in_kernels or read.weight is None:
            return None
        cells = [cell for cell, _ in advance.prepared.cells]
        table = advance.prepared.token_gates.table
        return whole_step(table, cells, read.of_hidden, read.weight, output, bias)

    @override
    def queries(self, state: DecoderState, tokens: Tensor, memory: Memory) -> Tensor:
        return self._advance.advance(state, tokens, memory).output


@final
class AttendBefore(AbstractSteps):
    """Attends, then advances."""

    def __init__(self, decoder: BahdanauDecoder, *, half: bool) -> None:
        self._decoder = decoder
        self._advance = prepare_advance(decoder, half=half)

    @override
    def remember(self, memory: Memory) -> Memory:
        return self._advance.remember(memory)

    @override
    @torch.no_grad()
    def run(
        self, state: DecoderState, tokens: Tensor, memory: Memory, forced: Tensor | None
    ) -> StepVectors:
        decoder, weights = self._decoder, forced
        if weights is None:
            queries = self.queries(state, tokens, memory)
            reading = decoder.attention(queries, with_history(memory, state.history))
            context, weights = reading.context, mean_weights(decoder.attention, reading)
        else:
            context = context_with(decoder.attention, weights, memory)
        before = decoder.with_context(state, context)
        hidden, layers = self._advance.advance(before, tokens, memory)
        vectors = decoder.vectors(hidden, decoder.embedding(tokens), context)
        after = DecoderState(layers, history=history_after(decoder.attention, state, weights))
        return StepVectors(vectors, weights, after)

    @override
    def queries(self, state: DecoderState, tokens: Tensor, memory: Memory) -> Tensor:
        return state.layers[-1].hidden
