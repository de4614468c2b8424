"""A decoder that search can step: K hypotheses for each of B items, all in one call.

    state, log_probs, weights = stepper.step( state, tokens )

The hypotheses of an item are K queries of its one memory, so that values and keys are never
repeated. The state holds everything, the memory too; the stepper itself has none.

Axes: B items, K hypotheses of each, k as many after a choice, b items that stay, S places, W tokens
of the vocabulary.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..attention import HierarchicalAttention, Memory, MultiHead, PerQuery
from ..errors import ValueRangeError
from ._advancing import prepare_advance
from ._decoders import AbstractAttentionDecoder, AbstractDecoder, Attends, DecoderState
from ._layers import map_state
from ._matrix import Matrix
from ._reading import prepare_read


class Stepped(NamedTuple):
    """One step of all hypotheses: what may come next, and what each of them has read."""

    state: Any
    log_probs: Float[Tensor, "B K W"]
    weights: Float[Tensor, "B K S"] | None


class SteppingState(NamedTuple):
    """Where a search is: tensors of the memory begin with (B,), those of the decoder with (B, K)."""

    memory: Memory
    decoder: DecoderState


@final
class DecoderStepper:
    """Steps of a decoder, prepared once from its weights; make another when they have changed.

    With `half`, the matrix products of a prepared step are in bfloat16: faster for some tens of
    hypotheses and more, and good to three digits.

    >>> from torch import nn
    >>> from sightline.networks import PlainDecoder, Unconditioned, no_memory, recurrent_stack
    >>> decoder = PlainDecoder(
    ...     embedding=nn.Embedding(9, 4), stack=recurrent_stack(4, 5), bridge=Unconditioned()
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
            memory = _map_memory(self._widened, memory)
        state = _map_decoder(lambda part: self._widened(part).unsqueeze(1), first)
        return SteppingState(self._read.remember(self._advance.remember(memory)), state)

    def batch_size(self, state: SteppingState) -> int:
        """How many items the state has."""
        return state.decoder.layers[0].hidden.shape[0]

    def step(self, state: SteppingState, tokens: Int[Tensor, "B K"]) -> Stepped:
        """Every hypothesis reads one token."""
        memory, before = state
        hidden, layers = self._advance.advance(before, tokens, memory)
        vectors, weights = self._read.read(hidden, memory)
        scores = self._output.plus(self._bias, vectors.flatten(0, 1))
        log_probs = scores.view(*tokens.shape, -1).log_softmax(-1)
        after = DecoderState(layers, None if before.fed is None else vectors)
        return Stepped(SteppingState(memory, after), log_probs, weights)

    def reorder(self, state: SteppingState, parents: Int[Tensor, "B k"]) -> SteppingState:
        """Hypothesis k of item b continues `parents[b, k]`; there may be more or fewer than before."""
        num_before = state.decoder.layers[0].hidden.shape[1]
        first = torch.arange(len(parents), device=parents.device).unsqueeze(1) * num_before
        index = (first + parents).flatten()

        def chosen(part: Tensor) -> Tensor:
            return part.flatten(0, 1).index_select(0, index).unflatten(0, parents.shape)

        return state._replace(decoder=_map_decoder(chosen, state.decoder))

    def keep(self, state: SteppingState, items: Int[Tensor, " b"]) -> SteppingState:
        """Only these items, in this order."""

        def kept(part: Tensor) -> Tensor:
            return part.index_select(0, items)

        return SteppingState(_map_memory(kept, state.memory), _map_decoder(kept, state.decoder))

    def _widened(self, part: Tensor) -> Tensor:
        """Sums are in the precision of the model."""
        return part.to(self._bias.dtype) if part.is_floating_point() else part


def _map_decoder(function: Callable[[Tensor], Tensor], state: DecoderState) -> DecoderState:
    layers = tuple(map_state(function, layer) for layer in state.layers)
    return DecoderState(layers, None if state.fed is None else function(state.fed))


def _map_memory(function: Callable[[Tensor], Tensor], memory: Memory) -> Memory:
    return memory._replace(
        values=function(memory.values),
        mask=None if memory.mask is None else function(memory.mask),
        summary=None if memory.summary is None else function(memory.summary),
        keys=_map_keys(function, memory.keys),
    )


def _map_keys(function: Callable[[Tensor], Tensor], keys: Any) -> Any:
    """Keys are what a scorer made of the values: a tensor, or a tuple of them."""
    if keys is None:
        return None
    if isinstance(keys, tuple):
        return tuple(_map_keys(function, part) for part in keys)
    return function(keys)


def _check_queries(attention: Attends) -> None:
    """Hypotheses are queries that must know nothing of each other."""
    if isinstance(attention, MultiHead):
        parts = (attention.attention,)
    elif isinstance(attention, HierarchicalAttention):
        parts = (attention.words, attention.sentences)
    else:
        parts = (attention,)
    for part in parts:
        if not isinstance(part.distribute, PerQuery):
            raise ValueRangeError(
                "DecoderStepper: expected an attention whose queries are independent "
                "(distribute=per_query(...)), got one that makes a single structure of all "
                "queries. Use softmax, sigmoid, segment, local or sparsemax attention."
            )
