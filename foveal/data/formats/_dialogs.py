"""Dialogs: a JSON object with the turns of one dialog on each line.

    {"turns": [{"speaker": "user", "text": "Any films tonight?"}, {"speaker": "bot", "text": "Which city?"}]}
    {"turns": [["user", "Any films tonight?"]], "response": "Which city?"}

Each line gives one example: all turns but the last are the source, and the last turn is the target. With a field
"response", all turns are the source. With a `speaker`, each turn of this speaker is the target of one example, whose
source is the turns before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from typing_extensions import override

from ...errors import DataError
from ...specs import setting
from .._example import Example, quoted
from .._inputs import Dialog, Turn
from .._lines import MAX_LINE, LineReader
from .._source import FileSource, Paths, path_texts
from ._formats import ABOUT_MAX_LINE, ABOUT_PATHS, parse_record

TURNS, RESPONSE = "turns", "response"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Dialogs(FileSource):
    """A dialog on each line. The source of an example is a `Dialog`, the target is the text of the response."""

    is_by_line: ClassVar[bool] = True
    kind: Literal["dialogs"] = "dialogs"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    speaker: str | None = setting(
        None, "speaker whose turns are the targets; none: the last turn of each dialog"
    )
    max_turns: int | None = setting(
        None, "number of turns before the response that are read; none: all", at_least=1
    )
    has_target: bool = setting(True, "the files have responses; false: answer the last turn")
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        (reader,) = readers
        for line in reader:
            if not line.strip():
                continue
            reader.hold()  # a line can have several examples
            for before, response in self._pairs(parse_record(line, reader.where), reader):
                some = before if self.max_turns is None else before[-self.max_turns :]
                reader.num_since += 1
                yield Example(Dialog(tuple(some)), response, where=reader.where)

    def _pairs(
        self, record: dict[str, Any], reader: LineReader
    ) -> Iterator[tuple[Sequence[Turn], str | None]]:
        """Yield the turns before each response, and the response."""
        turns = turns_of(record, reader)
        if not self.has_target:
            yield turns, None
        elif RESPONSE in record:
            yield turns, _text(record[RESPONSE], reader)
        elif self.speaker is None:
            if len(turns) < 2:
                raise reader.error(
                    f"expected at least two turns, the last of which is the response, got {len(turns)}",
                    'Add a turn, or a field "response"',
                )
            yield turns[:-1], turns[-1].text
        else:
            for number, turn in enumerate(turns):
                if number and turn.speaker == self.speaker:
                    yield turns[:number], turn.text


def dialogs(
    paths: Paths,
    *,
    speaker: str | None = None,
    max_turns: int | None = None,
    max_line: int = MAX_LINE,
) -> Dialogs:
    """Read JSON Lines files with one dialog on each line; see `Dialogs`.

    Args:
        paths: Files, or patterns; plain, gzip or zstd.
        speaker: Speaker whose turns are the targets, each with the turns before it as its source. None uses the last
            turn of each dialog, or its field "response".
        max_turns: Number of turns before a response that are read; None reads all.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source of responses to dialogs.

    Examples:
        >>> dialogs("calls.jsonl", speaker="agent").kind
        'dialogs'
    """
    return Dialogs(paths=path_texts(paths), speaker=speaker, max_turns=max_turns, max_line=max_line)


def turns_of(record: dict[str, Any], reader: LineReader) -> list[Turn]:
    """Return the turns of a record.

    Args:
        record: A JSON object with the field "turns".
        reader: Names the line in an error.

    Returns:
        The turns, in order.

    Raises:
        DataError: The object has no list of turns, or a turn has another form.
    """
    turns = record.get(TURNS)
    if not isinstance(turns, list) or not turns:
        raise reader.error(
            f'expected a list of turns in "turns", got {quoted(str(turns))}',
            'Write {"turns": [{"speaker": "user", "text": "Hi."}, ...]} on each line',
        )
    return [_turn(turn, reader) for turn in turns]


def _turn(value: Any, reader: LineReader) -> Turn:
    if isinstance(value, dict) and "text" in value:
        return Turn(_text(value.get("speaker", ""), reader), _text(value["text"], reader))
    if isinstance(value, list) and len(value) == 2:
        return Turn(*(_text(part, reader) for part in value))
    raise _wrong(value, reader)


def _text(value: Any, reader: LineReader) -> str:
    if not isinstance(value, str):
        raise _wrong(value, reader)
    return value.strip()


def _wrong(value: Any, reader: LineReader) -> DataError:
    return reader.error(
        f"a turn must have a speaker and a text, got {quoted(str(value))}",
        'Write {"speaker": "user", "text": "Hi."} or ["user", "Hi."]',
    )
