"""Copying: known mixtures, unseen tokens end to end, and every search compared with teacher
forcing.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.attention import Memory
from foveal.bundles import load_bundle, save_bundle
from foveal.data import BEGIN, Example, InMemory, WhitespaceSpec
from foveal.decoding import beam_search, greedy
from foveal.errors import ShapeError, ValueRangeError
from foveal.models import (
    DecoderSpec,
    LatentHardSpec,
    MultiHeadSpec,
    SegmentSpec,
    Seq2SeqSpec,
    TextEncoderSpec,
)
from foveal.networks.decoders._vector_decoder import AbstractVectorDecoder
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.tasks.explaining._explanation import Way
from foveal.training import TrainingSpec
from foveal.training._fit import fit

WORDS = [f"w{number}" for number in range(12)]


def spec(**choices: Any) -> TransductionSpec:
    return TransductionSpec(
        source=WhitespaceSpec(),
        target=WhitespaceSpec(),
        outputs="texts",
        unseen_slots=3,
        model=Seq2SeqSpec(
            encoder=TextEncoderSpec(embedding_size=8, hidden_size=8),
            decoder=DecoderSpec(embedding_size=8, hidden_size=16, copy=True, **choices),
        ),
        prediction=PredictionSpec(beam_size=2),
    )


EXAMPLES = [Example("w1 w2 w3", "w3 w2"), Example("w4 w5", "w5 w0 w4"), Example("w2 w2", "w2")]


def test_source_and_target_share_a_vocabulary() -> None:
    task = spec().build_from(EXAMPLES)
    assert task.vocabularies.source == task.vocabularies.target
    assert "w0" in task.vocabularies.source
    assert "w1" in task.vocabularies.source
    assert task.model.num_tokens == len(task.vocabularies.source) + 3


def test_unseen_tokens_have_slots_in_source_and_target() -> None:
    task = spec().build_from(EXAMPLES)
    first = len(task.vocabularies.source)
    encoded = task.encode(Example("new w1 other new a b", "other new w1 b absent"))
    known = task.vocabularies.source.encode(["w1"])[0]
    assert list(encoded.source) == [first, known, first + 1, first, first + 2, 1]
    assert list(encoded.target) == [first + 1, first, known, 1, 1]
    assert task.decode([first + 1, known, 3, first], Example("new other", "")) == ["other", "w1"]


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"input_feeding": True},
        {"attend": "before", "deep_output": True},
        {"attention": MultiHeadSpec(num_heads=2)},
    ],
)
def test_log_probabilities_are_the_mixture(choices: dict[str, Any]) -> None:
    """p = g P + (1 - g) attention sums to 1, and the loss is -log p of the targets."""
    torch.manual_seed(0)
    task = spec(**choices).build_from(EXAMPLES)
    task.model.eval()
    batch = task.collate([task.encode(each) for each in EXAMPLES])
    decoder = task.model.decoder
    memory = decoder.remember(task.model.encode(batch.source, batch.source_mask))
    unrolled = decoder.unroll(batch.tokens, memory, batch.mask)
    torch.testing.assert_close(
        unrolled.log_probs.exp().sum(-1)[batch.mask], torch.ones(int(batch.mask.sum()))
    )
    assert isinstance(decoder, AbstractVectorDecoder)
    decoder.copying, gate = None, decoder.copying
    plain = decoder.unroll(batch.tokens, memory, batch.mask).log_probs.exp()
    decoder.copying = gate
    weights = unrolled.weights
    assert unrolled.copied is not None
    assert weights is not None
    weights = weights.mean(1) if weights.ndim == 4 else weights
    for row, length in enumerate(batch.mask.sum(-1).tolist()):
        for step in range(length):
            copied = unrolled.copied[row, step]
            expected = (1 - copied) * plain[row, step]
            for place, token in enumerate(batch.source[row].tolist()):
                expected[token] += copied * weights[row, step, place]
            torch.testing.assert_close(
                unrolled.log_probs[row, step].exp(), expected, rtol=1e-5, atol=1e-6
            )
    scored = decoder.score(batch.tokens, batch.targets, memory, batch.mask)
    chosen = unrolled.log_probs.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1) * batch.mask
    torch.testing.assert_close(scored.log_prob, chosen, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(scored.loss, -chosen, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"input_feeding": True},
        {"attend": "before"},
        {"coverage": True},
        {"coverage": True, "input_feeding": True},
        {"coverage": True, "attend": "before"},
    ],
)
def test_searches_score_as_teacher_forcing_does(choices: dict[str, Any]) -> None:
    torch.manual_seed(1)
    task = spec(**choices).build_from(EXAMPLES)
    model = task.model.eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.7)
    source = task.read([Example("w1 new w2", ""), Example("other w3 new", "")])
    how: dict[str, Any] = {"begin": BEGIN, "end": 3, "max_length": 6}
    for search in (greedy, beam_search):
        found = search(model.stepper(), model.start(*source), **how)
        targets = found.tokens[:, 0]
        read = torch.cat([torch.full((2, 1), BEGIN), targets[:, :-1]], 1)
        real = torch.arange(targets.shape[1]) < found.lengths[:, 0, None]
        with torch.no_grad():
            scored = model.score(*source, read, targets, real)
        torch.testing.assert_close(
            found.totals[:, 0], scored.log_prob.sum(-1), rtol=1e-4, atol=1e-4
        )


def test_unseen_tokens_are_copied_after_training(tmp_path: Path) -> None:
    """The task is to repeat the source. Test words are unseen, and only copying can write them."""
    generator = torch.Generator().manual_seed(0)
    texts = [
        " ".join(WORDS[number] for number in torch.randint(12, (3,), generator=generator).tolist())
        for _ in range(300)
    ]
    # Rare words of the training set are unknown too; otherwise the copy slots would not be trained.
    examples = [Example(f"{text} only{n}", f"{text} only{n}") for n, text in enumerate(texts)]
    training = TrainingSpec(steps=400, batch_size=16, learning_rate=1e-2, seed=1)
    torch.manual_seed(1)
    task = replace(spec(), min_count=2).build_from(examples)
    stream = task.batches(InMemory(tuple(examples)), batch_size=training.batch_size, seed=1)
    fit(task, stream, examples[:20], training, tmp_path / "run")
    asked = [Example("w3 zebra w5 lion"), Example("tiger w1 w2 w4")]
    outputs = [answer.output for answer in task.predict(asked)]
    assert outputs == [example.text for example in asked]
    explained = task.explain(asked[0], Way())
    assert explained.output == asked[0].text
    assert explained.trace is not None
    assert explained.trace.copied is not None
    assert explained.trace.copied[1] > 0.5  # "zebra"
    save_bundle(task, tmp_path / "bundle")
    again = load_bundle(tmp_path / "bundle")
    assert [answer.output for answer in again.predict(asked)] == outputs


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"attention": None}, "copy follows the attention"),
        ({"attention": LatentHardSpec()}, "sums over all positions"),
        ({"attention": SegmentSpec()}, "sum to 1"),
    ],
)
def test_settings_that_cannot_copy_are_refused(choices: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueRangeError, match=says):
        spec(**choices).build_from(EXAMPLES)


def test_a_memory_without_tokens_and_two_vocabularies_are_refused() -> None:
    decoder = DecoderSpec(embedding_size=4, hidden_size=4, copy=True).build(9, 6, 6)
    with pytest.raises(ShapeError, match="copies"):
        decoder.unroll(torch.tensor([[1, 2]]), Memory(torch.randn(1, 3, 6)))
    with pytest.raises(ValueRangeError, match="one vocabulary"):
        Seq2SeqSpec(decoder=DecoderSpec(copy=True)).build(source_vocabulary=8, target_vocabulary=9)


def test_coverage_adds_its_loss_to_the_likelihood() -> None:
    """Only the weights of source positions count; the decoder may read features again."""
    torch.manual_seed(0)
    plain = spec().build_from(EXAMPLES)
    covered = replace(spec(), coverage=0.5).build_from(EXAMPLES)
    covered.model.load_state_dict(plain.model.state_dict())
    batch = plain.collate([plain.encode(each) for each in EXAMPLES])
    plain.model.eval()
    covered.model.eval()
    weights = plain.model(batch.source, batch.source_mask, batch.tokens, batch.mask).weights
    assert weights is not None
    again = sum(
        min(weights[row, step, place].item(), weights[row, :step, place].sum().item())
        for row, length in enumerate(batch.mask.sum(-1).tolist())
        for step in range(length)
        for place in range(weights.shape[2])
    )
    difference = covered.loss(batch).total - plain.loss(batch).total
    assert difference.item() == pytest.approx(0.5 * again, rel=1e-4)


def test_coverage_needs_an_attention() -> None:
    decoder = DecoderSpec(embedding_size=8, hidden_size=16, attention=None)
    chosen = replace(spec(), coverage=1.0, model=replace(spec().model, decoder=decoder))
    task = chosen.build_from(EXAMPLES)
    batch = task.collate([task.encode(each) for each in EXAMPLES])
    with pytest.raises(ValueRangeError, match="coverage need a decoder with attention"):
        task.loss(batch)
