"""With every tokenizer, a token belongs to the word that contains it."""

import pytest
from hypothesis import given, settings, strategies as st

from foveal.data import (
    CharacterSpec,
    FeaturesSpec,
    SentencePieceSpec,
    TokenizerSpec,
    WhitespaceSpec,
)
from foveal.data.tokenizers._words import words_of

TEXTS = ["the house is small", "the small houses are here", "é a b c", "a\u3000b"] * 20
SUBWORDS = SentencePieceSpec(num_pieces=300).trained_on(TEXTS)
TOKENISERS: list[TokenizerSpec] = [
    CharacterSpec(),
    CharacterSpec(spaces="drop"),
    CharacterSpec(unit="code_point", normalization="NFD"),
    CharacterSpec(normalization="NFKC", spaces="drop"),
    WhitespaceSpec(),
    WhitespaceSpec(normalization="NFC"),
    SUBWORDS,
]


def test_characters_with_and_without_spaces() -> None:
    assert words_of(CharacterSpec(), "no  way").of_symbol == (0, 0, None, None, 1, 1, 1)
    assert words_of(CharacterSpec(spaces="drop"), "no way").of_symbol == (0, 0, 1, 1, 1)


def test_normal_forms_change_the_symbols_and_not_the_words() -> None:
    spec = CharacterSpec(unit="code_point", normalization="NFD")
    found = words_of(spec, "\uac01 \uac00")  # two syllables, with three parts and with two
    assert found.words == ("\uac01", "\uac00")
    assert found.of_symbol == (0, 0, 0, None, 1, 1)


def test_subwords_and_bytes_of_unknown_characters() -> None:
    text = "the \u6c34 houses"
    symbols, found = SUBWORDS.encode(text), words_of(SUBWORDS, text)
    assert "<0xE6>" in symbols
    assert found.words == ("the", "\u6c34", "houses")
    of_word = {
        n: [s for s, w in zip(symbols, found.of_symbol, strict=True) if w == n] for n in (1, 2)
    }
    assert SUBWORDS.decode(of_word[1]).strip() == "\u6c34"
    assert SUBWORDS.decode(of_word[2]).strip() == "houses"


def test_a_wide_space_may_be_a_word_without_a_symbol() -> None:
    text = "a \u3000 b"
    assert words_of(CharacterSpec(spaces="drop"), text).of_symbol == (0, 2)
    assert words_of(WhitespaceSpec(), text) == (("a", "\u3000", "b"), (0, 2))
    assert words_of(CharacterSpec(), text).of_symbol == (0, None, 1, None, 2)


def test_features_are_words_themselves() -> None:
    assert words_of(FeaturesSpec(), "V;PST").words == ("V", "PST")


@pytest.mark.parametrize("tokenizer", TOKENISERS, ids=lambda spec: spec.kind)
@settings(max_examples=60, deadline=None)
@given(text=st.text(st.sampled_from("ab é\u0301\u3000\u6c34\u00a0\ufb01\u2581\uac01"), max_size=12))
def test_words_come_in_order_and_each_symbol_has_one(tokenizer: TokenizerSpec, text: str) -> None:
    found = words_of(tokenizer, text)
    assert len(found.of_symbol) == len(tokenizer.encode(text))
    owners = [owner for owner in found.of_symbol if owner is not None]
    assert owners == sorted(owners)
    assert set(owners) <= set(range(len(found.words)))
