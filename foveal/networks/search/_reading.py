"""The second half of a step of search: from the stack's outputs to the vector before the output.

    v = tanh( U [c; s] ) = tanh( U_c c + U_s s ),   U_c c = sum over places of weight * ( U_c value )

A context is an expectation, linear in the values, so that the values of the memory go through U_c
once and no context of any step does. For softmax attention with additive scores the products with
s, the query and U_s s, are one.

What is read may be said from outside: with forced weights the context is their sum of the values,
and nothing is scored. "What if it had looked here?"

Axes: B items, K hypotheses of each, S places, H width of the stack's output, Q of the scorer, A of
the vector v.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from ...attention import (
    AdditiveScorer,
    Attention,
    ExpectedValue,
    HierarchicalAttention,
    Memory,
    MultiHead,
    additive_scores,
)
from ...attention._distribute import PerQuery
from ...attention._grids import ExpectedPath
from ...attention._hard import SampledValue
from ...attention._readers import ExpectedSelection
from ...attention._scorers import scores_of
from ...distributions import Categorical
from ...errors import ShapeError, ValueRangeError
from ..decoders._decoder import AbstractAttentionDecoder, AbstractDecoder, AttentionDecoder, Reading
from ..decoders._input_feeding import InputFeedingDecoder
from ._matrix import Matrix


class Vectors(NamedTuple):
    """What the output layer reads for each hypothesis, and what each has attended to."""

    vectors: Float[Tensor, "B K A"]
    weights: Float[Tensor, "B K S"] | None


class AbstractRead(ABC):
    """How the outputs of the stack become vectors."""

    @abstractmethod
    def remember(self, memory: Memory) -> Memory:
        """What every step needs of the memory."""

    @abstractmethod
    def read(
        self,
        hidden: Float[Tensor, "B K H"],
        memory: Memory,
        forced: Float[Tensor, "B K S"] | None = None,
    ) -> Vectors:
        """The hypotheses of an item are queries of its one memory; `forced` are weights to read with
        instead of the attention's own.
        """


def check_forced(
    decoder: AbstractDecoder,
    forced: Float[Tensor, "B K S"],
    shape: tuple[int, ...],
    memory: Memory,
) -> None:
    """Whether a decoder can read with given weights, and whether these are of the hypotheses
    `shape`, (B, K).
    """
    attention = decoder.attention if isinstance(decoder, AbstractAttentionDecoder) else None
    head = attention.attention if isinstance(attention, MultiHead) else attention
    if not isinstance(head, Attention) or not isinstance(head.reader, _LINEAR):
        raise ValueRangeError(
            f"DecoderStepper: attention can be forced where a decoder reads a context that is a sum "
            f"of values, got {type(decoder).__name__}, which reads none. "
            f"Leave the forced weights out, or train with softmax or segment attention."
        )
    expected = *shape, memory.values.shape[-2]
    if forced.shape != expected:
        raise ShapeError(
            f"DecoderStepper: forced weights must have shape {expected}, items, hypotheses and "
            f"places, got {tuple(forced.shape)}. Give a weight for every place."
        )


def prepare_read(decoder: AbstractDecoder, *, half: bool) -> AbstractRead:
    """The prepared form, for decoders that have one."""
    if isinstance(decoder, AttentionDecoder | InputFeedingDecoder):
        attention = decoder.attention
        if isinstance(attention, Attention) and isinstance(attention.reader, _LINEAR):
            if attention.distribute == PerQuery(Categorical) and isinstance(
                attention.reader, ExpectedValue
            ):
                return _Softmax(decoder, attention, half=half)
            return _ProjectedValues(decoder, attention, half=half)
    return _AsItIs(decoder)


# Readers whose context is a sum of values and nothing else.
_LINEAR = ExpectedValue, ExpectedSelection, ExpectedPath, SampledValue


@final
class _AsItIs(AbstractRead):
    """Any decoder."""

    def __init__(self, decoder: AbstractDecoder) -> None:
        self._decoder = decoder

    @override
    def remember(self, memory: Memory) -> Memory:
        return memory

    @override
    @torch.no_grad()
    def read(self, hidden: Tensor, memory: Memory, forced: Tensor | None = None) -> Vectors:
        if forced is not None:
            return Vectors(self._read_with(forced, hidden, memory), forced)
        vectors, reading = self._decoder.read(hidden, memory)
        return Vectors(vectors, None if reading is None else self._in_a_row(reading))

    def _read_with(self, weights: Tensor, hidden: Tensor, memory: Memory) -> Tensor:
        """The vectors for given weights; heads all read with the same."""
        decoder = self._decoder
        assert isinstance(decoder, AbstractAttentionDecoder)
        if isinstance(decoder.attention, MultiHead):
            heads = weights.unsqueeze(-3) @ memory.values
            context = decoder.attention.output(heads.transpose(-2, -3).flatten(-2))
        else:
            context = weights @ memory.values
        return torch.tanh(decoder.combine(torch.cat([context, hidden], -1)))

    def _in_a_row(self, reading: Reading) -> Float[Tensor, "B K S"]:
        """Weights of words in sentences as one row of places, those of heads by their mean."""
        assert isinstance(self._decoder, AbstractAttentionDecoder)
        attention, weights = self._decoder.attention, reading.weights
        if isinstance(attention, HierarchicalAttention):
            return weights.flatten(-2)
        return weights.mean(-3) if isinstance(attention, MultiHead) else weights


@final
class _ProjectedValues(AbstractRead):
    """Any attention of one level and one head."""

    def __init__(
        self, decoder: AbstractAttentionDecoder, attention: Attention, *, half: bool
    ) -> None:
        self._attention = attention
        of_context, of_hidden = _combine(decoder)
        self._of_context, self._of_hidden = (
            Matrix(of_context, half=half),
            Matrix(of_hidden, half=half),
        )

    @override
    def remember(self, memory: Memory) -> Memory:
        return memory._replace(values=_rows(self._of_context, memory.values))

    @override
    @torch.no_grad()
    def read(self, hidden: Tensor, memory: Memory, forced: Tensor | None = None) -> Vectors:
        if forced is None:
            context, weights, _ = self._attention(hidden, memory)
        else:
            context, weights = forced @ memory.values, forced
        return Vectors(_rows(self._of_hidden, hidden).add_(context).tanh_(), weights)


class _Places(NamedTuple):
    """The keys of a memory, with what softmax needs to know of its padding, if there is any."""

    keys: Any
    shut: Float[Tensor, "B 1 S"] | None  # 0 on real places, -inf on padding
    some: Float[Tensor, "B 1 1"] | None  # 0 for items all of whose places are padding, 1 for others


@final
class _Softmax(AbstractRead):
    """Softmax attention: the commonest, in as few operations as there can be."""

    def __init__(
        self, decoder: AbstractAttentionDecoder, attention: Attention, *, half: bool
    ) -> None:
        of_context, of_hidden = _combine(decoder)
        self._scorer, self._weight, self._width = attention.scorer, None, 0
        if isinstance(attention.scorer, AdditiveScorer):
            query = attention.scorer.query.weight.detach().T
            self._weight, self._width = attention.scorer.combine.weight[0].detach(), query.shape[1]
            of_hidden = torch.cat([query, of_hidden], 1)
        self._of_context, self._of_hidden = (
            Matrix(of_context, half=half),
            Matrix(of_hidden, half=half),
        )

    @override
    def remember(self, memory: Memory) -> Memory:
        mask, shut, some = memory.mask, None, None
        if mask is not None:
            real = mask.any(-1, keepdim=True)
            shut = memory.values.new_zeros(mask.shape).masked_fill_(real & ~mask, -torch.inf)
            shut = shut.unsqueeze(1)
            some = None if bool(real.all()) else real.to(shut.dtype).unsqueeze(1)
        values = _rows(self._of_context, memory.values)
        return memory._replace(values=values, mask=None, keys=_Places(memory.keys, shut, some))

    @override
    def read(self, hidden: Tensor, memory: Memory, forced: Tensor | None = None) -> Vectors:
        products = _rows(self._of_hidden, hidden)
        weights = forced
        if weights is None:
            keys, shut, some = memory.keys
            scores = self._scores(hidden, products[..., : self._width], keys)
            weights = (scores if shut is None else scores + shut).softmax(-1)
            weights = weights if some is None else weights * some
        vectors = torch.baddbmm(products[..., self._width :], weights, memory.values)
        return Vectors(vectors.tanh_(), weights)

    def _scores(self, hidden: Tensor, query: Tensor, keys: Any) -> Float[Tensor, "B K S"]:
        if self._weight is not None:
            return additive_scores(query, keys, self._weight)
        with torch.no_grad():
            return scores_of(self._scorer, hidden, keys)


def _combine(
    decoder: AbstractAttentionDecoder,
) -> tuple[Float[Tensor, "V A"], Float[Tensor, "H A"]]:
    """The two parts of U, which reads the context and the hidden vector side by side."""
    both = decoder.combine.weight.detach().T
    size = len(both) - decoder.stack.output_size
    of_context, of_hidden = both.split([size, decoder.stack.output_size])
    return of_context, of_hidden


def _rows(matrix: Matrix, rows: Float[Tensor, "B K D"]) -> Float[Tensor, "B K G"]:
    """One product of all rows."""
    return matrix.times(rows.flatten(0, 1)).view(*rows.shape[:2], -1)
