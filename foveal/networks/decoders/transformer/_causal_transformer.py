"""Causal Transformer: self-attention to the last tokens of a text, for language models.

    x_t = sqrt(D) E[y_{t-1}],   v = norm( layer_L( ... layer_1(x) ) )
    head_h(t) = attention_h( Q_h n_t, K_h n_{t-C+1..t}, V_h n_{t-C+1..t} ),   n = norm(x)
    p(y_t | y_<t) = softmax( W v_t + b )

A token reads itself and the C - 1 tokens before it, the context. The state has the keys and values of the last C - 1
tokens, so a text of any length is read in pieces, and the pieces give the values of the whole text. Keys are rotated
when they are read: a dot product of two tokens depends on their distance, and positions never leave the context. Heads
with another score function, for example an additive one, read unrotated tokens and do not know their order.

References: Vaswani et al. 2017; Dai et al. 2019 (keys and values of the previous piece); Su et al. 2021 (rotation).

Axes: *batch any leading shape, T new tokens, P all tokens that are read, D width of a token's vector, L layers, H heads,
d width of a head.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ....attention import Attended, Memory
from ....attention._distribute import PerQuery
from ....attention._grids import PerQueryOnGrid
from ....errors import ShapeError, ValueRangeError
from ..._dropout import Dropout
from ...encoders.transformer._layer import TransformerLayer, common_sizes
from ...encoders.transformer._positions import (
    check_head_size,
    placed,
    rotation,
    token_positions,
)
from .._output import TokenOutput
from .._steps import DecoderState, Step, TeacherForced
from .._vector_decoder import AbstractVectorDecoder
from ._causal_reading import CausalReading


class Window(NamedTuple):
    """The last tokens of a text: their keys before rotation and their values in every layer, and which are real."""

    keys: Float[Tensor, "*batch L P H d"]
    values: Float[Tensor, "*batch L P H d"]
    mask: Bool[Tensor, "*batch P"]

    @property
    def num_tokens(self) -> int:
        """The number of tokens, with padding."""
        return self.mask.shape[-1]


class _Taught(NamedTuple):
    """The outputs of the last layer, the attention of each layer, and the last tokens."""

    rows: Float[Tensor, "*batch T D"]
    readings: tuple[CausalReading, ...]
    window: Window


@final
class CausalTransformer(AbstractVectorDecoder):
    """A Transformer in which each token reads itself and the tokens before it. It has no source.

    Args:
        embedding: Table of the token vectors, as wide as the layers; the output layer predicts the same tokens.
        layers: Layers, all of one width D and one number of heads. The queries of every head must be independent, as in
            softmax, sigmoid, sparsemax, segment, local and hard attention.
        context: Number of tokens C that a token reads: itself and those before it.
        tie_embeddings: Use the embedding as the weights of the output layer.
        dropout: Dropout probability of the token vectors.

    Raises:
        ShapeError: If there are no layers, if their sizes differ or are not the width of the embedding, or if the width
            of a head is odd.
        ValueRangeError: If `context` is less than 1, or if a head makes one structure of all tokens, which would
            let a token depend on later ones.

    Examples:
        >>> from foveal.attention import scaled_dot_scorer, softmax_attention
        >>> from foveal.networks import TransformerLayer
        >>> softmax = softmax_attention(4, 4, scaled_dot_scorer(4))
        >>> layers = [TransformerLayer(8, [softmax, softmax], feed_forward_size=32)]
        >>> decoder = CausalTransformer(nn.Embedding(9, 8), layers, context=16)
        >>> tokens = torch.tensor([[1, 2, 3]])
        >>> decoder.unroll(tokens, Memory(torch.zeros(1, 0, 0))).log_probs.shape
        torch.Size([1, 3, 9])
        >>> decoder.self_attentions(tokens)[0].weights.shape
        torch.Size([1, 2, 3, 3])
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        layers: Sequence[TransformerLayer],
        *,
        context: int = 256,
        tie_embeddings: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        size, self.head_size = common_sizes("CausalTransformer", layers)
        check_head_size("CausalTransformer", "rotary", self.head_size)
        if embedding.embedding_dim != size:
            raise ShapeError(
                f"CausalTransformer: the embedding must be as wide as the layers, {size}, got "
                f"{embedding.embedding_dim}. Change the width of the embedding, or of the layers."
            )
        if context < 1:
            raise ValueRangeError(
                f"CausalTransformer: context must be at least 1, got {context}. Pass the number of tokens that a "
                f"token reads, with itself."
            )
        for layer in layers:
            _check_heads(layer)
        self.embedding, self.layers, self.context = embedding, nn.ModuleList(layers), context
        self.norm = nn.LayerNorm(size)
        self.output = TokenOutput(size, embedding, tie_embeddings=tie_embeddings)
        self.dropout = Dropout(dropout)
        self.copying = None

    @override
    def remember(self, memory: Memory) -> Memory:
        """Return the memory unchanged: the decoder reads only its own tokens."""
        return memory

    @override
    def start(self, memory: Memory) -> DecoderState:
        """Return the state before the first token, which has no keys and values."""
        return DecoderState((), self._empty(memory.values.shape[:-2]))

    @override
    def step(self, state: DecoderState, token: Int[Tensor, "*batch"], memory: Memory) -> Step:
        vector, after = self.advance(state, token)
        return Step(after, self.log_probs(vector.unsqueeze(-2), (), memory).squeeze(-2), None)

    def advance(
        self, state: DecoderState, token: Int[Tensor, "*batch"]
    ) -> tuple[Float[Tensor, "*batch D"], DecoderState]:
        """Read one more token.

        Args:
            state: State before the token.
            token: One token id for each item or hypothesis.

        Returns:
            The vector that predicts the next token, and the state after the token.
        """
        rows, _, window = self._read(token.unsqueeze(-1), None, state.own)
        return self.norm(rows).squeeze(-2), DecoderState((), window)

    def self_attentions(
        self, tokens: Int[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> tuple[Attended, ...]:
        """Return the attention of the heads of every layer, lowest layer first.

        Args:
            tokens: Token ids of a text from its first token.
            mask: True on real tokens; None if all tokens are real.

        Returns:
            One result for each different attention of a layer, with weights `(*batch, h, T, T)` of its h heads. The
            weights of later tokens, and of tokens before the context, are 0.
        """
        read = self._read(tokens, mask, self._empty(tokens.shape[:-1]))
        return tuple(heads for reading in read.readings for heads in reading.attended())

    @override
    def _teach(
        self, tokens: Tensor, memory: Memory, mask: Tensor | None, state: DecoderState | None
    ) -> TeacherForced:
        """Compute the vectors of all steps in one pass."""
        before: Window = (self.start(memory) if state is None else state).own
        rows, _, window = self._read(tokens, mask, before)
        return TeacherForced(self.norm(rows), (), DecoderState((), window))

    def _empty(self, batch: Sequence[int]) -> Window:
        like, num_heads = self.norm.weight, self.embedding.embedding_dim // self.head_size
        none = like.new_zeros(*batch, len(self.layers), 0, num_heads, self.head_size)
        return Window(none, none, none.new_zeros(*batch, 0, dtype=torch.bool))

    def _read(self, tokens: Tensor, mask: Tensor | None, before: Window) -> _Taught:
        new = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
        real = torch.cat([before.mask, new], -1)
        # Without padding, one mask and one rotation serve all texts. A GPU would have to wait for the answer.
        some = None if real.is_cpu and bool(real.all()) else real
        num_old, num_all = before.num_tokens, real.shape[-1]
        index = token_positions(num_all, some, tokens.device)
        allowed = self._allowed(index, some, num_old)
        turn = rotation(index, self.head_size, num_all)
        vectors = self.embedding(tokens.masked_fill(~new, 0))
        rows = self.dropout(placed(vectors, index[..., num_old:], "rotary", None))
        kept, all_keys, all_values, readings = _last(real, some, self.context - 1), [], [], []
        for number, layer in enumerate(self._layers_in_order()):
            query, keys, values = layer.projected(rows)
            keys = torch.cat([before.keys[..., number, :, :, :], keys], -3)
            values = torch.cat([before.values[..., number, :, :, :], values], -3)
            reading = CausalReading(layer, query, keys, values, turn, allowed)
            rows = layer.finished(rows, reading.contexts())
            all_keys.append(kept.of(keys))
            all_values.append(kept.of(values))
            readings.append(reading)
        window = Window(torch.stack(all_keys, -4), torch.stack(all_values, -4), kept.mask)
        return _Taught(rows, tuple(readings), window)

    def _allowed(
        self, index: Int[Tensor, "*#batch P"], real: Tensor | None, num_old: int
    ) -> Bool[Tensor, "*#batch T P"]:
        """Return True where a new token reads a token: a real one of its context."""
        distance = index[..., num_old:].unsqueeze(-1) - index.unsqueeze(-2)
        allowed = (distance >= 0) & (distance < self.context)
        if real is None:
            return allowed
        # A padded token reads itself, because a softmax over nothing is undefined.
        places = torch.arange(real.shape[-1], device=real.device)
        itself = places[num_old:].unsqueeze(-1) == places
        return allowed & real.unsqueeze(-2) | itself

    def _layers_in_order(self) -> Iterator[TransformerLayer]:
        for layer in self.layers:
            assert isinstance(layer, TransformerLayer)
            yield layer


class _Kept(NamedTuple):
    """The last real tokens of each text: all of them as a slice, or their places if there is padding."""

    mask: Bool[Tensor, "*batch k"]
    places: Int[Tensor, "*batch k"] | None

    def of(self, parts: Float[Tensor, "*batch P H d"]) -> Float[Tensor, "*batch k H d"]:
        """Select the keys or values of these tokens."""
        if self.places is None:
            return parts[..., parts.shape[-3] - self.mask.shape[-1] :, :, :]
        index = self.places[..., None, None].expand(*self.places.shape, *parts.shape[-2:])
        return parts.gather(-3, index)


def _last(real: Bool[Tensor, "*batch P"], some: Tensor | None, most: int) -> _Kept:
    """Return the last real tokens of each text, at most `most`; padding comes before them."""
    first = real.shape[-1] - min(most, real.shape[-1])
    if some is None:
        return _Kept(real[..., first:], None)
    places = real.int().argsort(dim=-1, stable=True)[..., first:]
    return _Kept(real.gather(-1, places), places)


def _check_heads(layer: TransformerLayer) -> None:
    """Raise an error if the queries of a head are not independent."""
    for attention in layer.in_order():
        if not isinstance(attention.distribute, PerQuery | PerQueryOnGrid):
            raise ValueRangeError(
                "CausalTransformer: expected heads whose queries are independent (distribute=per_query(...)), got one "
                "that makes a single structure of all tokens, in which a token would depend on later ones. Use "
                "softmax, sigmoid, sparsemax, segment, local or hard attention."
            )
