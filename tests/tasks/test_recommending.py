"""The recommended spec for a corpus: the right task, sizes by the number of examples, and a reason
for each.
"""

import random
from collections.abc import Callable

import pytest

from foveal.data import Example, WhitespaceSpec, tsv
from foveal.errors import DataError
from foveal.models import ClassifierSpec, DecoderSpec, LatentHardSpec, SoftmaxSpec, TextEncoderSpec
from foveal.planning import recommend
from foveal.planning._choices import Planned
from foveal.planning._drafting import with_given
from foveal.planning._recommending import Reason
from foveal.planning._shared_tokens import shared_tokens
from foveal.specs import settings
from foveal.tasks import ClassificationSpec, LanguageModelingSpec, TaggingSpec, TransductionSpec
from foveal.training import Run, TrainingSpec
from tests.tasks.tiny import sentences, upper_cased

pytestmark = pytest.mark.slow

WORDS = ["river", "stone", "walks", "green", "under", "bridge", "seldom", "paper"]


def pronounced(size: int) -> list[Example]:
    return [Example(e.text, " ".join(e.text)) for e in upper_cased(size, longest=8)]


def translated(size: int) -> list[Example]:
    generator = random.Random(0)
    rows = [generator.choices(WORDS, k=generator.randint(3, 9)) for _ in range(size)]
    return [Example(" ".join(row), " ".join(reversed(row))) for row in rows]


def test_words_of_phones() -> None:
    found = recommend(pronounced(800))
    assert isinstance(found.task, TransductionSpec)
    assert found.task.outputs == "words"
    assert isinstance(found.task.model.encoder, TextEncoderSpec)
    assert found.task.model.encoder.embedding_size == 64
    assert found.task.model.decoder.attention == LatentHardSpec()
    assert found.training["epochs"] == 100
    assert found.task.prediction.length_penalty == 0


def test_more_words_get_wider_networks_and_fewer_readings() -> None:
    few, many = recommend(pronounced(800)), recommend(pronounced(8000))
    assert isinstance(few.task, TransductionSpec)
    assert isinstance(many.task, TransductionSpec)
    narrow, wide = few.task.model.decoder, many.task.model.decoder
    assert isinstance(narrow, DecoderSpec)
    assert isinstance(wide, DecoderSpec)
    assert wide.hidden_size > narrow.hidden_size
    assert wide.dropout < narrow.dropout
    assert wide.attention == SoftmaxSpec()
    assert many.training["epochs"] == 25


def test_copying_is_mentioned_where_targets_repeat_their_sources() -> None:
    inflected = [Example(e.text, e.text + "ed", "V;PST") for e in upper_cased(200, longest=8)]
    found = recommend(inflected)
    assert isinstance(found.task, TransductionSpec)
    assert isinstance(found.task.model.decoder, DecoderSpec)
    assert not found.task.model.decoder.copy
    (why,) = (each.sentence for each in found.reasons if each.path == "model.decoder.copy")
    assert "% of the target tokens (mean over the different tokens) occur in their source" in why
    assert "not for characters" in why
    added = "--attention softmax --set decoder.copy=true --set task.label_smoothing=0"
    assert why.endswith(f"add {added}")
    others = recommend(pronounced(200)).reasons
    assert not [each for each in others if each.path == "model.decoder.copy"]


def test_a_decoder_of_many_inflected_forms_copies() -> None:
    """New kanji are unknown letters of a lemma; the model writes them only if it copies."""
    inflected = [Example(e.text, e.text + "ed", "V;PST") for e in upper_cased(3_000, longest=8)]
    found = recommend(inflected)
    assert isinstance(found.task, TransductionSpec)
    decoder = found.task.model.decoder
    assert isinstance(decoder, DecoderSpec)
    assert decoder.copy
    assert decoder.bridge == "both"
    assert decoder.attention == SoftmaxSpec()
    assert found.task.label_smoothing == 0
    assert found.task.min_count == 15
    told = {reason.path for reason in found.reasons}
    assert {"model.decoder.copy", "model.decoder.bridge", "min_count", "label_smoothing"} <= told
    without = recommend([Example(e.text, e.target) for e in inflected])
    assert isinstance(without.task, TransductionSpec)
    assert without.task.min_count == 1
    assert without.task.model.decoder == DecoderSpec(
        embedding_size=128, hidden_size=256, dropout=0.3
    )


@pytest.mark.parametrize(("size", "more"), [(60, " --set task.min_count=2"), (3_000, "")])
def test_the_settings_of_copying_fit_the_words_of_a_corpus(size: int, more: str) -> None:
    found = recommend(translated(size))
    (why,) = (each.sentence for each in found.reasons if each.path == "model.decoder.copy")
    assert "COGS" in why
    added = "--set decoder.copy=true --set task.label_smoothing=0"
    assert why.endswith(f"add {added}{more}")
    planned = Planned(
        Run(task=found.task, train=tsv("words.tsv"), training=TrainingSpec(epochs=1.0)), ()
    )
    for change in why.rpartition("add --set ")[2].split(" --set "):
        planned = with_given(planned, change)
    changed = planned.run.task
    assert isinstance(changed, TransductionSpec)
    assert isinstance(changed.model.decoder, DecoderSpec)
    assert changed.model.decoder.copy
    assert changed.min_count == 2
    assert changed.label_smoothing == 0


def test_frequent_marks_do_not_hide_tokens_to_copy() -> None:
    """Brackets are most of the target, but the names in them are those of the source."""
    names = ["ann", "ben", "cleo", "dora"]
    forms = [Example(f"{name} ran", f"( ( ran ( {name} ) ) )") for name in names]
    assert shared_tokens(WhitespaceSpec(), WhitespaceSpec(), forms) == pytest.approx(5 / 7)
    assert shared_tokens(WhitespaceSpec(), WhitespaceSpec(), [Example("a", "")]) == 0


def test_texts() -> None:
    found = recommend(translated(400))
    assert isinstance(found.task, TransductionSpec)
    assert found.task.outputs == "texts"
    assert found.task.model.decoder.attention == SoftmaxSpec()
    assert found.task.prediction.length_penalty > 0


def test_labels() -> None:
    examples = [
        Example(example.text, "long" if len(example.text) > 40 else "short")
        for example in translated(300)
    ]
    assert isinstance(recommend(examples).task, ClassificationSpec)


def test_labels_of_texts_with_many_words() -> None:
    """Words are recommended where another task would get subwords: few examples train words better."""
    generator = random.Random(0)
    texts = [
        " ".join("".join(generator.choices("abcdefgh", k=6)) for _ in range(8)) for _ in range(300)
    ]
    found = recommend([Example(text, text[0]) for text in texts])
    assert isinstance(found.task, ClassificationSpec)
    assert found.task.source.kind == "whitespace"
    (why,) = [sentence for path, sentence in found.reasons if path == "source"]
    assert "whole words" in why


def test_texts_of_several_lines_are_read_as_documents() -> None:
    reviews = [Example(f"it was {w} .\nwe liked it .\nwe stayed .", w) for w in "abcd" * 10]
    found = recommend(reviews)
    assert found.task.kind == "classification"
    assert isinstance(found.task, ClassificationSpec)
    assert isinstance(found.task.model, ClassifierSpec)
    assert found.task.model.encoder.kind == "document"
    found.task.build_from(reviews)


def test_long_texts_on_one_line_are_read_flat_and_the_reason_says_what_to_do() -> None:
    found = recommend([Example(f"it was {word} . " * 50, word) for word in "abcd" * 10])
    assert found.task.kind == "classification"
    assert isinstance(found.task, ClassificationSpec)
    assert isinstance(found.task.model, ClassifierSpec)
    assert found.task.model.encoder.kind == "text"
    (reason,) = [one.sentence for one in found.reasons if one.path == "model.encoder"]
    assert "200 words per text" in reason
    assert "JSON Lines" in reason


def test_tags_and_plain_text() -> None:
    assert isinstance(recommend(sentences(50)).task, TaggingSpec)
    plain = [Example(example.source) for example in translated(50)]
    assert isinstance(recommend(plain).task, LanguageModelingSpec)


@pytest.mark.parametrize("size", [40, 4000])
@pytest.mark.parametrize("corpus", [pronounced, translated, sentences])
def test_reasons_are_about_settings_that_there_are(
    corpus: Callable[[int], list[Example]], size: int
) -> None:
    found = recommend(corpus(size))
    paths = {setting.path for setting in settings(found.task)} | {"kind"}
    for path, sentence in found.reasons:
        own = path.startswith("training.") and path.removeprefix("training.") in found.training
        assert own or any(known == path or known.startswith(f"{path}.") for known in paths), path
        assert len(sentence) > 10
    told = {reason.path for reason in found.reasons}
    assert {f"training.{name}" for name in found.training} <= told
    assert {"kind", "model.encoder.hidden_size"} <= told
    assert isinstance(found.reasons[0], Reason)


def test_no_batch_is_too_small_for_the_longest() -> None:
    examples = [*pronounced(50), Example("a" * 900, "b " * 900)]
    assert recommend(examples).training["batch_tokens"] >= 2 * 1800


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(DataError):
        recommend([])
