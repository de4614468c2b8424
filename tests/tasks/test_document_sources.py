"""Documents in, text out: teacher forcing, searches, traces, explanations and bundles."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.attention import Layout
from foveal.bundles import load_bundle, save_bundle
from foveal.data import BEGIN, END, Document, Example, FeaturesSpec, WhitespaceSpec
from foveal.decoding import beam_search
from foveal.errors import ValueRangeError
from foveal.inspection.aligning._forced_attention import forced_traces
from foveal.inspection.explaining._erasure import change_without
from foveal.inspection.explaining._explanation_page import explanation_page
from foveal.models import (
    DecoderSpec,
    DocumentEncoderSpec,
    HierarchicalSpec,
    RecurrentSpec,
    Seq2SeqSpec,
    SigmoidSpec,
    SoftmaxSpec,
    TextEncoderSpec,
)
from foveal.tasks import PredictionSpec, Transduction, TransductionSpec
from foveal.tasks.explaining._explanation import Way

EXAMPLES = [
    Example(Document(("a b c", "d e")), "a e"),
    Example(Document(("f", "g h a b", "c")), "f c"),
    Example(Document(("b b",)), "b"),
    Example("h g f\n\nd", "h d"),
]
WORDS = TextEncoderSpec(embedding_size=6, hidden_size=5, dropout=0.0)
ENCODER = DocumentEncoderSpec(words=WORDS, sentences=RecurrentSpec(hidden_size=4, dropout=0.0))


def spec(encoder: Any = ENCODER, **choices: Any) -> TransductionSpec:
    decoder = DecoderSpec(embedding_size=6, hidden_size=8, dropout=0.0, **choices)
    return TransductionSpec(
        source=WhitespaceSpec(),
        target=WhitespaceSpec(),
        outputs="texts",
        label_smoothing=0.0,
        model=Seq2SeqSpec(encoder=encoder, decoder=decoder),
        prediction=PredictionSpec(beam_size=3, trace=True),
    )


def built(**choices: Any) -> Transduction:
    torch.manual_seed(0)
    task = spec(**choices).build_from(EXAMPLES)
    for parameter in task.model.parameters():  # far from uniform, so that differences are visible
        torch.nn.init.normal_(parameter)
    return task


CHOICES: dict[str, dict[str, Any]] = {
    "both levels": {"attention": HierarchicalSpec()},
    "both levels, copying": {"attention": HierarchicalSpec(), "copy": True},
    "both levels, before": {"attention": HierarchicalSpec(), "attend": "before"},
    "words": {"attention": SoftmaxSpec()},
    "words, input feeding": {"attention": SoftmaxSpec(), "input_feeding": True},
    "none": {"attention": None},
}


@pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)
def test_search_and_teacher_forcing_agree(choices: dict[str, Any]) -> None:
    task = built(**choices)
    task.model.eval()
    with task.answering():
        prepared, source = task.model.prepare(), task.read(EXAMPLES)
        found = beam_search(
            prepared.stepper,
            prepared.start(*source),
            begin=torch.full((len(EXAMPLES),), BEGIN),
            end=END,
            max_length=4,
            beam_size=2,
            with_weights=True,
        )
        tokens = found.tokens[:, 0]
        shifted = torch.cat([torch.full_like(tokens[:, :1], BEGIN), tokens[:, :-1]], 1)
        unrolled = task.model(*source, shifted)
    scores = unrolled.log_probs.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    real = torch.arange(tokens.shape[1]) < found.lengths[:, :1]
    torch.testing.assert_close(found.log_probs[:, 0][real], scores[real], rtol=1e-4, atol=1e-4)
    if choices["attention"] is not None:
        assert unrolled.weights is not None
        assert found.weights is not None
        torch.testing.assert_close(found.weights[:, 0][real], unrolled.weights[real])
        places = source.mask.flatten(1)
        assert (unrolled.weights.sum((0, 1))[~places.any(0)] == 0).all()
        torch.testing.assert_close(unrolled.weights.sum(-1), torch.ones(tokens.shape))


@pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)
def test_answers_do_not_depend_on_the_batch(choices: dict[str, Any]) -> None:
    task = built(**choices)
    together = task.predict(EXAMPLES)
    for example, one in zip(EXAMPLES, together, strict=True):
        alone = task.predict(example)
        assert (one.output, one.score, one.trace) == (alone.output, alone.score, alone.trace)
        assert task.predict(example, PredictionSpec(beam_size=1)).output is not None


def test_traces_have_the_words_of_each_sentence() -> None:
    found = built(attention=HierarchicalSpec()).predict(EXAMPLES[:2])
    first, second = found[0].trace, found[1].trace
    assert first is not None
    assert second is not None
    assert first.sources == ("a", "b", "c", "d", "e", "")
    assert (first.kind, first.layout) == ("hierarchical", Layout("sentences", 2, 3))
    assert second.layout == Layout("sentences", 3, 4)
    for row in first.weights:
        assert sum(row) == pytest.approx(1, abs=1e-5)
        assert row[5] == 0


def test_padding_does_not_change_the_loss() -> None:
    task = built(attention=HierarchicalSpec())
    encoded = [task.encode(example) for example in EXAMPLES]
    together = task.loss(task.collate(encoded)).total
    alone = sum(task.loss(task.collate([one])).total for one in encoded)
    torch.testing.assert_close(together, torch.as_tensor(alone))


def test_a_sentence_reaches_other_sentences_only_through_its_state() -> None:
    """The first half of a value belongs to the word, the second to its sentence in the document."""
    task = built(attention=HierarchicalSpec())
    task.model.eval()
    (one, _), (other, _) = (
        task.read([Example(Document((last, "a b")), None)]) for last in ("c d", "e d")
    )
    before, after = task.model.encode(one).values, task.model.encode(other).values
    assert torch.equal(before[:, 2:, :10], after[:, 2:, :10])
    assert not torch.equal(before[:, 2:, 10:], after[:, 2:, 10:])


def test_explanations_show_sentences_and_words() -> None:
    task = built(attention=HierarchicalSpec(), copy=True)
    example = EXAMPLES[1]
    explanation = task.explain(example, Way())
    assert explanation.sources == ("f", "g", "h", "a", "b", "c")
    whole, words = explanation.others
    assert whole.layout == Layout("sentences", 3, 4)
    assert sum(whole.weights[0]) == pytest.approx(1, abs=1e-4)
    assert words.sources == explanation.sources
    assert words.copied is not None
    change = change_without(task, example, [step.token for step in explanation.steps])
    assert change is not None
    assert change.shape == (6, len(explanation.steps))
    assert explanation_page(explanation, change).count("sentence 3:") == 1
    forced = task.explain(example, Way(forced={0: [0, 0, 0, 0, 0, 1]}))
    assert forced.steps[0].weights == (0, 0, 0, 0, 0, 1)


def test_a_bundle_gives_the_same_answers(tmp_path: Path) -> None:
    task = built(attention=HierarchicalSpec(words=SigmoidSpec()))
    save_bundle(task, tmp_path / "model")
    loaded = load_bundle(tmp_path / "model")
    assert loaded.spec == task.spec
    assert loaded.predict(EXAMPLES) == task.predict(EXAMPLES)


def test_a_text_encoder_reads_the_sentences_in_a_row() -> None:
    task = spec(WORDS).build_from(EXAMPLES)
    assert task.symbols(EXAMPLES[0]) == ["a", "b", "c", "d", "e"]
    assert task.layout(EXAMPLES[0]) == Layout()


def test_unsuitable_settings_are_errors() -> None:
    with pytest.raises(ValueRangeError, match="needs an encoder of documents, got encoder text"):
        spec(WORDS, attention=HierarchicalSpec()).build_from(EXAMPLES)
    for more in ({"features": FeaturesSpec()}, {"alignment_weight": 0.5}):
        with pytest.raises(ValueRangeError, match=f"{next(iter(more))} needs a source that is one"):
            replace(spec(), **more).build_from(EXAMPLES)
    with pytest.raises(ValueRangeError, match="got a model of documents"):
        forced_traces(built(), EXAMPLES)
