"""A decoder that search can step: K hypotheses for each of B items, all in one call.

    state, log_probs, weights = stepper.step( state, tokens )

The hypotheses of an item are K queries of its one memory, so that values and keys are never
repeated. The state holds everything, the memory too; the stepper itself has none.

Axes: B items, K hypotheses of each, k as many after a choice, b items that stay, S places, W tokens
of the vocabulary.
"""

from functools import cached_property
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...attention import Attention, HierarchicalAttention, Memory, MultiHead
from ...attention._distribute import PerQuery
from ...attention._grids import PerQueryOnGrid
from ...attention._readers import ExpectedSelection
from ...errors import ValueRangeError
from ..decoders._decoder import AbstractAttentionDecoder, AbstractDecoder, Attends, DecoderState
from ._advancing import prepare_advance
from ._matrix import Matrix
from ._reading import check_forced, prepare_read
from ._stepping_state import SearchStep, SteppingState, kept, map_memory, reordered


@final
class DecoderStepper:
    """Steps of a decoder, prepared once from its weights; make another when they have changed.

    With `half`, the matrix products of a prepared step are in bfloat16: faster for some tens of
    hypotheses and more, and good to three digits.

    >>> from torch import nn
    >>> from foveal.networks import PlainDecoder, NoBridge, recurrent_stack
    >>> from foveal.networks._bridges import no_memory
    >>> decoder = PlainDecoder(
    ...     embedding=nn.Embedding(9, 4), stack=recurrent_stack(4, 5), bridge=NoBridge()
    ... )
    >>> stepper = DecoderStepper(decoder.eval())
    >>> state = stepper.reorder(stepper.start(no_memory(2)), torch.zeros(2, 3, dtype=torch.long))
    >>> stepper.step(state, torch.zeros(2, 3, dtype=torch.long)).log_probs.shape
    torch.Size([2, 3, 9])
    """

    def __init__(self, decoder: AbstractDecoder, *, half: bool = False) -> None:
        if decoder.training:
            raise ValueRangeError(
                "DecoderStepper: the decoder must be in evaluation mode, got training mode, whose "
                "dropout would be part of the search. Call decoder.eval() first."
            )
        if isinstance(decoder, AbstractAttentionDecoder):
            _check_queries(decoder.attention)
        self._decoder = decoder
        self._half = half
        self._advance = prepare_advance(decoder, half=half)
        self._read = prepare_read(decoder, half=half)
        self._bias = decoder.output.bias.detach()

    @property
    def num_tokens(self) -> int:
        """W, the size of the vocabulary."""
        return len(self._bias)

    @cached_property
    def _output(self) -> Matrix:
        """The weights of the output layer; at the first step, as the rest of what a step needs."""
        return Matrix(self._decoder.output.table(self._decoder.embedding).T, half=self._half)

    @torch.no_grad()
    def start(self, memory: Memory) -> SteppingState:
        """The state before the first token, one hypothesis for each item."""
        if memory.mask is not None and bool(memory.mask.all()):
            memory = memory._replace(mask=None)  # no padding: nothing to take care of at any step
        with torch.autocast(memory.values.device.type, torch.bfloat16, enabled=self._half):
            memory = self._decoder.remember(memory)
            first = self._decoder.start(memory)
        if self._half:
            memory = map_memory(self._widened, memory)
        state = first.map(lambda part: self._widened(part).unsqueeze(1))
        return SteppingState(self._read.remember(self._advance.remember(memory)), state)

    def batch_size(self, state: SteppingState) -> int:
        """How many items the state has."""
        return state.decoder.layers[0].hidden.shape[0]

    def step(
        self,
        state: SteppingState,
        tokens: Int[Tensor, "B K"],
        forced: Float[Tensor, "B K S"] | None = None,
    ) -> SearchStep:
        """Every hypothesis reads one token. `forced` are weights to read the memory with instead of
        those that the attention would give; padding must have 0.
        """
        memory, before = state
        hidden, layers = self._advance.advance(before, tokens, memory)
        if forced is not None:
            check_forced(self._decoder, forced, tuple(tokens.shape), memory)
        vectors, weights = self._read.read(hidden, memory, forced)
        scores = self._output.plus(self._bias, vectors.flatten(0, 1))
        log_probs = scores.view(*tokens.shape, -1).log_softmax(-1)
        after = DecoderState(layers, self._decoder.own(vectors))
        return SearchStep(SteppingState(memory, after), log_probs, weights)

    @torch.no_grad()
    def selection(
        self, state: SteppingState, tokens: Int[Tensor, "B K"]
    ) -> Bool[Tensor, "B K S"] | None:
        """What the most probable segments are that the next step reads; None for an attention that
        does not choose segments.
        """
        decoder = self._decoder
        if not isinstance(decoder, AbstractAttentionDecoder):
            return None
        attention = decoder.attention
        if not isinstance(attention, Attention) or not isinstance(
            attention.reader, ExpectedSelection
        ):
            return None
        hidden, _ = self._advance.advance(state.decoder, tokens, state.memory)
        return attention(hidden, state.memory).distribution.argmax() == 1

    def reorder(self, state: SteppingState, parents: Int[Tensor, "B k"]) -> SteppingState:
        """Hypothesis k of item b continues `parents[b, k]`; there may be more or fewer than before."""
        return reordered(state, parents)

    def keep(self, state: SteppingState, items: Int[Tensor, " b"]) -> SteppingState:
        """Only these items, in this order."""
        return kept(state, items)

    def _widened(self, part: Tensor) -> Tensor:
        """Sums are in the precision of the model."""
        return part.to(self._bias.dtype) if part.is_floating_point() else part


def _check_queries(attention: Attends) -> None:
    """Hypotheses are queries that must know nothing of each other."""
    if isinstance(attention, MultiHead):
        parts = (attention.attention,)
    elif isinstance(attention, HierarchicalAttention):
        parts = (attention.words, attention.sentences)
    else:
        parts = (attention,)
    for part in parts:
        if not isinstance(part.distribute, PerQuery | PerQueryOnGrid):
            raise ValueRangeError(
                "DecoderStepper: expected an attention whose queries are independent "
                "(distribute=per_query(...)), got one that makes a single structure of all "
                "queries. Use softmax, sigmoid, segment, local or sparsemax attention."
            )
