"""Where a search is, and what becomes of it when hypotheses are chosen and items are done.

Axes: B items, K hypotheses of each, k as many after a choice, b items that stay, S places, W tokens
of the vocabulary.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils import _pytree as pytree

from ...attention import Memory
from ..decoders._decoder import DecoderState


class SearchStep(NamedTuple):
    """One step of all hypotheses: what may come next, and what each of them has read."""

    state: Any
    log_probs: Float[Tensor, "B K W"]
    weights: Float[Tensor, "B K S"] | None


class SteppingState(NamedTuple):
    """Where a search is: tensors of the memory begin with (B,), those of the decoder with (B, K)."""

    memory: Memory
    decoder: DecoderState


def reordered(state: SteppingState, parents: Int[Tensor, "B k"]) -> SteppingState:
    """Hypothesis k of item b continues `parents[b, k]`; there may be more or fewer than before."""
    num_before = state.decoder.layers[0].hidden.shape[1]
    first = torch.arange(len(parents), device=parents.device).unsqueeze(1) * num_before
    index = (first + parents).flatten()

    def chosen(part: Tensor) -> Tensor:
        return part.flatten(0, 1).index_select(0, index).unflatten(0, parents.shape)

    return state._replace(decoder=state.decoder.map(chosen))


def kept(state: SteppingState, items: Int[Tensor, " b"]) -> SteppingState:
    """Only these items, in this order."""

    def chosen(part: Tensor) -> Tensor:
        return part.index_select(0, items)

    return SteppingState(map_memory(chosen, state.memory), state.decoder.map(chosen))


def map_memory(function: Callable[[Tensor], Tensor], memory: Memory) -> Memory:
    """Every tensor of the memory; its keys are whatever a scorer or a reader has made of the values."""
    return pytree.tree_map_only(Tensor, function, memory)
