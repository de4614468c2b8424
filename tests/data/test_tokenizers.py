"""Tokenizers restore any text; vocabularies always number tokens the same way."""

import json
import unicodedata

import pytest
import regex
from hypothesis import given, settings, strategies as st

from foveal import specs
from foveal.data import (
    END,
    CharacterSpec,
    FeaturesSpec,
    SentencePieceSpec,
    TokenizerSpec,
    Vocabulary,
    WhitespaceSpec,
)
from foveal.data.vocabularies._vocabulary import PADDING, UNKNOWN, Labels
from foveal.errors import DataError, SpecError
from foveal.runtime.text._text import _ARE_MARKED_LETTERS

pytestmark = pytest.mark.slow

TEXTS = st.text(max_size=30) | st.text("ab \u0301\u0327\u00a0가ㄱ\U0001f1ee🏽‍कि\r\n,;", max_size=20)


@given(TEXTS)
def test_characters_give_the_text_back(text: str) -> None:
    for spec in (CharacterSpec(), CharacterSpec(unit="code_point")):
        assert spec.decode(spec.encode(text)) == text
    dropped = CharacterSpec(spaces="drop")
    assert dropped.decode(dropped.encode(text)) == "".join(text.split())


@given(TEXTS)
def test_characters_are_graphemes(text: str) -> None:
    assert CharacterSpec().encode(text) == regex.findall(r"\X", text)


def test_every_character_that_is_taken_for_a_letter_is_a_grapheme() -> None:
    """This holds next to a letter and a mark, on either side, for all of Unicode."""
    encode, expected = CharacterSpec().encode, regex.compile(r"\X").findall
    letters = [chr(code) for code in range(0x110000) if _ARE_MARKED_LETTERS(chr(code))]
    assert len(letters) > 30_000
    for letter in letters:
        text = f"a{letter}\u0301{letter}a"
        if encode(text) != expected(text):
            pytest.fail(f"U+{ord(letter):04X}")


@given(TEXTS)
def test_words_give_the_text_back_but_for_the_width_of_spaces(text: str) -> None:
    spec = WhitespaceSpec()
    tokens = spec.encode(text)
    assert spec.encode(spec.decode(tokens)) == tokens
    joined = text.translate({0xA0: "x", 0x2007: "x", 0x202F: "x"})
    assert [len(token) for token in tokens] == [len(word) for word in joined.split()]


@given(st.lists(st.text("ABC12()", min_size=1), max_size=5))
def test_features_give_the_text_back(features: list[str]) -> None:
    for spec in (FeaturesSpec(), FeaturesSpec(separator="|")):
        assert spec.encode(spec.decode(features)) == features


def test_features_without_anything_between() -> None:
    assert FeaturesSpec().encode(" V ;;PST;") == ["V", "PST"]
    assert FeaturesSpec().encode("") == []


@given(TEXTS)
def test_a_normal_form(text: str) -> None:
    for form in ("NFC", "NFD"):
        for spec in (CharacterSpec(normalization=form), WhitespaceSpec(normalization=form)):
            other = unicodedata.normalize("NFD" if form == "NFC" else "NFC", text)
            assert spec.encode(other) == spec.encode(text)


@pytest.fixture(scope="module")
def subwords() -> SentencePieceSpec:
    words = ["lower", "newer", "wider", "low", "new", "wide", "the newest", "the widest", "über"]
    return SentencePieceSpec(num_pieces=300).trained_on(words * 20)


@given(text=st.text(st.characters(exclude_characters="\u2581\0", codec="utf-8"), max_size=30))
@settings(deadline=None)
def test_subwords_give_any_text_back(subwords: SentencePieceSpec, text: str) -> None:
    assert subwords.decode(subwords.encode(text)) == text


def test_subwords_are_learnt_and_kept(subwords: SentencePieceSpec) -> None:
    assert len(subwords.encode("the newest")) < len("the newest") / 2
    again = specs.from_json(TokenizerSpec, specs.to_json(subwords))
    assert again == subwords
    assert again.encode("the newest") == subwords.encode("the newest")
    assert SentencePieceSpec(num_pieces=300).trained_on(["a b"] * 9) == SentencePieceSpec(
        num_pieces=300
    ).trained_on(["a b"] * 9)


def test_subwords_that_are_none() -> None:
    with pytest.raises(DataError, match=r"the tokenizer is not trained.*trained_on"):
        SentencePieceSpec().encode("a")
    with pytest.raises(DataError, match=r"cannot train 8000 subwords.*Use more text"):
        SentencePieceSpec().trained_on([])
    with pytest.raises(DataError, match="invalid sentencepiece model"):
        SentencePieceSpec(model="anything").encode("a")


def test_a_tokenizer_is_a_spec() -> None:
    for spec in (CharacterSpec(spaces="drop"), WhitespaceSpec(), FeaturesSpec(separator="|")):
        assert specs.from_json(TokenizerSpec, specs.to_json(spec)) == spec
    with pytest.raises(SpecError, match="Did you mean characters"):
        specs.from_json(TokenizerSpec, '{"kind": "character"}')


@given(st.lists(st.lists(st.text(max_size=2), max_size=6), max_size=6))
def test_a_vocabulary_numbers_what_it_counted(texts: list[list[str]]) -> None:
    vocabulary = Vocabulary.count(texts)
    assert sorted(vocabulary.tokens) == sorted({token for text in texts for token in text})
    assert len(vocabulary) == 4 + len(vocabulary.tokens)
    for text in texts:
        numbers = vocabulary.encode(text)
        assert all(4 <= number < len(vocabulary) for number in numbers)
        assert vocabulary.decode([2, *numbers, 3, 0, 0, 4]) == text
    assert vocabulary == Vocabulary.from_json(json.dumps(json.loads(vocabulary.to_json())))
    assert vocabulary == Vocabulary.count(reversed(texts))


def test_the_most_frequent_come_first() -> None:
    texts = [["b"], ["a", "c", "c"], ["b", "d", "<end>"]]
    assert Vocabulary.count(texts).tokens == ("b", "c", "<end>", "a", "d")
    assert Vocabulary.count(texts, min_count=2).tokens == ("b", "c")
    assert Vocabulary.count(texts, max_size=5).tokens == ("b",)
    assert Vocabulary.count(texts, max_size=2).tokens == ()
    vocabulary = Vocabulary.count(texts)
    assert vocabulary.encode(["<end>", "<pad>"]) == [6, UNKNOWN]
    assert vocabulary.decode([PADDING, UNKNOWN, 4, END, 4]) == ["\N{REPLACEMENT CHARACTER}", "b"]
    assert "b" in vocabulary
    assert "x" not in vocabulary


def test_counting_forgets_the_rarest() -> None:
    texts = [[f"rare{number}", "often", "more often", "more often"] for number in range(1000)]
    vocabulary = Vocabulary.count(texts, max_counted=100)
    assert vocabulary.tokens[:2] == ("more often", "often")
    assert len(vocabulary.tokens) <= 100


def test_labels() -> None:
    labels = Labels.count([["yes"], ["no", "yes"]])
    assert labels.names == ("no", "yes")
    assert [labels.number(name) for name in labels.names] == [0, 1]
    assert Labels.from_json(labels.to_json()) == labels
    with pytest.raises(
        DataError,
        match=r"'yess' does not occur in the training data.*'no', 'yes'. Did you mean 'yes'",
    ):
        labels.number("yess")


@pytest.mark.parametrize("text", ["{}", "[1]", "[", '["a", "a"]', "[" * 100_000])
def test_what_is_no_vocabulary(text: str) -> None:
    with pytest.raises(DataError, match=r"^(Vocabulary|Labels): "):
        Vocabulary.from_json(text)
    with pytest.raises(DataError, match=r"^(Vocabulary|Labels): "):
        Labels.from_json(text)
