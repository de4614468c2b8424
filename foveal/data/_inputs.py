r"""Inputs: the types that the source of an example can have.

    "reykjavík"                                              a text is a plain string
    TextPair("It rains.", "It is wet.")                      two texts
    Document(("The film is long.", "I liked it."))           sentences
    Dialog((Turn("user", "Hi."), Turn("bot", "Hello.")))     turns of a dialog
    Facts(("Mary went home.",), "Where is Mary?")            facts and a question about them
    Picture(Path("cat.png")), Picture(b"\x89PNG...")         an image file, or its content
    PictureQuestion(Picture(Path("cat.png")), "What is it?") an image and a question about it
    Clip(Path("clips/7")), Clip(b"GIF89a...")                a folder of frames, or a GIF or video file
    Audio(Path("one.wav")), Audio(b"RIFF...")                a recording

Each type has one written form, for lines of text, JSON strings and command lines: `str(value)` writes it and
`Type.parse(text)` reads it. No other module parses a written form.
"""

import base64
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeAlias, TypeVar, final

from typing_extensions import override

from ..errors import DataError
from ..runtime.images._inline import inline_bytes

INLINE = "data:"  # begins the content of a file, written as a text
# typing.Self is not used: beartype accepts it only in decorated classes.
Own = TypeVar("Own", bound="AbstractInput")
OwnFile = TypeVar("OwnFile", bound="_FileInput")
MAX_SHOWN = 40  # characters of a file's text that an error quotes


class AbstractInput(ABC):
    """An input that is more than one text. For a new task, derive a frozen dataclass from it.

    `str(value)` is its written form, which `parse` reads.
    """

    __slots__ = ()
    noun: ClassVar[str]  # in error messages: "a pair of texts"

    @classmethod
    @abstractmethod
    def parse(cls: type[Own], text: str) -> Own:
        """Parse the written form.

        Args:
            text: Written form of the input.

        Returns:
            The parsed input.

        Raises:
            DataError: The text has another form. The caller adds the location to the message.
        """

    @classmethod
    def of(cls: type[Own], other: "Input") -> Own:
        """Convert another input: by default only a text, which is parsed.

        Args:
            other: Input of any type.

        Returns:
            The input as an instance of this class.

        Raises:
            DataError: The other input cannot be converted.
        """
        if isinstance(other, str):
            return cls.parse(other)
        raise unfit(cls.noun, other)

    @property
    def group(self) -> str:
        """The text by which examples are grouped: equal groups stay together when a validation set is held out."""
        return str(self)

    @abstractmethod
    def __str__(self) -> str: ...


Input: TypeAlias = str | AbstractInput


def quoted(text: str) -> str:
    r"""Quote a text on one line, shortened, for an error message.

    Args:
        text: Text of any length.

    Returns:
        The text in quotes, with line breaks and tabs escaped.

    Examples:
        >>> print(quoted("two\tcolumns"))
        'two\tcolumns'
    """
    short = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return repr(short)


def unfit(expected: str, got: Input) -> DataError:
    """Create the error for an input of another type."""
    noun = "a text" if isinstance(got, str) else got.noun
    return DataError(
        f"expected {expected}, got {noun}, {quoted(str(got))}. Use inputs of the type that the task reads."
    )


@final
@dataclass(frozen=True, slots=True)
class TextPair(AbstractInput):
    r"""Two texts, such as a premise and a hypothesis. The written form has a tab between them.

    Examples:
        >>> TextPair.parse("It rains.\tIt is wet.").second
        'It is wet.'
    """

    noun: ClassVar[str] = "a pair of texts"
    first: str
    second: str

    @classmethod
    @override
    def parse(cls, text: str) -> "TextPair":
        return cls(*_halves(text, "one text, expected two"))

    @property
    @override
    def group(self) -> str:
        return self.first

    @override
    def __str__(self) -> str:
        return f"{_without_tabs(self.first)}\t{_without_tabs(self.second)}"


@final
@dataclass(frozen=True, slots=True)
class Document(AbstractInput):
    r"""The sentences of a document. The written form has one on each line; empty lines are skipped.

    Examples:
        >>> Document.parse("The film is long.\n\nI liked it.").sentences
        ('The film is long.', 'I liked it.')
    """

    noun: ClassVar[str] = "a document"
    sentences: tuple[str, ...]

    @classmethod
    @override
    def parse(cls, text: str) -> "Document":
        return cls(tuple(line for line in text.splitlines() if line.strip()))

    @classmethod
    @override
    def of(cls, other: Input) -> "Document":
        if isinstance(other, Dialog):
            return cls(tuple(map(str, other.turns)))
        return super(Document, cls).of(other)

    @override
    def __str__(self) -> str:
        return "\n".join(map(_on_one_line, self.sentences))


class Turn(NamedTuple):
    """One turn of a dialog."""

    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@final
@dataclass(frozen=True, slots=True)
class Dialog(AbstractInput):
    r"""The turns of a dialog so far. The written form has one turn on each line, after its speaker and a colon.

    A model of documents reads each turn as a sentence that starts with the speaker.

    Examples:
        >>> dialog = Dialog.parse("user: Any films tonight?\nbot: Which city?")
        >>> dialog.turns[1].speaker, str(dialog.turns[1])
        ('bot', 'bot: Which city?')
    """

    noun: ClassVar[str] = "a dialog"
    turns: tuple[Turn, ...]

    @classmethod
    @override
    def parse(cls, text: str) -> "Dialog":
        return cls(tuple(_turn(line) for line in text.splitlines() if line.strip()))

    @property
    @override
    def group(self) -> str:
        # The responses of one dialog stay together, unless its first turn is left out.
        return str(self.turns[0]) if self.turns else ""

    @override
    def __str__(self) -> str:
        return "\n".join(_on_one_line(str(turn)) for turn in self.turns)


@final
@dataclass(frozen=True, slots=True)
class Facts(AbstractInput):
    r"""Facts in the order of the story, and a question about them. The written form has one fact on each line and
    the question on the last line.

    Examples:
        >>> Facts.parse("Mary went home.\nWhere is Mary?").question
        'Where is Mary?'
    """

    noun: ClassVar[str] = "facts and a question"
    facts: tuple[str, ...]
    question: str

    @classmethod
    @override
    def parse(cls, text: str) -> "Facts":
        *facts, question = text.split("\n")
        return cls(tuple(facts), question)

    @override
    def __str__(self) -> str:
        return "\n".join(map(_on_one_line, (*self.facts, self.question)))


@dataclass(frozen=True, slots=True)
class _FileInput(AbstractInput):
    """An input in a file: its path, or its content, which is written as a `data:` URI."""

    file: Path | bytes

    @classmethod
    @override
    def parse(cls: type[OwnFile], text: str) -> OwnFile:
        return cls(_file(text))

    @property
    def name(self) -> str:
        """The name of the file or folder, or the noun of content without a name, such as `image`."""
        return self.noun.split()[-1] if isinstance(self.file, bytes) else self.file.name

    @override
    def __str__(self) -> str:
        if isinstance(self.file, bytes):
            return f"{INLINE};base64,{base64.b64encode(self.file).decode('ascii')}"
        return str(self.file)


@final
@dataclass(frozen=True, slots=True)
class Picture(_FileInput):
    r"""An image: the path of its file, or the content of one. The written form is the path, or the content as a
    `data:` URI.

    Examples:
        >>> Picture.parse("data:image/png;base64,aGk=").file
        b'hi'
    """

    noun: ClassVar[str] = "an image"


@final
@dataclass(frozen=True, slots=True)
class PictureQuestion(AbstractInput):
    r"""An image and a question about it. The written form has a tab between them.

    Examples:
        >>> PictureQuestion.parse("cat.png\tWhat color is it?").picture.name
        'cat.png'
    """

    noun: ClassVar[str] = "an image and a question"
    picture: Picture
    question: str

    @classmethod
    @override
    def parse(cls, text: str) -> "PictureQuestion":
        picture, question = _halves(text, "an image without a question, expected both")
        return cls(Picture.parse(picture), question)

    @property
    @override
    def group(self) -> str:
        return str(self.picture)

    @override
    def __str__(self) -> str:
        return f"{self.picture}\t{_without_tabs(self.question)}"


@final
@dataclass(frozen=True, slots=True)
class Clip(_FileInput):
    """Moving images: the path of a folder of frames, of a GIF or of a video, or the content of a file. An image
    file can be read as a clip. The written form is the same as for `Picture`.
    """

    noun: ClassVar[str] = "a clip"

    @classmethod
    @override
    def of(cls, other: Input) -> "Clip":
        return cls(other.file) if isinstance(other, Picture) else super(Clip, cls).of(other)


@final
@dataclass(frozen=True, slots=True)
class Audio(_FileInput):
    r"""A recording: the path of a WAV, FLAC or Ogg file, or the content of one. The written form is the path, or the
    content as a `data:` URI.

    Examples:
        >>> Audio.parse("speech/one.wav").name
        'one.wav'
    """

    noun: ClassVar[str] = "a recording"

    @classmethod
    @override
    def of(cls, other: Input) -> "Audio":
        # A page sends any file as a picture.
        return cls(other.file) if isinstance(other, Picture) else super(Audio, cls).of(other)


def _turn(line: str) -> Turn:
    """Split a line at its first colon; a line without one has no speaker."""
    speaker, colon, text = line.partition(": ")
    return Turn(speaker.strip(), text.strip()) if colon else Turn("", line.strip())


def _halves(text: str, what: str) -> tuple[str, str]:
    """Split a text at its first tab."""
    first, tab, second = text.partition("\t")
    if not tab:
        raise DataError(
            f"{what}, in {quoted(text)}. Put a tab between them, or set the column of the second "
            f"text: second=1 (with foveal fit: --set train.second=1)"
        )
    return first, second


def _without_tabs(text: str) -> str:
    return text.replace("\t", " ")


def _on_one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _file(text: str) -> Path | bytes:
    """Read a path, or the content of a file in base64."""
    if not text.startswith(INLINE):
        return Path(text)
    try:
        return inline_bytes(text)
    except ValueError:
        raise DataError(
            f"an inline file must be data:image/png;base64, followed by its bytes in base64, got "
            f"{quoted(text)}. Use the path of a file instead."
        ) from None
