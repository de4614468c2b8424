"""The second half of a search step: from the stack's outputs to the vector before the output layer.

    v = tanh( U [c; s] ) = tanh( U_c c + U_s s ),   U_c c = sum over positions of weight * ( U_c value )

A context is an expectation and linear in the values, so the values are multiplied with U_c once, not the
context of every step. For softmax attention with additive scores, the two products with s, the query and
U_s s, are combined.

A caller can force the attention weights, for "what if" questions: the context is then the sum of the values
with these weights, and no scores are computed.

Axes: B items, K hypotheses of each, S positions, H width of the stack's output, Q of the scorer, A of
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
from ..decoders._bahdanau import BahdanauDecoder
from ..decoders._decoder import (
    AbstractAttentionDecoder,
    AbstractDecoder,
    Attends,
    AttentionDecoder,
)
from ..decoders._history import history_scorer
from ..decoders._input_feeding import InputFeedingDecoder
from ..decoders._steps import Reading
from ..decoders._token_decoder import AbstractTokenDecoder
from ..decoders.transformer._decoder import TransformerDecoder
from ._matrix import Matrix


class Vectors(NamedTuple):
    """The input of the output layer for each hypothesis, and its attention weights."""

    vectors: Float[Tensor, "B K A"]
    weights: Float[Tensor, "B K S"] | None


class AbstractRead(ABC):
    """Computes vectors from the outputs of the stack."""

    @abstractmethod
    def remember(self, memory: Memory) -> Memory:
        """Compute the parts of the memory that every step needs."""

    @abstractmethod
    def read(
        self,
        hidden: Float[Tensor, "B K H"],
        memory: Memory,
        forced: Float[Tensor, "B K S"] | None = None,
    ) -> Vectors:
        """Attend to the memory; the hypotheses of an item are queries of one memory.

        `forced` are weights that replace the weights of the attention.
        """


def check_forced(
    decoder: AbstractTokenDecoder,
    forced: Float[Tensor, "B K S"],
    shape: tuple[int, ...],
    memory: Memory,
) -> None:
    """Check that a decoder supports forced weights, and that they match the hypotheses `shape`, (B, K)."""
    attentions = attentions_of(decoder)
    if not attentions or not all(map(_reads_a_sum, attentions)):
        raise ValueRangeError(
            f"DecoderStepper: forced weights need a decoder that reads a weighted sum of values, got "
            f"{type(decoder).__name__}. Remove the forced weights, or train with softmax or segment "
            f"attention."
        )
    expected = *shape, memory.values.shape[-2]
    if forced.shape != expected:
        raise ShapeError(
            f"DecoderStepper: forced weights must have shape {expected}, items, hypotheses and "
            f"positions, got {tuple(forced.shape)}. Pass a weight for every position."
        )


def _reads_a_sum(attention: Attends) -> bool:
    """Return whether the context is a sum of the values of the memory, weighted by the attention."""
    if isinstance(attention, HierarchicalAttention):
        levels = attention.words, attention.sentences
        return attention.between is None and all(map(_reads_a_sum, levels))
    head = attention.attention if isinstance(attention, MultiHead) else attention
    return isinstance(head, Attention) and isinstance(head.reader, _LINEAR)


def attention_of(decoder: AbstractTokenDecoder) -> Attends | None:
    """Return the attention of a decoder; None if it has none, or not one that its steps call."""
    if isinstance(decoder, AbstractAttentionDecoder | BahdanauDecoder):
        return decoder.attention
    return None


def attentions_of(decoder: AbstractTokenDecoder) -> tuple[Attends, ...]:
    """Return all attentions of a decoder to the memory."""
    if isinstance(decoder, TransformerDecoder):
        layers = decoder.layers_in_order()
        return tuple(attention for layer in layers for attention in layer.cross.in_order())
    attention = attention_of(decoder)
    return () if attention is None else (attention,)


def context_with(
    attention: Attends, weights: Float[Tensor, "B K S"], memory: Memory
) -> Float[Tensor, "B K V"]:
    """Compute the context for given weights, which all heads share."""
    if isinstance(attention, MultiHead):
        heads = weights.unsqueeze(-3) @ memory.values
        return attention.output(heads.transpose(-2, -3).flatten(-2))
    return weights @ memory.values


def mean_weights(attention: Attends, reading: Reading) -> Float[Tensor, "B K S"]:
    """Return one weight for each position: several heads give their mean."""
    return reading.weights.mean(-3) if isinstance(attention, MultiHead) else reading.weights


def prepare_read(decoder: AbstractDecoder, *, half: bool) -> AbstractRead:
    """Return the prepared form, if the decoder has one."""
    if isinstance(decoder, AttentionDecoder | InputFeedingDecoder) and (
        history_scorer(decoder.attention) is None
    ):
        attention = decoder.attention
        if isinstance(attention, Attention) and isinstance(attention.reader, _LINEAR):
            if attention.distribute == PerQuery(Categorical) and isinstance(
                attention.reader, ExpectedValue
            ):
                return SoftmaxRead(decoder, attention, half=half)
            return _ProjectedValues(decoder, attention, half=half)
    return _AsItIs(decoder)


# Readers whose context is only a weighted sum of values.
_LINEAR = ExpectedValue, ExpectedSelection, ExpectedPath, SampledValue


@final
class _AsItIs(AbstractRead):
    """Reads with any decoder, without preparation."""

    def __init__(self, decoder: AbstractDecoder) -> None:
        self._decoder = decoder

    @override
    def remember(self, memory: Memory) -> Memory:
        return memory

    @override
    @torch.no_grad()
    def read(self, hidden: Tensor, memory: Memory, forced: Tensor | None = None) -> Vectors:
        decoder = self._decoder
        if forced is not None:
            assert isinstance(decoder, AbstractAttentionDecoder)
            context = context_with(decoder.attention, forced, memory)
            return Vectors(torch.tanh(decoder.combine(torch.cat([context, hidden], -1))), forced)
        vectors, reading = decoder.read(hidden, memory)
        if reading is None:
            return Vectors(vectors, None)
        assert isinstance(decoder, AbstractAttentionDecoder)
        return Vectors(vectors, mean_weights(decoder.attention, reading))


@final
class _ProjectedValues(AbstractRead):
    """Prepared attention with one level and one head."""

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
    """The keys of a memory, with masks of its padding for the softmax, if there is any."""

    keys: Any
    shut: Float[Tensor, "B 1 S"] | None  # 0 on real positions, -inf on padding
    some: Float[Tensor, "B 1 1"] | None  # 0 for items with only padding, 1 for others


@final
class SoftmaxRead(AbstractRead):
    """Prepared softmax attention, the most common kind, with the fewest operations."""

    def __init__(
        self, decoder: AbstractAttentionDecoder, attention: Attention, *, half: bool
    ) -> None:
        of_context, of_hidden = _combine(decoder)
        self._scorer, self.weight, self._width = attention.scorer, None, 0
        if isinstance(attention.scorer, AdditiveScorer):
            query = attention.scorer.query.weight.detach().T
            self.weight, self._width = attention.scorer.combine.weight[0].detach(), query.shape[1]
            of_hidden = torch.cat([query, of_hidden], 1)
        self._of_context, self.of_hidden = (
            Matrix(of_context, half=half),
            Matrix(of_hidden, half=half),
        )
        # The kernel gives items with only padding the weights 0.
        self.in_kernels = self.weight is not None and self.of_hidden.packed is not None

    @override
    def remember(self, memory: Memory) -> Memory:
        mask, shut, some = memory.mask, None, None
        if mask is not None:
            real = mask.any(-1, keepdim=True)
            closed = ~mask if self.in_kernels else real & ~mask
            shut = memory.values.new_zeros(mask.shape).masked_fill_(closed, -torch.inf)
            shut = shut.unsqueeze(1)
            if not self.in_kernels and not bool(real.all()):
                some = real.to(shut.dtype).unsqueeze(1)
        values = _rows(self._of_context, memory.values)
        return memory._replace(values=values, mask=None, keys=_Places(memory.keys, shut, some))

    @override
    def read(self, hidden: Tensor, memory: Memory, forced: Tensor | None = None) -> Vectors:
        products = _rows(self.of_hidden, hidden)
        weights, (keys, shut, some) = forced, memory.keys
        if self.in_kernels and weights is None:
            return Vectors(
                *torch.ops.foveal_native.search_attend(
                    products, keys, self.weight, memory.values, shut
                )
            )
        if weights is None:
            scores = self._scores(hidden, products[..., : self._width], keys)
            weights = (scores if shut is None else scores + shut).softmax(-1)
            weights = weights if some is None else weights * some
        vectors = torch.baddbmm(products[..., self._width :], weights, memory.values)
        return Vectors(vectors.tanh_(), weights)

    def _scores(self, hidden: Tensor, query: Tensor, keys: Any) -> Float[Tensor, "B K S"]:
        if self.weight is not None:
            return additive_scores(query, keys, self.weight)
        with torch.no_grad():
            return scores_of(self._scorer, hidden, keys)


def _combine(
    decoder: AbstractAttentionDecoder,
) -> tuple[Float[Tensor, "V A"], Float[Tensor, "H A"]]:
    """Split U into its two parts, for the context and for the hidden vector."""
    both = decoder.combine.weight.detach().T
    size = len(both) - decoder.stack.output_size
    of_context, of_hidden = both.split([size, decoder.stack.output_size])
    return of_context, of_hidden


def _rows(matrix: Matrix, rows: Float[Tensor, "B K D"]) -> Float[Tensor, "B K G"]:
    """Multiply all rows in one product."""
    return matrix.times(rows.flatten(0, 1)).view(*rows.shape[:2], -1)
