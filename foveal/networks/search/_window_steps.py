"""Search steps of a causal Transformer, with keys and values of the last tokens of every hypothesis in the state."""

from typing import final

from torch import Tensor
from typing_extensions import override

from ...attention import Memory
from ..decoders._steps import DecoderState
from ..decoders.transformer._causal_transformer import CausalTransformer
from ._cached_steps import AbstractCachedSteps
from ._step_order import StepVectors


@final
class WindowSteps(AbstractCachedSteps[CausalTransformer]):
    """Computes keys and values of one token for every hypothesis, and reads those of its context."""

    @override
    def _run(
        self, state: DecoderState, tokens: Tensor, memory: Memory, forced: Tensor | None
    ) -> StepVectors:
        # A language model has no source, and the stepper refuses weights of it.
        assert forced is None
        vectors, after = self._decoder.advance(state, tokens)
        return StepVectors(vectors, None, after)
