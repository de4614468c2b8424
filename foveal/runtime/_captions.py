"""Models from an image to a text: read and pad the image, search in the graph, calibrate, decode.

    value = (byte / 255 - mean) / std,   with mean 1 and std -1: 0 for white and 1 for black

An image is padded with 0 on the right and at the bottom, to a size that depends only on its own size. The graph gets the
height and the width of each image, and gives the weights of the cells of its grid row by row.

Axes: B images, C channels, h and w height and width in pixels.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from ._answers import Answer, Source
from ._calibration import Scaling, calibrated
from ._engine import Engine
from ._errors import ExportedModelError
from ._sizes import padded_pixels
from ._task import Search
from ._writing import Writing, limit_of, search_inputs, written
from .images._inline import inline_bytes
from .text._tokenizer import tokenizer_of
from .text._vocabulary import tokens_of

_INLINE = "data:"  # begins the content of a file, written as a text
_SHOWN = 40  # characters of an inline image in an error
_LONGEST_NAME = 200  # characters of a path in an error


class _ImageSettings(NamedTuple):
    """How images are read."""

    num_channels: int
    height: int
    width: int
    trim: bool
    ink: float | None
    max_pixels: int
    max_bytes: int


class _Seen(NamedTuple):
    """The pixels of an image, and the longest output."""

    pixels: np.ndarray  # (C, h, w), uint8
    limit: int


@final
class Captioner:
    """An exported model that writes a text for an image.

    Args:
        settings: Content of `model.json`.
        vocabulary: Content of `vocabulary.json`.
        engine: The graph of the search.
    """

    def __init__(
        self, settings: Mapping[str, Any], vocabulary: Mapping[str, Any], engine: Engine
    ) -> None:
        given = settings["image"]
        self._image = _ImageSettings(*(given[name] for name in _ImageSettings._fields))
        self._mean, self._std = np.float32(given["mean"]), np.float32(given["std"])
        self._down, self._right = given["cell"]
        self._target, self._tokens = tokenizer_of(settings["target"]), vocabulary["target"]
        self._lengths = settings["lengths"]
        self._scalings = tuple(Scaling(**each) for each in settings["calibration"])
        self._engine = engine
        self.search = Search.of(settings["prediction"])

    def prepared(self, source: Source, search: Search) -> _Seen:
        """Read an image: from the content of its file, its path, or a data URL."""
        return self.seen(self._pixels(source), search)

    def seen(self, pixels: np.ndarray, search: Search) -> _Seen:
        """Return an image that was read already: its pixels `(C, h, w)`, uint8."""
        return _Seen(pixels, limit_of(0, self._lengths, search))

    def shape(self, prepared: _Seen) -> tuple[int, ...]:
        """Return the padded numbers of rows and columns of the grid."""
        height, width = self._padded(prepared)
        return height // self._down, width // self._right

    def encoded(self, prepared: _Seen) -> list[int]:
        """Return no ids."""
        del prepared
        return []

    def answer(self, prepared: Sequence[_Seen], search: Search, *, attention: bool) -> list[Answer]:
        """Write texts for images of one padded size."""
        inputs = self._inputs(prepared)
        found = self._engine.run(
            {**inputs, **search_inputs([one.limit for one in prepared], search)}
        )
        probabilities = calibrated(self._scalings, found["totals"])
        decode = partial(tokens_of, tokens=self._tokens)
        return [
            written(
                {name: each[number] for name, each in found.items()},
                probabilities[number],
                Writing(one.limit, self._places(one), decode, self._target.decode),
                search.nbest,
                attention=attention,
            )
            for number, one in enumerate(prepared)
        ]

    def _inputs(self, prepared: Sequence[_Seen]) -> dict[str, np.ndarray]:
        """Return the images, padded to one size, and their sizes."""
        shape = (len(prepared), self._image.num_channels, *self._padded(prepared[0]))
        images = np.zeros(shape, np.float32)
        sizes = np.array([one.pixels.shape[1:] for one in prepared], np.int64)
        for image, one, (height, width) in zip(images, prepared, sizes, strict=True):
            values = (one.pixels.astype(np.float32) / np.float32(255) - self._mean) / self._std
            image[:, :height, :width] = values
        return {"images": images, "sizes": sizes}

    def _padded(self, seen: _Seen) -> tuple[int, int]:
        _, height, width = seen.pixels.shape
        return padded_pixels(height, self._down), padded_pixels(width, self._right)

    def _places(self, seen: _Seen) -> tuple[str, ...]:
        """Return the row and the column of each cell, counted from 1."""
        _, height, width = seen.pixels.shape
        rows, columns = range(-(-height // self._down)), range(-(-width // self._right))
        return tuple(f"{row + 1},{column + 1}" for row in rows for column in columns)

    def _pixels(self, source: Source) -> np.ndarray:
        try:
            # Models of texts do not need it.
            from .images import _pixels  # noqa: PLC0415
        except ImportError as error:
            raise ExportedModelError(
                "reading images needs the package pillow, which is not installed. Install it: pip install "
                '"foveal-runtime[images]".'
            ) from error
        place = _name_of(source)
        try:
            return _pixels.read_picture(
                _pixels.open_image(self._content(source, place), self._image), self._image
            )
        except _pixels.UnreadableImageError as error:
            raise ExportedModelError(f"{place}: {error.what}. {error.remedy}.") from None

    def _content(self, source: Source, place: str) -> bytes:
        """Return the content of the file of an image."""
        most = self._image.max_bytes
        if source.image is not None:
            content = source.image
        elif source.text.startswith(_INLINE):
            content = _inline(source.text)
        else:
            try:
                with Path(source.text).open("rb") as handle:
                    content = handle.read(most + 1)
            except (OSError, ValueError) as error:  # a name that contains NUL raises ValueError
                raise ExportedModelError(
                    f"{place}: cannot be read: {error}. Correct the name of the image."
                ) from None
        if len(content) > most:
            raise ExportedModelError(
                f"{place}: larger than {most:,} bytes, the maximum of the model. Reduce the image."
            )
        return content


def _name_of(source: Source) -> str:
    """Return the name of an image in errors."""
    if source.image is not None:
        return "the image"
    return source.text[:_SHOWN] if source.text.startswith(_INLINE) else source.text[-_LONGEST_NAME:]


def _inline(text: str) -> bytes:
    """Return the bytes of an image in a data URL."""
    try:
        return inline_bytes(text)
    except ValueError:
        raise ExportedModelError(
            f"an inline image must be data:image/png;base64, followed by its bytes in base64, got {text[:_SHOWN]!r}. "
            f"Use the path of a file instead."
        ) from None
