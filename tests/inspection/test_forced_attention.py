"""Attention of a model while it is forced to write a given target."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from foveal.data import Example, FeaturesSpec, WhitespaceSpec
from foveal.errors import ValueRangeError
from foveal.inspection import forced_traces
from foveal.models import (
    AttentionSpec,
    DecoderSpec,
    HardSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    LocalSpec,
    MultiHeadSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SigmoidSpec,
    SoftmaxSpec,
    SparsemaxSpec,
    TextEncoderSpec,
)
from foveal.tasks import PredictionSpec, Transduction, TransductionSpec

EXAMPLES = [
    Example("a b c", "x y"),
    Example("c", "z z x y"),
    Example("b a", ""),
    Example("a c b a", "y x z"),
]
KINDS: list[AttentionSpec] = [
    SoftmaxSpec(),
    SigmoidSpec(),
    SegmentSpec(),
    SegmentSpec(total=2.0),
    LocalSpec(),
    SparsemaxSpec(),
    HardSpec(),
    LatentHardSpec(),
    LatentMonotoneSpec(),
    MultiHeadSpec(num_heads=2),
    MultiHeadSpec(num_heads=2, attention=SegmentSpec()),
]
TAKES_OR_LEAVES = ("sigmoid", "segment")


def build(attention: AttentionSpec | None, **choices: Any) -> Transduction:
    torch.manual_seed(0)
    spec = TransductionSpec(
        source=WhitespaceSpec(),
        target=WhitespaceSpec(),
        outputs="texts",
        model=Seq2SeqSpec(
            encoder=TextEncoderSpec(embedding_size=4, hidden_size=4),
            decoder=DecoderSpec(embedding_size=4, hidden_size=8, attention=attention, **choices),
        ),
        prediction=PredictionSpec(beam_size=1),
    )
    task = spec.build_from(EXAMPLES)
    for parameter in task.model.parameters():  # far from uniform attention
        parameter.data.mul_(4)
    return task


def name(attention: AttentionSpec) -> str:
    return attention.kind


@pytest.mark.parametrize("attention", KINDS, ids=name)
def test_each_symbol_has_a_row_and_the_end_has_the_last(attention: AttentionSpec) -> None:
    traces = forced_traces(build(attention), EXAMPLES)
    for example, trace in zip(EXAMPLES, traces, strict=True):
        assert trace.sources == tuple(example.text.split())
        assert trace.targets == (*(example.target or "").split(), "")
        assert trace.best is not None
        weights = np.array(trace.weights)
        assert weights.min() >= 0
        assert weights.max() <= 1 + 1e-6
        head = attention.attention if isinstance(attention, MultiHeadSpec) else attention
        if head.kind not in TAKES_OR_LEAVES:
            assert weights.sum(-1) == pytest.approx(1, abs=1e-5)
            assert (np.array(trace.best).sum(-1) == 1).all()


@pytest.mark.parametrize("attention", KINDS, ids=name)
def test_a_batch_changes_nothing(attention: AttentionSpec) -> None:
    task = build(attention)
    for example, together in zip(EXAMPLES, forced_traces(task, EXAMPLES), strict=True):
        (alone,) = forced_traces(task, [example])
        assert np.array(alone.weights) == pytest.approx(np.array(together.weights), abs=1e-5)
        assert alone.best == together.best


@pytest.mark.parametrize("choices", [{}, {"input_feeding": True}, {"attend": "before"}])
@pytest.mark.parametrize("attention", [SoftmaxSpec(), SegmentSpec()], ids=name)
def test_a_row_belongs_to_the_symbol_that_its_step_writes(
    attention: AttentionSpec, choices: dict[str, Any]
) -> None:
    """Given its own output, a model attends to the same positions as when it wrote the output."""
    task = build(attention, **choices)
    answers = task.predict(EXAMPLES, replace(task.prediction, trace=True, max_length=4))
    written = [replace(e, target=a.output) for e, a in zip(EXAMPLES, answers, strict=True)]
    for answer, trace in zip(answers, forced_traces(task, written), strict=True):
        assert answer.trace is not None
        assert trace.targets[:-1] == answer.trace.targets
        for free, forced in zip(answer.trace.weights, trace.weights, strict=False):
            assert forced == pytest.approx(free, abs=1e-5)


def test_the_best_path_of_monotone_attention_never_goes_back() -> None:
    for trace in forced_traces(build(LatentMonotoneSpec()), EXAMPLES):
        assert trace.best is not None
        places = [row.index(True) for row in trace.best]
        assert places == sorted(places)


def test_the_posterior_knows_the_symbol_that_is_written() -> None:
    """If attention is a latent variable that is summed out, the rows of a step depend on its token."""
    task = build(LatentHardSpec())
    one, other = forced_traces(task, [Example("a b c", "x y"), Example("a b c", "z y")])
    assert one.weights[0] != pytest.approx(other.weights[0], abs=1e-4)
    task = build(SoftmaxSpec())
    one, other = forced_traces(task, [Example("a b c", "x y"), Example("a b c", "z y")])
    assert one.weights[0] == pytest.approx(other.weights[0], abs=1e-6)


def test_features_are_left_out() -> None:
    examples = [Example("a b", "x", features="V;PST"), Example("b", "y", features="N")]
    spec = TransductionSpec(
        source=WhitespaceSpec(),
        target=WhitespaceSpec(),
        features=FeaturesSpec(),
        model=Seq2SeqSpec(
            encoder=TextEncoderSpec(embedding_size=4, hidden_size=4),
            decoder=DecoderSpec(embedding_size=4, hidden_size=8),
        ),
    )
    task = spec.build_from(examples)
    first, second = forced_traces(task, examples)
    assert (first.sources, second.sources) == (("a", "b"), ("b",))
    assert sum(first.weights[0]) < 1


def test_a_decoder_without_attention_looks_nowhere() -> None:
    with pytest.raises(ValueRangeError, match="with attention, got one without"):
        forced_traces(build(None), EXAMPLES)
