"""The recipe of summarization: truncation by sentence, and the settings of its cases."""

import pytest

from foveal.models import DecoderSpec, DocumentEncoderSpec
from foveal.tasks import TransductionSpec
from recipes import summarization


def test_sources_are_truncated_by_sentence() -> None:
    sentences = ["a b c", "", "d e", "f g"]
    assert summarization.truncated(sentences, 5) == ["a b c", "d e"]
    assert summarization.truncated(sentences, 6) == ["a b c", "d e"]
    assert summarization.truncated(sentences, 2) == ["a b"]


def test_words_are_lowercased_and_separated() -> None:
    assert summarization.words_of("It's (very) new.") == "it's ( very ) new ."


@pytest.mark.parametrize("case", summarization.CASES)
def test_cases_differ_in_their_decoder(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summarization, "part", lambda *_: None)
    task, system = summarization.recipe(case).task, case.partition("_")[2]
    assert isinstance(task, TransductionSpec)
    decoder = task.model.decoder
    assert isinstance(decoder, DecoderSpec)
    assert (decoder.attention is None) == (system == "none")
    assert decoder.copy == (system in ("copy", "coverage", "hierarchical"))
    assert (decoder.coverage, task.coverage > 0) == ((system == "coverage"),) * 2
    assert isinstance(task.model.encoder, DocumentEncoderSpec) == (system == "hierarchical")
