"""Pair classification with models that read the first text: traces, explanations and settings."""

import pytest
import torch

from foveal.data import Example
from foveal.data._example import Where
from foveal.errors import DataError
from foveal.models import (
    AttentiveReaderSpec,
    DecomposableAttentionSpec,
    GivenHeadsSpec,
    SegmentSpec,
    TextEncoderSpec,
    WordByWordSpec,
    WordEncoderSpec,
)
from foveal.specs import with_setting
from foveal.tasks import PairClassification, PairClassificationSpec, PredictionSpec
from foveal.tasks.explaining._explanation import Way
from tests.tasks.tiny import pairs, train


@pytest.mark.parametrize(
    ("model", "targets"),
    [
        (WordByWordSpec(embedding_size=8, hidden_size=8), ("old", "ship")),
        (WordByWordSpec(embedding_size=8, hidden_size=8, readers="last_word"), None),
        (AttentiveReaderSpec(encoder=TextEncoderSpec(embedding_size=8, hidden_size=8)), None),
    ],
    ids=["every word", "last word", "attentive reader"],
)
def test_a_text_that_is_read_is_traced_and_explained(
    model: WordByWordSpec | AttentiveReaderSpec, targets: tuple[str, ...] | None
) -> None:
    """The trace has a row for each reading word, or one row for the label."""
    task = PairClassificationSpec(model=model).build_from(pairs(10))
    example = Example("the good old ship\told ship", "yes")
    (prediction,) = task.predict([example], PredictionSpec(trace=True))
    trace = prediction.trace
    assert trace is not None
    assert trace.kind == "softmax"
    assert trace.sources == ("the", "good", "old", "ship")
    assert trace.targets == (targets or (prediction.output,))
    assert all(sum(row) == pytest.approx(1, abs=1e-5) for row in trace.weights)
    explanation = task.explain(example, Way())
    assert explanation.others == (trace,)
    assert explanation.sources == ("the", "good", "old", "ship", "old", "ship")
    looked = task.forced(task.collate([task.encode(each) for each in pairs(3)])).looked
    assert looked is not None
    torch.testing.assert_close(
        looked.weights.masked_fill(~looked.places.unsqueeze(-2), 0.0), looked.weights
    )


def test_a_pair_without_attention_has_no_trace() -> None:
    model = WordByWordSpec(embedding_size=8, hidden_size=8, readers="nothing")
    task = PairClassificationSpec(model=model).build_from(pairs(10))
    (prediction,) = task.predict([Example("a ship\tship")], PredictionSpec(trace=True))
    assert prediction.trace is None
    assert task.explain(Example("a ship\tship"), Way()).others == ()
    assert task.forced(task.collate([task.encode(each) for each in pairs(3)])).looked is None


def test_the_model_of_pairs_is_a_setting() -> None:
    """A model and its parts are reachable as `--set` gives them."""
    spec = with_setting(PairClassificationSpec(), "model", "word_by_word")
    spec = with_setting(spec, "model.attention", "segment")
    assert spec.model == WordByWordSpec(attention=SegmentSpec())
    reader = with_setting(PairClassificationSpec(), "model", "attentive_reader")
    assert with_setting(reader, "model.attention", "none").model.attention_kind is None


def headed_pairs() -> list[Example]:
    """Return pairs of texts that differ only in the head of the adjective, which determines the label."""
    first = {"yes": "old:2 ship:3 sails:0 home:3", "no": "old:4 ship:3 sails:0 home:3"}
    return [Example(f"{first[label]}\told:2 ship:0", label) for label in ("yes", "no")] * 8


def headed_task() -> PairClassification:
    torch.manual_seed(0)
    words = WordEncoderSpec(embedding_size=8, dropout=0.0)
    model = DecomposableAttentionSpec(encoder=GivenHeadsSpec(encoder=words), hidden_size=8)
    return PairClassificationSpec(model=model).build_from(headed_pairs())


def test_given_heads_distinguish_equal_words() -> None:
    task = headed_task()
    train(task, headed_pairs(), epochs=30, rate=1e-2)
    assert task.evaluate(headed_pairs()).value == 100


def test_given_heads_are_shown_and_not_read_as_words() -> None:
    task, example = headed_task(), headed_pairs()[0]
    assert task.symbols(example) == ["old", "ship", "sails", "home", "old", "ship"]
    assert "ship" in task.vocabularies.source
    explanation = task.explain(example, Way())
    between, first, second = explanation.others
    assert between.targets == first.sources == ("old", "ship", "sails", "home")
    assert first.kind == second.kind == "given_heads"
    assert first.weights == ((0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 0), (0, 0, 1, 0))
    erased = task.without_each(example, ["yes", "no"])
    assert erased.shape == (1 + 4 + 2, 2)
    (alone,) = task.predict([example])
    assert erased[0].max().item() == pytest.approx(alone.score, abs=1e-5)


@pytest.mark.parametrize("text", ["old ship:0", "old:3 ship:0", "old:x ship:0"])
def test_a_word_without_a_head_is_refused(text: str) -> None:
    example = Example(f"{text}\tship:0", "yes", where=Where("train.tsv", 3))
    with pytest.raises(DataError, match=r"train.tsv, line 3: token 'old.*from 0 \(root\) to 2"):
        headed_task().encode(example)
