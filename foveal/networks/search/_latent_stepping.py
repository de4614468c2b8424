"""Search steps of a decoder with latent attention.

    filtered[s]  = p(a_{t-1} = s | y_<t)      from the last step's prediction and the token that followed
    predicted[s] = p(a_t = s | y_<t)          the weights of the step
    p(w | y_<t)  = sum over s of predicted[s] p(w | h_t, a_t = s)

To locate its last position once the next token is known, a hypothesis carries a distribution over
positions, a vector, and the norms of the output layer at each position, but not the table of all tokens.

Axes: B items, K hypotheses of each, k hypotheses after a selection, b remaining items, S positions, A width
of the vector v, W tokens of the vocabulary.
"""

from functools import cached_property
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...attention import Memory
from ...attention._scorers import scores_of
from ...errors import ShapeError, ValueRangeError
from ..decoders._steps import DecoderState
from ..decoders.latent._decoder import LatentDecoder
from ..decoders.latent._tokens import PlacesState
from ._advancing import prepare_advance
from ._matrix import Matrix
from ._stepping_state import (
    SearchStep,
    SteppingState,
    kept,
    map_memory,
    num_hypotheses,
    reordered,
)

# Entries of a table of hypotheses, positions and tokens that are computed at once: 4 MB of float32.
_TABLE = 2**20


@final
class LatentStepper:
    """Search steps of a decoder with latent attention, prepared from its current weights.

    Build a new stepper when the weights change. The weights of a step are p(a_t = s | y_<t), because its token
    is not known yet.

    Args:
        decoder: Decoder in evaluation mode.
        half: Use bfloat16 for large matrix products, with three digits of precision.

    Raises:
        ValueRangeError: If the decoder is in training mode.

    Examples:
        >>> from torch import nn
        >>> from foveal.attention import AdditiveScorer
        >>> from foveal.networks.decoders.latent._transitions import IndependentPositions
        >>> from foveal.networks import NoBridge, recurrent_stack
        >>> decoder = LatentDecoder(
        ...     embedding=nn.Embedding(9, 4), stack=recurrent_stack(4, 5), bridge=NoBridge(),
        ...     scorer=AdditiveScorer(5, 6, hidden_size=5), walk=IndependentPositions(), value_size=6,
        ... )
        >>> stepper = LatentStepper(decoder.eval())
        >>> state = stepper.start(Memory(torch.randn(2, 7, 6)))
        >>> stepper.step(state, torch.zeros(2, 1, dtype=torch.long)).weights.shape
        torch.Size([2, 1, 7])
    """

    def __init__(self, decoder: LatentDecoder, *, half: bool = False) -> None:
        if decoder.training:
            raise ValueRangeError(
                "LatentStepper: the decoder must be in evaluation mode, got training mode, whose "
                "dropout would be part of the search. Call decoder.eval() first."
            )
        self._decoder, self._half = decoder, half
        self._advance = prepare_advance(decoder, half=half)
        self._bias = decoder.output.bias.detach()

    @property
    def num_tokens(self) -> int:
        """Return W, the size of the vocabulary."""
        return len(self._bias)

    @cached_property
    def _table(self) -> Float[Tensor, "W A"]:
        """Return the weights of the output layer, a row for each token."""
        return self._decoder.output.table(self._decoder.embedding).detach()

    @cached_property
    def _output(self) -> Matrix:
        return Matrix(self._table.T, half=self._half)

    @cached_property
    def _of_hidden(self) -> Matrix:
        """Return U_s, which maps the stack's output to a query."""
        size = self._decoder.stack.output_size
        return Matrix(self._decoder.combine.weight[:, -size:].T, half=self._half)

    @torch.no_grad()
    def start(self, memory: Memory) -> SteppingState:
        """Return the state before the first token, with one hypothesis for each item."""
        if memory.mask is not None and bool(memory.mask.all()):
            memory = memory._replace(mask=None)
        with torch.autocast(memory.values.device.type, torch.bfloat16, enabled=self._half):
            memory = self._decoder.remember(memory)
            first = self._decoder.start(memory)
        if self._half:
            memory = map_memory(self._widened, memory)
        nowhere = self._decoder.walk.start(memory.keys.vectors[..., 0])
        blank = torch.zeros_like(memory.keys.vectors[..., 0, :])
        places = PlacesState(nowhere, blank, torch.zeros_like(nowhere))
        first = first._replace(own=places if self._decoder.walk.remembers else None)
        state = first.map(lambda part: self._widened(part).unsqueeze(1))
        return SteppingState(self._advance.remember(memory), state)

    def batch_size(self, state: SteppingState) -> int:
        """Return the number of items in the state."""
        return num_hypotheses(state)[0]

    @torch.no_grad()
    def step(
        self,
        state: SteppingState,
        tokens: Int[Tensor, "B K"],
        forced: Float[Tensor, "B K S"] | None = None,
    ) -> SearchStep:
        """Feed one token to every hypothesis.

        `forced` are probabilities of the positions that replace the decoder's prediction; they must be 0
        on padding.
        """
        memory, before = state
        places = memory.keys.vectors
        if forced is not None and forced.shape != (*tokens.shape, places.shape[1]):
            raise ShapeError(
                f"LatentStepper: forced weights must have shape {(*tokens.shape, places.shape[1])}, "
                f"items, hypotheses and positions, got {tuple(forced.shape)}. Pass a weight for every "
                f"position."
            )
        hidden, layers = self._advance.advance(before, tokens, memory)
        if forced is None:
            predicted = self._predicted(before.own, tokens, hidden, memory)
        else:
            predicted = forced.log()
        query = self._of_hidden.times(hidden.flatten(0, 1)).view(*tokens.shape, -1)
        log_probs, norms = self._summed(query, places, predicted)
        after = PlacesState(predicted, query, norms) if before.own is not None else None
        return SearchStep(
            SteppingState(memory, DecoderState(layers, after)), log_probs, predicted.exp()
        )

    def selection(
        self, state: SteppingState, tokens: Int[Tensor, "B K"]
    ) -> Bool[Tensor, "B K S"] | None:
        """Return None: a step reads one position, not segments."""
        return None

    def copy_probability(
        self, state: SteppingState, tokens: Int[Tensor, "B K"]
    ) -> Float[Tensor, "B K"] | None:
        """Return None: a step that sums over positions does not copy."""
        return None

    def reorder(self, state: SteppingState, parents: Int[Tensor, "B k"]) -> SteppingState:
        """Select hypotheses: hypothesis k of item b continues `parents[b, k]`; their number may change."""
        return reordered(state, parents)

    def keep(self, state: SteppingState, items: Int[Tensor, " b"]) -> SteppingState:
        """Select these items, in this order."""
        return kept(state, items)

    def _predicted(
        self, before: PlacesState | None, tokens: Tensor, hidden: Tensor, memory: Memory
    ) -> Float[Tensor, "B K S"]:
        """Compute log p(a_t | y_<t): the token determines the last position, the scores the next one."""
        scores = self._widened(scores_of(self._decoder.scorer, hidden, memory.keys.keys))
        if memory.mask is not None:
            scores = scores.masked_fill(~memory.mask.unsqueeze(1), -torch.inf)
        if before is None:
            return self._decoder.walk.predict(scores, scores)
        vectors = _vectors(before.query, memory.keys.vectors)
        emission = (vectors @ self._table[tokens].unsqueeze(-1)).squeeze(-1)
        emission += self._bias[tokens].unsqueeze(-1) - before.norms
        filtered = (before.predicted + emission).log_softmax(-1)
        return self._decoder.walk.predict(filtered, scores)

    def _summed(
        self,
        query: Float[Tensor, "B K A"],
        places: Float[Tensor, "B S A"],
        predicted: Float[Tensor, "B K S"],
    ) -> tuple[Float[Tensor, "B K W"], Float[Tensor, "B K S"]]:
        """Compute log p(w | y_<t) with the position summed out, and the norms at each position.

        It processes a few items at a time.
        """
        found, norms = [], []
        size = predicted[0].numel() * max(self.num_tokens, query.shape[-1])
        num_items = max(1, _TABLE // max(size, 1))
        for start in range(0, len(query), num_items):
            some = slice(start, start + num_items)
            vectors = _vectors(query[some], places[some])
            scores = self._output.plus(self._bias, vectors.flatten(0, 2))
            scores = scores.view(*vectors.shape[:3], -1)
            norms.append(scores.logsumexp(-1))
            # Subtract the norms from the prediction first, which saves a pass over the table.
            scores += (predicted[some] - norms[-1]).unsqueeze(-1)
            found.append(scores.logsumexp(-2))
        return torch.cat(found), torch.cat(norms)

    def _widened(self, part: Tensor) -> Tensor:
        """Convert to the dtype of the model, in which sums are computed."""
        return part.to(self._bias.dtype) if part.is_floating_point() else part


def _vectors(
    query: Float[Tensor, "B K A"], places: Float[Tensor, "B S A"]
) -> Float[Tensor, "B K S A"]:
    return (query.unsqueeze(2) + places.unsqueeze(1)).tanh_()
