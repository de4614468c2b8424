"""Transformer decoder: embeddings, positions, and layers that read the tokens so far and the memory.

    x_t = sqrt(D) E[y_{t-1}],   v = norm( layer_L( ... layer_1(x + positions, memory) ) )
    p(y_t | y_<t) = softmax( W v_t + b )

Teacher forcing computes all steps in one pass. A step computes keys and values of one token and keeps them in the
state, where the next steps read them.

References: Vaswani et al. 2017; Xiong et al. 2020 (normalization before each part).

Axes: *batch any leading shape, T tokens, P tokens so far, S positions, D width of a token's vector, L layers, H heads,
d width of a head.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ....attention import Attended, Memory
from ....errors import ShapeError
from ..._dropout import Dropout
from ...encoders.transformer._layer import common_sizes
from ...encoders.transformer._positions import (
    Positions,
    Rotation,
    check_head_size,
    learned_positions,
    placed,
    rotation,
    token_positions,
)
from .._copying import CopyGate
from .._output import AbstractTokenOutput, EndOutput, TokenOutput
from .._steps import DecoderState, Step, TeacherForced
from .._vector_decoder import AbstractVectorDecoder
from ._cross_attention import CrossReading, HeadMemories
from ._layer import TransformerDecoderLayer


class Written(NamedTuple):
    """The tokens so far: their keys and values in every layer, and a mask of the real tokens."""

    keys: Float[Tensor, "*batch L H P d"]
    values: Float[Tensor, "*batch L H P d"]
    mask: Bool[Tensor, "*batch P"] | None = None  # None: all are real

    @property
    def num_tokens(self) -> int:
        """The number of tokens so far, with padding."""
        return self.keys.shape[-2]


class _Taught(NamedTuple):
    """The outputs of the last layer, the attention of each layer to the memory, and all tokens so far."""

    rows: Float[Tensor, "*batch T D"]
    readings: tuple[CrossReading, ...]
    written: Written


@final
class TransformerDecoder(AbstractVectorDecoder):
    """A decoder of layers of masked self-attention and attention to the memory.

    Its attention weights are those of the last layer, averaged over the heads; `cross_attentions` returns all of them.

    Args:
        embedding: Table of the token vectors, as wide as the layers; the output layer predicts the same tokens.
        layers: Layers, all of one width D and one number of heads.
        positions: How the order of the tokens enters: `rotary`, `learned` or `sinusoidal`.
        max_positions: Number of learned positions, the length of the longest output; ignored otherwise.
        tie_embeddings: Use the embedding as the weights of the output layer.
        copy: Copy tokens of the source; the memory must have `copies`, and the attention weights must sum to 1.
        point_end: Id of the end token, to generate only this token and copy all others (pointer network).
        dropout: Dropout probability of the sum of token vectors and positions.

    Raises:
        ShapeError: If there are no layers, if their sizes differ or are not the width of the embedding, or if rotary
            positions meet heads of odd width.

    Examples:
        >>> from foveal.attention import scaled_dot_scorer, softmax_attention
        >>> softmax = softmax_attention(4, 4, scaled_dot_scorer(4))
        >>> layers = [TransformerDecoderLayer(8, 6, [softmax, softmax], feed_forward_size=32)]
        >>> decoder = TransformerDecoder(nn.Embedding(9, 8), layers)
        >>> unrolled = decoder.unroll(torch.tensor([[1, 2, 3]]), Memory(torch.randn(1, 7, 6)))
        >>> unrolled.log_probs.shape, unrolled.weights.shape
        (torch.Size([1, 3, 9]), torch.Size([1, 3, 7]))
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        layers: Sequence[TransformerDecoderLayer],
        *,
        positions: Positions = "rotary",
        max_positions: int = 512,
        tie_embeddings: bool = False,
        copy: bool = False,
        point_end: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        size, self.head_size = common_sizes("TransformerDecoder", layers)
        check_head_size("TransformerDecoder", positions, self.head_size)
        if embedding.embedding_dim != size:
            raise ShapeError(
                f"TransformerDecoder: the embedding must be as wide as the layers, {size}, got "
                f"{embedding.embedding_dim}. Change the width of the embedding, or of the layers."
            )
        self.embedding, self.layers = embedding, nn.ModuleList(layers)
        self.learned = learned_positions(positions, max_positions, size)
        self.positions: Positions = positions
        self.norm = nn.LayerNorm(size)
        self.output: AbstractTokenOutput = (
            TokenOutput(size, embedding, tie_embeddings=tie_embeddings)
            if point_end is None
            else EndOutput(size, embedding.num_embeddings, point_end)
        )
        self.dropout = Dropout(dropout)
        self.copying = CopyGate(size) if copy or point_end is not None else None

    def layers_in_order(self) -> Iterator[TransformerDecoderLayer]:
        """Yield the layers, lowest first.

        Yields:
            A layer.
        """
        for layer in self.layers:
            assert isinstance(layer, TransformerDecoderLayer)
            yield layer

    @override
    def remember(self, memory: Memory) -> Memory:
        """Compute keys and values of the memory for every layer, once."""
        cleared = memory.cleared("TransformerDecoder")
        keys = tuple(layer.cross.remember(cleared) for layer in self.layers_in_order())
        return cleared._replace(keys=keys)

    @override
    def start(self, memory: Memory) -> DecoderState:
        """Return the state before the first token, which has no keys and values."""
        batch, num_heads = memory.values.shape[:-2], self.embedding.embedding_dim // self.head_size
        none = self.norm.weight.new_zeros(*batch, len(self.layers), num_heads, 0, self.head_size)
        return DecoderState((), Written(none, none))

    @override
    def step(self, state: DecoderState, token: Int[Tensor, "*batch"], memory: Memory) -> Step:
        vectors, attended, after = self._teach(token.unsqueeze(-1), memory, None, state)
        return Step(after, self.log_probs(vectors, attended, memory).squeeze(-2), attended[0])

    def cross_attentions(
        self,
        tokens: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
    ) -> tuple[Attended, ...]:
        """Return the attention to the memory of the heads of every layer, lowest layer first.

        Args:
            tokens: Token ids to read, the begin symbol first.
            memory: Encoded input; `remember` is called if the caller has not done so.
            mask: True on real tokens; None if all tokens are real.

        Returns:
            One result for each different attention of a layer, with weights `(*batch, h, T, S)` of its h heads.
        """
        memory = self._remembered(memory)
        taught = self._read(tokens, memory, mask, self.start(memory).own)
        return tuple(heads for reading in taught.readings for heads in reading.heads)

    def placed(
        self,
        tokens: Int[Tensor, "*batch T"],
        mask: Bool[Tensor, "*batch T"] | None,
        before: Written,
    ) -> tuple[Float[Tensor, "*batch T D"], Rotation | None]:
        """Return the input of the first layer, and the rotation if the positions are rotary.

        Args:
            tokens: New token ids.
            mask: True on real tokens; None if all tokens are real.
            before: The tokens before them.

        Returns:
            Vectors with positions after dropout, and the rotation of queries and keys; None for other positions.
        """
        index = token_positions(tokens.shape[-1], mask, tokens.device)
        if before.mask is None:
            index = index + before.num_tokens
        else:
            index = index + before.mask.sum(-1, keepdim=True)
        num_positions = before.num_tokens + tokens.shape[-1]
        vectors = self.embedding(tokens if mask is None else tokens.masked_fill(~mask, 0))
        vectors = placed(vectors, index, self.positions, self.learned, num_positions)
        is_rotary = self.positions == "rotary"
        turn = rotation(index, self.head_size, num_positions) if is_rotary else None
        return self.dropout(vectors), turn

    @override
    def _teach(
        self, tokens: Tensor, memory: Memory, mask: Tensor | None, state: DecoderState | None
    ) -> TeacherForced:
        """Compute the vectors of all steps in one pass."""
        before: Written = (self.start(memory) if state is None else state).own
        rows, readings, written = self._read(tokens, memory, mask, before)
        return TeacherForced(self.norm(rows), readings[-1:], DecoderState((), written))

    def _read(
        self, tokens: Tensor, memory: Memory, mask: Tensor | None, before: Written
    ) -> _Taught:
        rows, turn = self.placed(tokens, mask, before)
        allowed = _allowed(tokens.shape[-1], mask, before)
        all_keys, all_values, readings = [], [], []
        for number, layer in enumerate(self.layers_in_order()):
            query, keys, values = layer.causal.projected(layer.causal_norm(rows), turn)
            if before.num_tokens:
                keys = torch.cat([before.keys[..., number, :, :, :], keys], -2)
                values = torch.cat([before.values[..., number, :, :, :], values], -2)
            rows = rows + layer.dropout(layer.causal(query, keys, values, allowed))
            memories: HeadMemories = memory.keys[number]
            queries = layer.cross.queries(layer.cross_norm(rows))
            rows = rows + layer.dropout(layer.cross(queries, memories))
            rows = layer.fed_forward(rows)
            all_keys.append(keys)
            all_values.append(values)
            readings.append(CrossReading(layer.cross, queries, memories))
        written = Written(
            torch.stack(all_keys, -4), torch.stack(all_values, -4), _joined(mask, before, tokens)
        )
        return _Taught(rows, tuple(readings), written)


def _allowed(
    num_new: int, mask: Bool[Tensor, "*batch T"] | None, before: Written
) -> Bool[Tensor, "*#batch T P"] | None:
    """Return the tokens that each new token may read; None for all tokens up to itself.

    A real token never reads padding. Padding after the end is never read anyway, so it needs no mask.
    """
    if mask is not None and mask.is_cpu and bool((mask[..., 1:] <= mask[..., :-1]).all()):
        mask = None
    num_old, real = before.num_tokens, before.mask
    if mask is None and real is None and (num_old == 0 or num_new == 1):
        return None
    device = before.keys.device
    places = torch.arange(num_old + num_new, device=device)
    own = torch.arange(num_old, num_old + num_new, device=device).unsqueeze(-1)
    allowed = places <= own
    for part, some in ((real, slice(None, num_old)), (mask, slice(num_old, None))):
        if part is not None:
            allowed = allowed.expand(*part.shape[:-1], -1, -1).clone()
            allowed[..., some] &= part.unsqueeze(-2)
    # A padded token reads itself, because a softmax over nothing is undefined.
    return allowed | (places == own)


def _joined(
    mask: Bool[Tensor, "*batch T"] | None, before: Written, tokens: Int[Tensor, "*batch T"]
) -> Bool[Tensor, "*batch P"] | None:
    """Return the mask of all tokens; None if all are real."""
    if mask is None and before.mask is None:
        return None
    new = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
    old = before.mask
    if old is None:
        old = new.new_ones(*new.shape[:-1], before.num_tokens)
    return torch.cat([old, new], -1)
