"""Pronunciation lexicons, as speech engines read them.

    table      cat <TAB> k æ t <TAB> 0.9312 <TAB> model    word, pronunciation, confidence, and lexicon or model
    cmudict    cat  K AE1 T                                 the second pronunciation of a word is for cat(2)
    sherpa     cat k æ t                                    sherpa-onnx: lowercase words, each once
    kokoro     cat k æ t                                    the same, and each character is a token

The reader takes all of them, and files with two columns for training.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ...errors import DataError
from .._example import quoted
from .._lines import LineReader

LexiconFormat: TypeAlias = Literal["table", "cmudict", "sherpa", "kokoro"]
Tokens: TypeAlias = tuple[str, ...]

_COMMENT = ";;;"  # of CMUdict
_ALTERNATIVE = re.compile(r"(.+)\(\d+\)")


class Entry(NamedTuple):
    """One pronunciation of a word; a pronunciation from a lexicon has confidence 1."""

    word: str
    tokens: Tokens
    confidence: float
    origin: Literal["lexicon", "model"]


def read_lexicon(files: Iterable[str]) -> dict[str, list[Tokens]]:
    """Return the pronunciations of each word, in the order of the files.

    Args:
        files: Lexicons. The word ends at the first tab or, in a line without tabs, at the first space.

    Returns:
        The tokens of each pronunciation, by word.
    """
    found: dict[str, list[Tokens]] = {}
    for file in files:
        reader = LineReader(file)
        for line in reader:
            if not line.strip() or line.startswith(_COMMENT):
                continue
            word, separator, rest = line.partition("\t" if "\t" in line else " ")
            tokens = tuple(rest.split("\t")[0].split("#")[0].split())
            if not (separator and word and tokens):
                raise DataError(
                    f"{file}, line {reader.line}: expected a word and its pronunciation, such as 'cat  K AE1 T', got "
                    f"{quoted(line)}. Add what is missing, or remove the line."
                )
            alternative = _ALTERNATIVE.fullmatch(word)
            word = alternative[1] if alternative else word
            if tokens not in found.setdefault(word, []):
                found[word].append(tokens)
    return found


def read_inventory(file: str) -> tuple[str, ...]:
    """Return the tokens of an inventory, such as the phones of a speech engine.

    Args:
        file: A file with a token in the first column of each line; a token has no spaces.

    Returns:
        The tokens, each once.

    Raises:
        DataError: The file is empty.
    """
    first = (line.split(maxsplit=1) for line in LineReader(file) if not line.startswith(_COMMENT))
    tokens = tuple(dict.fromkeys(columns[0] for columns in first if columns))
    if not tokens:
        raise DataError(
            f"{file}: expected a token in the first column of each line, got an empty file. Write one token per line."
        )
    return tokens


def listed(
    lexicon: Mapping[str, Sequence[Tokens]], word: str, inventory: Sequence[str] = ()
) -> list[Tokens]:
    """Return the pronunciations of a word, as it is written or else in lowercase, that consist of tokens of an inventory.
    An empty inventory has all tokens.
    """
    allowed = set(inventory)
    for form in (word, word.lower()):
        found = lexicon.get(form, ())
        if kept := [each for each in found if not allowed or allowed.issuperset(each)]:
            return kept
    return []


class LexiconWriter:
    """Formats the entries of a lexicon, without empty pronunciations.

    Args:
        form: The format.
    """

    def __init__(self, form: LexiconFormat) -> None:
        self._form = form
        self._written = set[str]()

    def lines(self, entries: Sequence[Entry]) -> Iterator[str]:
        """Yield the lines of one word.

        Args:
            entries: Its pronunciations, the best first.

        Yields:
            One line for each pronunciation that the format can hold.
        """
        if self._form != "table":
            _check_word(entries[0].word)
        spoken = (entry for entry in entries if entry.tokens)
        for number, entry in enumerate(spoken, 1):
            text = " ".join(entry.tokens)
            if self._form == "table":
                yield f"{entry.word}\t{text}\t{entry.confidence:.4f}\t{entry.origin}"
            elif self._form == "cmudict":
                yield f"{entry.word}{f'({number})' if number > 1 else ''}  {text}"
            elif number == 1 and (word := entry.word.lower()) not in self._written:
                self._written.add(word)
                is_kokoro = self._form == "kokoro"
                yield f"{word} {' '.join(''.join(entry.tokens)) if is_kokoro else text}"


def _check_word(word: str) -> None:
    if len(word.split()) != 1:
        raise DataError(
            f"expected a word without spaces, got {quoted(word)}: in this format, a space ends the word. Split the text into "
            f"words, or use --format table."
        )
