"""The attention of a decoder in a plain model file.

Axes: H width of a query, V width of a value, A width of the hidden layer of an additive score.
"""

import math
from functools import singledispatch

from ...models import (
    AdditiveSpec,
    BilinearSpec,
    DotSpec,
    HardSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    LinearSpec,
    SegmentSpec,
    SigmoidSpec,
    SoftmaxSpec,
)
from ...models.parts._attention_specs import BaseAttentionSpec
from ...models.parts._scorer_specs import AbstractScorerSpec
from ..graphs._weights import Weights
from ._refusal import plain_refusal
from ._writer import Writer

SOFTMAX, SIGMOID, SEGMENT, HARD, LATENT_HARD, LATENT_MONOTONE = range(1, 7)
_DOT, _BILINEAR, _ADDITIVE, _LINEAR = range(1, 5)


@singledispatch
def attention_number(spec: BaseAttentionSpec) -> tuple[int, AbstractScorerSpec]:
    """Return the number of the kind of an attention, and its scorer; raise `ExportError` for an unknown kind."""
    raise plain_refusal("attention", spec)


@attention_number.register
def _(spec: SoftmaxSpec) -> tuple[int, AbstractScorerSpec]:
    return SOFTMAX, spec.scorer


@attention_number.register
def _(spec: SigmoidSpec) -> tuple[int, AbstractScorerSpec]:
    return SIGMOID, spec.scorer


@attention_number.register
def _(spec: SegmentSpec) -> tuple[int, AbstractScorerSpec]:
    return SEGMENT, spec.scorer


@attention_number.register
def _(spec: HardSpec) -> tuple[int, AbstractScorerSpec]:
    return HARD, spec.scorer


@attention_number.register
def _(spec: LatentHardSpec) -> tuple[int, AbstractScorerSpec]:
    return LATENT_HARD, spec.scorer


@attention_number.register
def _(spec: LatentMonotoneSpec) -> tuple[int, AbstractScorerSpec]:
    return LATENT_MONOTONE, spec.scorer


def scorer_weights(spec: BaseAttentionSpec, weights: Weights) -> Weights:
    """Return the weights of the scorer of an attention, from those of the decoder."""
    number, _ = attention_number(spec)
    if number in (LATENT_HARD, LATENT_MONOTONE):
        return weights.at("scorer")
    return weights.at("attention.scorer.inner" if number == SEGMENT else "attention.scorer")


@singledispatch
def scorer_number(spec: AbstractScorerSpec, weights: Weights) -> tuple[int, int]:
    """Return the number of the kind of a scorer, and the width A, 0 without a hidden layer."""
    del weights
    raise plain_refusal("scorer", spec)


@scorer_number.register
def _(spec: DotSpec, weights: Weights) -> tuple[int, int]:
    del spec, weights
    return _DOT, 0


@scorer_number.register
def _(spec: BilinearSpec, weights: Weights) -> tuple[int, int]:
    del spec, weights
    return _BILINEAR, 0


@scorer_number.register
def _(spec: AdditiveSpec, weights: Weights) -> tuple[int, int]:
    del spec
    return _ADDITIVE, len(weights["key.bias"])


@scorer_number.register
def _(spec: LinearSpec, weights: Weights) -> tuple[int, int]:
    del spec, weights
    return _LINEAR, 0


@singledispatch
def write_scorer(
    spec: AbstractScorerSpec, weights: Weights, query_size: int, writer: Writer
) -> None:
    """Write the weights of a scorer.

    Args:
        spec: Spec of the scorer.
        weights: Weights of the scorer.
        query_size: Width H.
        writer: Where to write.

    Raises:
        ExportError: Plain model files do not have this kind of scorer.
    """
    del weights, query_size, writer
    raise plain_refusal("scorer", spec)


@write_scorer.register
def _(spec: DotSpec, weights: Weights, query_size: int, writer: Writer) -> None:
    del weights
    writer.f32(1 / math.sqrt(query_size) if spec.scaled else 1.0)


@write_scorer.register
def _(spec: BilinearSpec, weights: Weights, query_size: int, writer: Writer) -> None:
    scale = 1 / math.sqrt(query_size) if spec.scaled else 1.0
    writer.matrix(weights["project.weight"] * scale)


@write_scorer.register
def _(spec: AdditiveSpec, weights: Weights, query_size: int, writer: Writer) -> None:
    del spec, query_size
    writer.matrix(weights["key.weight"])
    writer.vector(writer.rounded(weights["key.bias"]))
    writer.matrix(weights["query.weight"])
    writer.matrix(weights["combine.weight"])


@write_scorer.register
def _(spec: LinearSpec, weights: Weights, query_size: int, writer: Writer) -> None:
    del spec, query_size
    writer.matrix(weights["key.weight"])
    writer.matrix(weights["query.weight"])
