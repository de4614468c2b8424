"""Lists of recordings and texts, one pair on each line.

    one.wav     one two three               tab-separated: recording, text

The source of an example is an `Audio`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, final

from typing_extensions import override

from ...specs import setting
from .._example import BY_SETTING, Example, quoted
from .._inputs import Audio
from .._lines import MAX_LINE, LineReader
from .._source import FileSource, Paths, path_texts
from ..images._paths import image_path
from ._formats import ABOUT_MAX_LINE, ABOUT_PATHS


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class AudioList(FileSource):
    """Tab-separated columns, counted from 0, one of which contains the name of a recording. Empty lines are skipped."""

    is_by_line: ClassVar[bool] = True
    kind: Literal["audio_list"] = "audio_list"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    recordings: str | None = setting(
        None, "folder or zip archive of the recordings; none: the folder of the file"
    )
    audio: int = setting(0, "column of the name of the recording", at_least=0)
    target: int | None = setting(1, "column of the text", at_least=0)
    suffix: str = setting("", "suffix of each name, such as .wav")
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        (reader,) = readers
        last = max(self.audio, self.target or 0)
        for line in reader:
            if not line.strip():
                continue
            cells = line.split("\t")
            if len(cells) <= last:
                raise reader.error(
                    f"{len(cells)} columns, expected at least {last + 1} separated by tabs, in {quoted(line)}",
                    f"Write the name of a recording, a tab and a text, or set the columns to read{BY_SETTING}",
                )
            name = f"{cells[self.audio].strip(' ')}{self.suffix}"
            path = image_path(reader.file, self.recordings, name, reader.where, noun="recordings")
            target = None if self.target is None else cells[self.target].strip(" ")
            yield Example(Audio(path), target, where=reader.where)


def audio_list(
    paths: Paths,
    recordings: str | Path | None = None,
    *,
    audio: int = 0,
    target: int | None = 1,
    suffix: str = "",
    max_line: int = MAX_LINE,
) -> AudioList:
    """Read lists of recordings and texts; see `AudioList`.

    Args:
        paths: Files, or patterns; plain, gzip or zstd.
        recordings: Folder or zip archive that the names of recordings are relative to; None for the folder of each
            file.
        audio: Column of the name of the recording, counted from 0.
        target: Column of the text; None for data without texts.
        suffix: Suffix to add to each name, for example `.wav`.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source with one example per line.
    """
    return AudioList(
        paths=path_texts(paths),
        recordings=None if recordings is None else str(recordings),
        audio=audio,
        target=target,
        suffix=suffix,
        max_line=max_line,
    )
