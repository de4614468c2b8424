"""Metrics of generated words and texts; the tokenizer of the target decides what a token is."""

from collections.abc import Sequence

from ..data import CharacterSpec, SentencePieceSpec, TokenizerSpec, WhitespaceSpec
from ..metrics import Statistics, bleu, character_error_rate, chrf, exact_match, word_error_rate
from ..metrics._metrics import wrong_words


def scores_of_words(
    target: TokenizerSpec, references: Sequence[str], outputs: Sequence[str]
) -> Sequence[Statistics]:
    """Return WER, the percentage of wrong words, and the error rate of characters or phones."""
    words = wrong_words(references, outputs)
    if isinstance(target, CharacterSpec | SentencePieceSpec):
        return words, character_error_rate(references, outputs)
    return words, word_error_rate(references, outputs, name="per")


def scores_of_texts(
    target: TokenizerSpec, references: Sequence[str], outputs: Sequence[str]
) -> Sequence[Statistics]:
    """Return BLEU, chrF and exact match."""
    tokenize = "none" if isinstance(target, WhitespaceSpec) else "13a"
    return (
        bleu(references, outputs, tokenize=tokenize),
        chrf(references, outputs),
        exact_match(references, outputs),
    )
