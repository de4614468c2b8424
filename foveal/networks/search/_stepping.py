"""A decoder prepared for search: K hypotheses for each of B items, all in one call.

    state, log_probs, weights = stepper.step( state, tokens )

The hypotheses of an item are K queries of one memory, so values and keys are never repeated. The state
includes the memory; the stepper is stateless.

Axes: B items, K hypotheses of each, k hypotheses after a selection, b remaining items, S positions, W
tokens of the vocabulary.
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
from ..decoders._decoder import Attends
from ._matrix import Matrix
from ._prepare_steps import Steppable, prepare_steps
from ._reading import attention_of, attentions_of, check_forced
from ._step_order import AttendAfter
from ._stepping_state import (
    SearchStep,
    SteppingState,
    kept,
    map_memory,
    num_hypotheses,
    reordered,
)
from ._whole_step import WholeStep


@final
class DecoderStepper:
    """Search steps of a decoder, prepared from its current weights; build a new one when they change.

    Args:
        decoder: Decoder in evaluation mode.
        half: Use bfloat16 in the matrix products of a prepared step: faster for more than a few dozen
            hypotheses, with three digits of precision.

    Raises:
        ValueRangeError: If the decoder is in training mode, or the queries of its attention are not independent.

    Examples:
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

    def __init__(self, decoder: Steppable, *, half: bool = False) -> None:
        if decoder.training:
            raise ValueRangeError(
                "DecoderStepper: the decoder must be in evaluation mode, got training mode, whose "
                "dropout would be part of the search. Call decoder.eval() first."
            )
        for attention in attentions_of(decoder):
            _check_queries(attention)
        self._decoder = decoder
        self._half = half
        self._steps = prepare_steps(decoder, half=half)
        self._bias = decoder.output.bias.detach()

    @property
    def num_tokens(self) -> int:
        """Return W, the size of the vocabulary."""
        return len(self._bias)

    @cached_property
    def _output(self) -> Matrix:
        """Return the weights of the output layer, prepared at the first step."""
        return Matrix(self._decoder.output.table(self._decoder.embedding).T, half=self._half)

    @cached_property
    def _whole(self) -> WholeStep | None:
        """Return the kernel of a whole step, if there is one for this decoder."""
        if not isinstance(self._steps, AttendAfter):
            return None
        return self._steps.whole_step(self._output, self._bias)

    @torch.no_grad()
    def start(self, memory: Memory) -> SteppingState:
        """Return the state before the first token, with one hypothesis for each item.

        Args:
            memory: Output of an encoder.

        Returns:
            The state of the search, which includes the memory.
        """
        if memory.mask is not None and bool(memory.mask.all()):
            memory = memory._replace(mask=None)  # no padding: steps can skip masking
        with torch.autocast(memory.values.device.type, torch.bfloat16, enabled=self._half):
            memory = self._decoder.remember(memory)
            first = self._decoder.start(memory)
        if self._half:
            memory = map_memory(self._widened, memory)
        state = first.map(lambda part: self._widened(part).unsqueeze(1))
        return SteppingState(self._steps.remember(memory), state)

    def batch_size(self, state: SteppingState) -> int:
        """Return the number of items in the state.

        Args:
            state: State of the search.

        Returns:
            The number of items, B.
        """
        return num_hypotheses(state)[0]

    def step(
        self,
        state: SteppingState,
        tokens: Int[Tensor, "B K"],
        forced: Float[Tensor, "B K S"] | None = None,
    ) -> SearchStep:
        """Feed one token to every hypothesis.

        Args:
            state: State before the tokens.
            tokens: One token id for each hypothesis.
            forced: Attention weights that replace the weights of the attention; they must be 0 on padding.

        Returns:
            The new state, the log-probabilities of the next token, and the attention weights.
        """
        if forced is None and self._whole is not None:
            return self._whole.step(state, tokens)
        memory, before = state
        if forced is not None:
            check_forced(self._decoder, forced, tuple(tokens.shape), memory)
        vectors, weights, after = self._steps.run(before, tokens, memory, forced)
        scores = self._output.plus(self._bias, vectors.flatten(0, 1))
        log_probs = scores.view(*tokens.shape, -1).log_softmax(-1)
        copying = self._decoder.copying
        if copying is not None and weights is not None:
            with torch.no_grad():
                log_probs = copying(vectors, log_probs, weights, memory)
        return SearchStep(SteppingState(memory, after), log_probs, weights)

    @torch.no_grad()
    def selection(
        self, state: SteppingState, tokens: Int[Tensor, "B K"]
    ) -> Bool[Tensor, "B K S"] | None:
        """Return the most probable segments of the next step.

        Args:
            state: State before the tokens.
            tokens: One token id for each hypothesis.

        Returns:
            True on the positions that are read; None if the attention has no segments.
        """
        attention = attention_of(self._decoder)
        if not isinstance(attention, Attention) or not isinstance(
            attention.reader, ExpectedSelection
        ):
            return None
        queries = self._steps.queries(state.decoder, tokens, state.memory)
        return attention(queries, state.memory).distribution.argmax() == 1

    @torch.no_grad()
    def copy_probability(
        self, state: SteppingState, tokens: Int[Tensor, "B K"]
    ) -> Float[Tensor, "B K"] | None:
        """Return the probability that the next step copies a token of the source.

        Args:
            state: State before the tokens.
            tokens: One token id for each hypothesis.

        Returns:
            Probabilities; None if the decoder does not copy.
        """
        if self._decoder.copying is None:
            return None
        vectors = self._steps.run(state.decoder, tokens, state.memory, None).vectors
        return self._decoder.copying.probabilities(vectors)

    def reorder(self, state: SteppingState, parents: Int[Tensor, "B k"]) -> SteppingState:
        """Select hypotheses; their number may change.

        Args:
            state: State of the search.
            parents: Index of the hypothesis of item b that hypothesis k continues, as `[b, k]`.

        Returns:
            The state of the selected hypotheses.
        """
        return reordered(state, parents)

    def keep(self, state: SteppingState, items: Int[Tensor, " b"]) -> SteppingState:
        """Select these items, in this order.

        Args:
            state: State of the search.
            items: Indices of the items to keep.

        Returns:
            The state of these items.
        """
        return kept(state, items)

    def _widened(self, part: Tensor) -> Tensor:
        """Convert to the dtype of the model, in which sums are computed."""
        return part.to(self._bias.dtype) if part.is_floating_point() else part


def _check_queries(attention: Attends) -> None:
    """Check that the attention has independent queries, because hypotheses are queries."""
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
