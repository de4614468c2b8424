"""The state of a search, and its update when hypotheses are selected and items are done.

Axes: B items, K hypotheses of each, k hypotheses after a selection, b remaining items, S positions, W
tokens of the vocabulary.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils import _pytree as pytree

from ...attention import Memory
from ..decoders._steps import DecoderState


class SearchStep(NamedTuple):
    """One step of all hypotheses: the log-probabilities of the next token, and the attention weights."""

    state: Any
    log_probs: Float[Tensor, "B K W"]
    weights: Float[Tensor, "B K S"] | None


class SteppingState(NamedTuple):
    """The state of a search: tensors of the memory start with axes (B,), tensors of the decoder with (B, K)."""

    memory: Memory
    decoder: DecoderState


def num_hypotheses(state: SteppingState) -> tuple[int, int]:
    """Return the number of items and of the hypotheses of each."""
    decoder = state.decoder
    first = decoder.layers[0].hidden if decoder.layers else decoder.own[0]
    return first.shape[0], first.shape[1]


def reordered(state: SteppingState, parents: Int[Tensor, "B k"]) -> SteppingState:
    """Select hypotheses: hypothesis k of item b continues `parents[b, k]`; their number may change."""
    _, num_before = num_hypotheses(state)
    first = torch.arange(len(parents), device=parents.device).unsqueeze(1) * num_before
    index = (first + parents).flatten()

    def chosen(part: Tensor) -> Tensor:
        return part.flatten(0, 1).index_select(0, index).unflatten(0, parents.shape)

    return state._replace(decoder=state.decoder.map(chosen))


def kept(state: SteppingState, items: Int[Tensor, " b"]) -> SteppingState:
    """Select these items, in this order."""

    def chosen(part: Tensor) -> Tensor:
        return part.index_select(0, items)

    return SteppingState(map_memory(chosen, state.memory), state.decoder.map(chosen))


def map_memory(function: Callable[[Tensor], Tensor], memory: Memory) -> Memory:
    """Apply a function to every tensor of the memory, including the tensors in its keys."""
    return pytree.tree_map_only(Tensor, function, memory)
