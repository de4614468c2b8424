"""A prepared corpus: encoded examples, in files that a stream reads directly.

    corpus.json              the number of examples, and the parts in their order
    NAME-00000.safetensors   for each column the concatenated ids and the length of each example, and the source
                             line of each example

`foveal prepare` creates it. Training then only reads arrays.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
from jaxtyping import Integer
from safetensors import SafetensorError
from safetensors.numpy import load, save
from typing_extensions import override

from ...specs import setting
from .._example import data_error
from .._source import Cursor, Position, Shard
from ..formats._opening import SourceSpec
from ._packed import Encoded, Packed

CORPUS = "corpus.json"
PART_SIZE = 1 << 18  # ids of a part: a pool has a dozen of them
_SHORT = 1 << 16  # numbers below it take two bytes
_LENGTHS = ".lengths"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedCorpus:
    """A folder created by `foveal prepare`."""

    unit: ClassVar[str] = "line"  # an example has the number of its line in the text
    pool_size: ClassVar[None] = None  # the default of the stream
    kind: Literal["prepared"] = "prepared"
    path: str = setting(about="the folder")
    like: SourceSpec = setting(about="the text files of the corpus, and their format")

    @property
    def num_examples(self) -> int:
        """The number of examples."""
        return int(self.about()["examples"])

    def about(self) -> Mapping[str, Any]:
        """Return the content of corpus.json."""
        file = Path(self.path) / CORPUS
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise data_error(
                str(file),
                f"cannot be read: {error}",
                "Run foveal prepare again; it computes only the missing parts",
            ) from None

    def shards(self, block: int | None = None) -> tuple[Shard, ...]:
        """Return the parts. They are already small, so `block` has no effect."""
        del block
        parts: list[str] = self.about()["parts"]
        return tuple(Shard((str(Path(self.path) / name),), Position(()), ()) for name in parts)

    def open(self, shard: Shard, position: Position | None = None) -> Cursor[Encoded]:
        """Open a part at its beginning, or at a position that was reached before."""
        return _PartCursor(shard.files[0], position.num_passed if position else 0)


def part_bytes(packed: Packed) -> bytes:
    """Serialize a part; the index of an example is the line that it was read from."""
    arrays = {"lines": packed.indices}
    for name, ragged in packed.columns.items():
        arrays[f"{name}.ids"] = _small(ragged.joined() if len(ragged.values) else ragged.values)
        arrays[f"{name}{_LENGTHS}"] = _small(np.ascontiguousarray(ragged.lengths))
    return save(arrays)


@final
class _PartCursor(Cursor[Encoded]):
    """Iterates over a part, with lists: slicing a list of dozens of numbers is faster than slicing an array."""

    def __init__(self, file: str, number: int) -> None:
        arrays = _arrays(file)
        self._lines: list[int] = arrays["lines"].tolist()
        names = _names(arrays)
        self._ids: dict[str, list[int]] = {name: arrays[f"{name}.ids"].tolist() for name in names}
        self._ends = {name: _ends(arrays[f"{name}{_LENGTHS}"]) for name in names}
        self._number = number

    @override
    def __next__(self) -> Encoded:
        number = self._number
        if number >= len(self._lines):
            raise StopIteration
        self._number += 1
        rows = {
            name: ids[self._ends[name][number] : self._ends[name][number + 1]]
            for name, ids in self._ids.items()
            if ids
        }
        return Encoded(index=self._lines[number], picture=None, **rows)

    @override
    def position(self) -> Position:
        return Position((), self._number)

    @override
    def number(self, example: Encoded) -> int:
        return example.index


def _arrays(file: str) -> dict[str, Integer[np.ndarray, " n"]]:
    try:
        arrays = load(Path(file).read_bytes())
        lengths = {name: arrays[f"{name}{_LENGTHS}"] for name in _names(arrays)}
        sizes = {len(arrays["lines"]), len(lengths["source"]), *map(len, lengths.values())}
        wrong = [name for name in lengths if lengths[name].sum() != len(arrays[f"{name}.ids"])]
    except (OSError, SafetensorError, KeyError) as error:
        raise _damaged(file, str(error)) from None
    if len(sizes) > 1 or wrong:
        raise _damaged(file, "lengths and ids do not match")
    return arrays


def _names(arrays: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns."""
    return [name.removesuffix(_LENGTHS) for name in arrays if name.endswith(_LENGTHS)]


def _damaged(file: str, why: str) -> Exception:
    return data_error(
        file,
        f"not a part of a prepared corpus: {why}",
        "Delete it and run foveal prepare again; it computes only the missing parts",
    )


def _ends(lengths: Integer[np.ndarray, " n"]) -> list[int]:
    """Return the end of each row, after a leading 0."""
    return [0, *np.cumsum(lengths, dtype=np.int64).tolist()]


def _small(numbers: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
    is_short = int(numbers.max(initial=0)) < _SHORT
    return numbers.astype(np.uint16 if is_short else np.int32)
