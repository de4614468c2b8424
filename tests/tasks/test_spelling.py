"""Tagging with spelling features: unseen words are tagged by their spelling."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from foveal.bundles import load_bundle, save_bundle
from foveal.data import Encoded, Example, SpellingSpec
from foveal.data._batches import collate_tagged
from foveal.data.tokenizers._spelling import word_shape
from foveal.errors import ShapeError
from foveal.inspection import explain
from foveal.models import Tagger, TaggerSpec, TextEncoderSpec, WordEncoderSpec
from foveal.networks.encoders._spelled_embedding import SpelledEmbedding
from foveal.planning import recommend
from foveal.tasks import Tagging, TaggingSpec
from foveal.testing import check_model
from tests.tasks.tiny import ENCODER, train

pytestmark = pytest.mark.slow

STEMS = [a + b for a, b in itertools.product(("bel", "kor", "tam", "zur"), ("a", "ip", "on"))]
SPEC = TaggingSpec(
    model=TaggerSpec(encoder=ENCODER, feature_size=8, feature_dropout=0.2),
    spelling=SpellingSpec(num_buckets=500),
)
SEEN, UNSEEN = STEMS[:9], STEMS[9:]


def inflected(stems: list[str]) -> list[Example]:
    """Endings distinguish verbs from adverbs, capitals mark names; the stem carries no information."""
    words = [(f"{stem}ing", f"{stem}ly", stem.title()) for stem in stems]
    tags = ("VERB", "ADV", "NAME")
    orders = list(itertools.permutations(range(3)))
    return [
        Example(" ".join(row[i] for i in order), " ".join(tags[i] for i in order))
        for row in words
        for order in orders
    ]


@pytest.fixture(scope="module")
def learnt() -> Tagging:
    torch.manual_seed(1)
    task = SPEC.build_from(inflected(SEEN))
    train(task, inflected(SEEN), epochs=25, rate=2e-2, batch_size=20)
    task.model.eval()
    return task


def test_unseen_words_are_tagged_by_their_spelling(learnt: Tagging) -> None:
    torch.manual_seed(1)
    words_only = replace(SPEC, spelling=None).build_from(inflected(SEEN))
    train(words_only, inflected(SEEN), epochs=25, rate=2e-2, batch_size=20)
    assert words_only.evaluate(inflected(SEEN)).value == 100
    assert words_only.evaluate(inflected(UNSEEN)).value < 60
    assert learnt.evaluate(inflected(UNSEEN)).value == 100


def test_a_bundle_keeps_the_features(learnt: Tagging, tmp_path: Path) -> None:
    save_bundle(learnt, tmp_path)
    again = load_bundle(tmp_path)
    examples = inflected(UNSEEN)
    assert again.predict(examples) == learnt.predict(examples)


def test_company_changes_no_answer(learnt: Tagging) -> None:
    examples = [*inflected(UNSEEN), Example(""), Example("one " * 20), *inflected(SEEN)]
    together = learnt.predict(examples)
    assert [learnt.predict([example])[0] for example in examples] == together


def test_an_explanation_reads_the_features(learnt: Tagging) -> None:
    (example, *_) = inflected(UNSEEN)
    explanation = explain(learnt, example)
    assert [step.token for step in explanation.steps] == ["VERB", "ADV", "NAME"]
    assert min(step.probability for step in explanation.steps) > 0.5


@pytest.mark.parametrize(
    "encoder",
    [TextEncoderSpec(embedding_size=5, hidden_size=3), WordEncoderSpec(embedding_size=5)],
    ids=lambda spec: spec.kind,
)
def test_a_tagger_with_spelling_obeys_the_laws(encoder: TextEncoderSpec | WordEncoderSpec) -> None:
    torch.manual_seed(0)
    model = TaggerSpec(encoder=encoder, feature_size=3).build(
        vocabulary=9, num_tags=3, num_features=2, num_buckets=9
    )
    features = torch.randint(9, (4, 5, 2))

    class Spelled(torch.nn.Module):
        """Wrap the model as a function of tokens, and compute the features from the tokens."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
            return self.model(tokens, mask, features.flatten(0, 1)[tokens % 20]).marginals()

    check_model(Spelled(), torch.randint(9, (4, 5)), result=lambda found: found, aligned=0)


def test_features_are_left_out_in_training_only() -> None:
    embedding = SpelledEmbedding(9, 4, num_features=3, num_buckets=9, feature_size=2, dropout=0.5)
    inputs = torch.randint(9, (50, 4))
    kept = embedding(inputs)[:, 4:].unflatten(-1, (3, 2))
    gone = (kept == 0).all(-1)
    assert 0.3 < gone.float().mean() < 0.7
    assert (kept[~gone] == 2 * embedding.features(inputs[:, 1:])[~gone]).all()
    embedding.eval()
    assert (embedding(inputs)[:, 4:] != 0).all()


def test_features_that_do_not_fit_are_refused() -> None:
    words_only = TaggerSpec().build(vocabulary=9, num_tags=3)
    tokens, features = torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3, 4, dtype=torch.long)
    with pytest.raises(ShapeError, match=r"spelling must have the shape none, got \(2, 3, 4\)"):
        words_only(tokens, None, features)
    spelled = TaggerSpec().build(vocabulary=9, num_tags=3, num_features=2, num_buckets=9)
    with pytest.raises(ShapeError, match=r"spelling must have the shape \(2, 3, 2\), got none"):
        spelled(tokens)
    uneven = [Encoded([1, 2], [0, 0], spelling=[1, 2]), Encoded([1, 2], [0, 0])]
    with pytest.raises(ShapeError, match="every token needs the same number of spelling features"):
        collate_tagged(uneven)


def test_shapes_of_words() -> None:
    assert word_shape("") == ""
    assert word_shape("Ångström") == "Xxx"
    assert word_shape("2026-11-17") == "dd-dd-dd"
    assert len(word_shape("a1" * 50)) == 12


def test_tagging_is_recommended_with_spelling() -> None:
    found = recommend(inflected(SEEN))
    assert isinstance(found.task, TaggingSpec)
    assert found.task.spelling == SpellingSpec()
    assert any(path == "spelling" for path, _ in found.reasons)


def test_recall_is_tuned_for_the_best_span_f1() -> None:
    """A model that predicts O too often is adjusted; any other model stays unchanged."""
    names = [Example("see Bela now", "O B-X O"), Example("Bela", "B-X"), Example("see it", "O O")]
    found = recommend(names * 10)
    assert isinstance(found.task, TaggingSpec)
    assert found.task.tune_recall
    task = replace(SPEC, tune_recall=True).build_from(names)
    train(task, names, epochs=60, rate=2e-2)
    assert isinstance(task.model, Tagger)
    outside = task.model.unary.bias.detach()[1]
    learnt = float(outside)
    task.calibrate(names)
    assert float(outside) == learnt
    while task.evaluate(names).value == 100:
        outside += 0.5
    task.calibrate(names)
    assert task.evaluate(names).value == 100
