"""Search steps of a causal Transformer, with keys and values of the last tokens of every hypothesis in the state.

Axes: B items, K hypotheses of each, S positions, D width of a token's vector.
"""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import override

from ...attention import Memory
from ..decoders._steps import DecoderState
from ..decoders.transformer._causal_transformer import CausalTransformer
from ._step_order import AbstractSteps, StepVectors


@final
class WindowSteps(AbstractSteps):
    """Computes keys and values of one token for every hypothesis, and reads those of its context."""

    def __init__(self, decoder: CausalTransformer, *, half: bool) -> None:
        self._decoder, self._half = decoder, half

    @override
    def remember(self, memory: Memory) -> Memory:
        return memory

    @override
    @torch.no_grad()
    def run(
        self,
        state: DecoderState,
        tokens: Int[Tensor, "B K"],
        memory: Memory,
        forced: Float[Tensor, "B K S"] | None,
    ) -> StepVectors:
        assert (
            forced is None
        )  # a language model has no source, and the stepper refuses weights of it
        with torch.autocast(tokens.device.type, torch.bfloat16, enabled=self._half):
            vectors, after = self._decoder.advance(state, tokens)
        return StepVectors(vectors.to(memory.values.dtype), None, after)

    @override
    def queries(self, state: DecoderState, tokens: Tensor, memory: Memory) -> Tensor:
        return self.run(state, tokens, memory, None).vectors
