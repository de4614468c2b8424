"""Image annotations in one JSON document: captions and questions.

    Karpathy and Fei-Fei 2015   {"images": [{"filename", "split", "sentences": [{"raw", "tokens"}]}]}
    COCO (Lin et al. 2014)      {"images": [{"id", "file_name"}], "annotations": [{"image_id", "caption"}]}
    easy-VQA (Zhou 2019)        [[question, answer, number of the image]]

The source of an example is a `Picture`, or a `PictureQuestion` if the document has questions. A document
is held in memory while it is read; the images are not.
"""

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, final

from typing_extensions import override

from ...specs import setting
from .._bytes import DamagedError, read_bytes
from .._example import Example, Where, data_error, quoted
from .._inputs import Picture, PictureQuestion
from .._lines import Place
from .._source import Cursor, Paths, Position, Shard, Source, expand, path_texts
from ..images._paths import ABOUT_IMAGES, image_path
from ._formats import ABOUT_PATHS

MAX_BYTES = 1 << 28  # maximum bytes of a document; the largest of COCO has 92 million


class Annotation(NamedTuple):
    """One text about one image."""

    image: str
    target: str
    question: str | None = None


class AnnotationError(Exception):
    """A document lacks an expected value. The caller adds the file and the number of the record."""


class AnnotationSource(Source):
    """A source of JSON documents. Each format converts a document to annotations."""

    unit: ClassVar[str] = "annotation"
    paths: tuple[str, ...]
    images: str | None

    @abstractmethod
    def annotations(self, document: Any) -> Iterator[Annotation]:
        """Yield the annotations of a document; raise `AnnotationError` if it has another structure."""

    @override
    def shards(self, block: int | None = None) -> tuple[Shard, ...]:
        files = expand(self.paths)
        return tuple(Shard((file,), Position((Place(),)), (None,)) for file in files)

    @override
    def open(self, shard: Shard, position: Position | None = None) -> Cursor:
        (file,) = shard.files
        cursor = _AnnotationCursor(file, self)
        for _ in range(position.num_passed if position else 0):
            next(cursor)
        return cursor


@final
class _AnnotationCursor(Cursor):
    def __init__(self, file: str, source: AnnotationSource) -> None:
        self._file, self._source, self._number = file, source, 0
        self._annotations = source.annotations(_document(file))

    @override
    def __next__(self) -> Example:
        where = Where(self._file, self._number + 1, self._source.unit)
        try:
            found = next(self._annotations)
        except AnnotationError as error:
            raise data_error(where, str(error), "Correct or remove it") from None
        self._number += 1
        picture = Picture(image_path(self._file, self._source.images, found.image, where))
        return Example(
            picture
            if found.question is None
            else PictureQuestion(picture, _on_one_line(found.question)),
            _on_one_line(found.target),
            where=where,
        )

    @override
    def position(self) -> Position:
        return Position((Place(),), self._number)

    @override
    def number(self, example: Example) -> int:
        return self._number


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class KarpathyCaptions(AnnotationSource):
    """Captions in the format of Karpathy's splits of Flickr8k, Flickr30k and COCO."""

    kind: Literal["karpathy"] = "karpathy"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    images: str | None = setting(None, ABOUT_IMAGES)
    splits: tuple[str, ...] = setting(("train",), "split of the images: train, restval, val, test")
    text: Literal["raw", "tokens"] = setting("raw", "captions as raw text, or tokenized")

    @override
    def annotations(self, document: Any) -> Iterator[Annotation]:
        for image in _member(document, "images", list):
            if _member(image, "split", str) not in self.splits:
                continue
            folder = image.get("filepath", "")
            name = _member(image, "filename", str)
            for sentence in _member(image, "sentences", list):
                if self.text == "raw":
                    text = _member(sentence, "raw", str)
                else:
                    text = " ".join(map(str, _member(sentence, "tokens", list)))
                yield Annotation(f"{folder}/{name}" if folder else name, text)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class CocoCaptions(AnnotationSource):
    """Captions in the format of COCO, in the order of the annotations."""

    kind: Literal["coco_captions"] = "coco_captions"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    images: str | None = setting(None, ABOUT_IMAGES)

    @override
    def annotations(self, document: Any) -> Iterator[Annotation]:
        names = {
            _number(image, "id"): _member(image, "file_name", str)
            for image in _member(document, "images", list)
        }
        for annotation in _member(document, "annotations", list):
            number = _number(annotation, "image_id")
            if number not in names:
                raise AnnotationError(f"image {number} is not in the list of images")
            yield Annotation(names[number], _member(annotation, "caption", str))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class EasyVqa(AnnotationSource):
    """Questions about images whose names are numbers."""

    kind: Literal["easy_vqa"] = "easy_vqa"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    images: str | None = setting(None, ABOUT_IMAGES)
    suffix: str = setting(".png", "suffix of each number")

    @override
    def annotations(self, document: Any) -> Iterator[Annotation]:
        if not isinstance(document, list):
            raise AnnotationError(f"expected a list of questions, got {_shown(document)}")
        for row in document:
            match row:
                case [str(question), str(answer), int(number)]:
                    yield Annotation(f"{number}{self.suffix}", answer, question)
                case _:
                    raise AnnotationError(
                        f"expected a question, an answer and a number, got {_shown(row)}"
                    )


def karpathy_captions(
    paths: Paths,
    images: str | Path | None = None,
    *,
    splits: Sequence[str] = ("train",),
    text: Literal["raw", "tokens"] = "raw",
) -> KarpathyCaptions:
    """Read captions of Karpathy's splits; see `KarpathyCaptions`.

    Args:
        paths: JSON files, or patterns; plain, gzip or zstd.
        images: Folder or zip archive that the names of images are relative to; None for the folder of each file.
        splits: Splits to read, among train, restval, val and test.
        text: Whether to read captions as written, or as tokens joined with spaces.

    Returns:
        A source with one example per caption.
    """
    return KarpathyCaptions(
        paths=path_texts(paths),
        images=None if images is None else str(images),
        splits=tuple(splits),
        text=text,
    )


def coco_captions(paths: Paths, images: str | Path | None = None) -> CocoCaptions:
    """Read captions of COCO; see `CocoCaptions`.

    Args:
        paths: JSON files, or patterns; plain, gzip or zstd.
        images: Folder or zip archive that the names of images are relative to; None for the folder of each file.

    Returns:
        A source with one example per caption.
    """
    return CocoCaptions(paths=path_texts(paths), images=None if images is None else str(images))


def easy_vqa(paths: Paths, images: str | Path | None = None, *, suffix: str = ".png") -> EasyVqa:
    """Read questions about images; see `EasyVqa`.

    Args:
        paths: JSON files, or patterns; plain, gzip or zstd.
        images: Folder or zip archive that the names of images are relative to; None for the folder of each file.
        suffix: Suffix of the file name of each image.

    Returns:
        A source with one example per question.
    """
    return EasyVqa(
        paths=path_texts(paths), images=None if images is None else str(images), suffix=suffix
    )


def _document(file: str) -> Any:
    """Parse the JSON document in a file."""
    data = bytearray()
    try:
        for chunk in read_bytes(file):
            data += chunk
            if len(data) > MAX_BYTES:
                raise data_error(
                    file,
                    f"larger than {MAX_BYTES:,} bytes, the maximum for one document",
                    "Convert it to lines of image, tab and text, and read it as an image list",
                )
    except DamagedError as damage:
        raise data_error(file, str(damage), "Download or compress the file again") from None
    try:
        return json.loads(data)
    except RecursionError:
        raise data_error(file, "the JSON is nested too deeply", "Correct the file") from None
    except json.JSONDecodeError as error:
        where = Where(file, error.lineno)
        what = f"invalid JSON at character {error.colno}: {error.msg}"
        raise data_error(where, what, "Correct the file") from None
    except ValueError as error:  # invalid UTF-8, or a number with thousands of digits
        raise data_error(file, f"invalid JSON: {error}", "Correct the file") from None


def _member(record: Any, name: str, kind: type) -> Any:
    if not isinstance(record, dict) or not isinstance(record.get(name), kind):
        words = {str: "text", list: "a list"}
        raise AnnotationError(f"expected {words[kind]} as {name!r}, got {_shown(record)}")
    return record[name]


def _number(record: Any, name: str) -> int | str:
    number = record.get(name) if isinstance(record, dict) else None
    if not isinstance(number, int | str):
        raise AnnotationError(f"expected a number as {name!r}, got {_shown(record)}")
    return number


def _shown(value: Any) -> str:
    return quoted(json.dumps(value, ensure_ascii=False, default=str))


def _on_one_line(text: str) -> str:
    """Remove line breaks and tabs, which occur in captions by accident."""
    return " ".join(text.split())
