"""Pointing: outputs are tokens of the source, in training, in every search and in explanations."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from foveal.bundles import load_bundle, save_bundle
from foveal.data import BEGIN, END, Example, InMemory, WhitespaceSpec
from foveal.decoding import beam_search, greedy, sample
from foveal.errors import DataError, ValueRangeError
from foveal.models import (
    DecoderSpec,
    MultiHeadSpec,
    SegmentSpec,
    Seq2SeqSpec,
    TextEncoderSpec,
    WordEncoderSpec,
)
from foveal.models.parts._decoder_spec import END as END_OF_DECODER
from foveal.tasks import PredictionSpec, Transduction, TransductionSpec
from foveal.tasks.explaining._explanation import Way
from foveal.training import TrainingSpec
from foveal.training._fit import fit

EXAMPLES = [Example("w1 w2 w3", "w3 w2"), Example("w4 w5", "w5 w4"), Example("w2 w2", "w2")]
CHOICES: list[dict[str, Any]] = [
    {},
    {"input_feeding": True},
    {"attend": "before", "deep_output": True},
    {"attention": MultiHeadSpec(num_heads=2)},
    {"shift": 1},
]


def spec(**choices: Any) -> TransductionSpec:
    return TransductionSpec(
        source=WhitespaceSpec(),
        target=WhitespaceSpec(),
        outputs="texts",
        unseen_slots=3,
        label_smoothing=0.0,
        model=Seq2SeqSpec(
            encoder=TextEncoderSpec(embedding_size=8, hidden_size=8),
            decoder=DecoderSpec(embedding_size=8, hidden_size=16, point=True, **choices),
        ),
        prediction=PredictionSpec(beam_size=2),
    )


def random_task(seed: int, chosen: TransductionSpec) -> Transduction:
    """Build a task with large random weights."""
    torch.manual_seed(seed)
    task = chosen.build_from(EXAMPLES)
    task.model.eval()
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.normal_(std=0.7)
    return task


def test_the_end_is_the_end_of_the_vocabulary() -> None:
    assert END_OF_DECODER == END


@pytest.mark.parametrize("choices", CHOICES)
def test_probabilities_are_the_attention_and_the_end(choices: dict[str, Any]) -> None:
    task = random_task(0, spec(**choices))
    batch = task.collate([task.encode(each) for each in EXAMPLES])
    unrolled = task.model(batch.source, batch.source_mask, batch.tokens, batch.mask)
    weights, pointed = unrolled.weights, unrolled.copied
    assert weights is not None
    assert pointed is not None
    weights = weights.mean(1) if weights.ndim == 4 else weights
    for row, length in enumerate(batch.mask.sum(-1).tolist()):
        for step in range(length):
            expected = torch.zeros(task.model.num_tokens)
            expected[END] = 1 - pointed[row, step]
            for place, token in enumerate(batch.source[row].tolist()):
                expected[token] += pointed[row, step] * weights[row, step, place]
            torch.testing.assert_close(unrolled.log_probs[row, step].exp(), expected)


@pytest.mark.parametrize("choices", CHOICES)
def test_searches_score_as_teacher_forcing_does(choices: dict[str, Any]) -> None:
    task = random_task(1, spec(**choices))
    source = task.read([Example("w1 new w2", ""), Example("other w3 new", "")])
    how: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": 6}
    generator = torch.Generator().manual_seed(0)
    for found in (
        greedy(task.model.stepper(), task.model.start(*source), **how),
        beam_search(task.model.stepper(), task.model.start(*source), beam_size=3, **how),
        sample(task.model.stepper(), task.model.start(*source), generator=generator, **how),
    ):
        targets = found.tokens[:, 0]
        for row, tokens in enumerate(targets.tolist()):
            length = int(found.lengths[row, 0])
            assert set(tokens[:length]) <= {END, *source.tokens[row].tolist()}
        read = torch.cat([torch.full((2, 1), BEGIN), targets[:, :-1]], 1)
        real = torch.arange(targets.shape[1]) < found.lengths[:, 0, None]
        with torch.no_grad():
            scored = task.model.score(*source, read, targets, real)
        torch.testing.assert_close(
            found.totals[:, 0], scored.log_prob.sum(-1), rtol=1e-4, atol=1e-4
        )


def test_label_smoothing_spreads_over_the_tokens_of_the_source_and_the_end() -> None:
    task = random_task(2, spec())
    batch = task.collate([task.encode(EXAMPLES[0])])
    unrolled = task.model(batch.source, batch.source_mask, batch.tokens, batch.mask)
    possible = unrolled.log_probs[..., [END, *batch.source[0].tolist()]]
    right = unrolled.log_probs.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1)
    expected = -0.9 * right - 0.1 * possible.mean(-1)
    scored = task.model.score(
        batch.source,
        batch.source_mask,
        batch.tokens,
        batch.targets,
        batch.mask,
        label_smoothing=0.1,
    )
    torch.testing.assert_close(scored.loss, expected)
    scored.loss.sum().backward()
    gradients = [parameter.grad for parameter in task.model.parameters()]
    assert all(each is not None and bool(each.isfinite().all()) for each in gradients)


def test_a_model_learns_to_sort(tmp_path: Path) -> None:
    chance = Random(0)
    drawn = [chance.sample("abcdefgh", chance.randint(1, 4)) for _ in range(1000)]
    examples = [Example(" ".join(each), " ".join(sorted(each))) for each in drawn]
    decoder = DecoderSpec(embedding_size=16, hidden_size=32, point=True)
    model = Seq2SeqSpec(encoder=WordEncoderSpec(embedding_size=16, dropout=0.0), decoder=decoder)
    torch.manual_seed(1)
    task = replace(spec(), model=model).build_from(examples)
    training = TrainingSpec(steps=200, batch_size=16, learning_rate=1e-2, seed=1)
    stream = task.batches(InMemory(tuple(examples)), batch_size=training.batch_size, seed=1)
    fit(task, stream, examples[:20], training, tmp_path / "run")
    asked = [Example("d b g"), Example("h a"), Example("f e c a")]
    outputs = [answer.output for answer in task.predict(asked)]
    assert outputs == ["b d g", "a h", "a c e f"]
    trace = task.explain(asked[0], Way()).trace
    assert trace is not None
    assert trace.copied is not None
    assert trace.copied[0] > 0.5 > trace.copied[-1]  # points, and finally ends
    assert [row.index(max(row)) for row in trace.weights[:3]] == [1, 0, 2]
    save_bundle(task, tmp_path / "bundle")
    again = load_bundle(tmp_path / "bundle")
    assert [answer.output for answer in again.predict(asked)] == outputs


def test_a_target_outside_the_source_is_refused() -> None:
    task = spec().build_from(EXAMPLES)
    with pytest.raises(DataError, match="got the token 'w4' in the target 'w1 w4'"):
        task.encode(Example("w1 w2", "w1 w4"))


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"attention": None}, "point follows the attention"),
        ({"attention": SegmentSpec()}, "point needs attention weights that sum to 1"),
        ({"copy": True}, "got point and copy true"),
        ({"tie_embeddings": True}, "got point and tie_embeddings true"),
    ],
)
def test_settings_that_cannot_point_are_refused(choices: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueRangeError, match=says):
        spec(**choices).build_from(EXAMPLES)
