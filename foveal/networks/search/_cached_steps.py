"""Search steps of a Transformer decoder, with keys and values of all earlier tokens in the state.

The hypotheses of an item are queries of one memory; each has keys and values of its own tokens.

Axes: B items, K hypotheses of each, S positions, D width of a token's vector, L layers, H heads, P tokens so far, d
width of a head.
"""

from abc import abstractmethod
from typing import Generic, TypeVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import override

from ...attention import Memory
from ..decoders._steps import DecoderState
from ..decoders.transformer._cross_attention import mean_weights
from ..decoders.transformer._decoder import TransformerDecoder, Written
from ._step_order import AbstractSteps, StepVectors

Decoder = TypeVar("Decoder")


class AbstractCachedSteps(AbstractSteps, Generic[Decoder]):
    """Steps of a decoder whose state has keys and values of the tokens, and whose memory needs no preparation."""

    def __init__(self, decoder: Decoder, *, half: bool) -> None:
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
        with torch.autocast(memory.values.device.type, torch.bfloat16, enabled=self._half):
            found = self._run(state, tokens, memory, forced)
        return found._replace(vectors=found.vectors.to(memory.values.dtype))

    @override
    def queries(self, state: DecoderState, tokens: Tensor, memory: Memory) -> Tensor:
        return self.run(state, tokens, memory, None).vectors

    @abstractmethod
    def _run(
        self, state: DecoderState, tokens: Tensor, memory: Memory, forced: Tensor | None
    ) -> StepVectors:
        """Take a step in any precision."""


@final
class CachedSteps(AbstractCachedSteps[TransformerDecoder]):
    """Computes keys and values of one token for every hypothesis, and reads those of the tokens before it."""

    @override
    def _run(
        self, state: DecoderState, tokens: Tensor, memory: Memory, forced: Tensor | None
    ) -> StepVectors:
        decoder, weights = self._decoder, forced
        before: Written = state.own
        new, turn = decoder.placed(tokens.unsqueeze(-1), None, before)
        rows, keys, values = new.squeeze(-2), _longer(before.keys), _longer(before.values)
        allowed = None
        if before.mask is not None:
            allowed = torch.cat([before.mask, torch.ones_like(before.mask[..., :1])], -1)
        after = Written(keys, values, allowed)
        for number, layer in enumerate(decoder.layers_in_order()):
            part = layer.causal.projected(layer.causal_norm(rows).unsqueeze(-2), turn)
            keys[:, :, number, :, -1:], values[:, :, number, :, -1:] = part.keys, part.values
            read = None if allowed is None else allowed.unsqueeze(-2)
            own = layer.causal(part.query, keys[:, :, number], values[:, :, number], read)
            rows = rows + own.squeeze(-2)
            memories = memory.keys[number]
            if forced is not None:
                context = layer.cross.forced(forced, memories)
            else:
                queries = layer.cross.queries(layer.cross_norm(rows))
                if number + 1 < len(decoder.layers):
                    context = layer.cross(queries, memories)
                else:
                    heads = layer.cross.attend(queries, memories)
                    context = layer.cross.joined([each.context for each in heads])
                    weights = mean_weights(heads)
            rows = layer.fed_forward(rows + context)
        return StepVectors(decoder.norm(rows), weights, DecoderState((), after))


def _longer(parts: Float[Tensor, "B K L H P d"]) -> Float[Tensor, "B K L H P1 d"]:
    """Return a copy with room for one more token."""
    *batch, num_tokens, size = parts.shape
    longer = parts.new_empty(*batch, num_tokens + 1, size)
    longer[..., :num_tokens, :] = parts
    return longer
