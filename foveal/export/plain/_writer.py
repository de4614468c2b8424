"""Writes the types of a plain model file, and stores its weights in 32, 16 or 8 bits.

The stored weights are equal to those of the ONNX graph, so both answer alike. There, the two directions of an encoder
share one tensor, therefore the scale of a row of both is that of the larger one.

Axes: R rows, the outputs of a matrix; C columns.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

from .._storage import LEAST, Storage, int8_of

_FLOAT32, _FLOAT16, _INT8 = range(3)


class Stored(NamedTuple):
    """A matrix as the file stores it."""

    kind: int
    scale: np.ndarray | None  # (R)
    values: np.ndarray  # (R, C)


@final
class Writer:
    r"""Collects the fields of a file.

    Args:
        storage: How to store matrices.

    Examples:
        >>> writer = Writer("float32")
        >>> writer.u32(2)
        >>> writer.string("é")
        >>> writer.content()
        b'\x02\x00\x00\x00\x02\x00\x00\x00\xc3\xa9'
    """

    def __init__(self, storage: Storage) -> None:
        self._storage: Storage = storage
        self._parts = list[bytes]()

    def u8(self, *numbers: int) -> None:
        """Write numbers below 256, or flags."""
        self._parts.append(struct.pack(f"<{len(numbers)}B", *numbers))

    def u32(self, *numbers: int) -> None:
        """Write numbers below 2 ** 32."""
        self._parts.append(struct.pack(f"<{len(numbers)}I", *numbers))

    def f32(self, *numbers: float) -> None:
        """Write numbers in 32 bits."""
        self._parts.append(struct.pack(f"<{len(numbers)}f", *numbers))

    def f64(self, *numbers: float) -> None:
        """Write numbers in 64 bits."""
        self._parts.append(struct.pack(f"<{len(numbers)}d", *numbers))

    def string(self, text: str) -> None:
        """Write a text."""
        encoded = text.encode()
        self.u32(len(encoded))
        self._parts.append(encoded)

    def strings(self, texts: Sequence[str]) -> None:
        """Write the number of texts, and the texts."""
        self.u32(len(texts))
        for text in texts:
            self.string(text)

    def vector(self, values: np.ndarray) -> None:
        """Write a vector in 32 bits."""
        self.u32(len(values))
        self._parts.append(values.astype("<f4").tobytes())

    def rounded(self, values: np.ndarray, axis: int = 0) -> np.ndarray:
        """Return the values that a tensor of the graph has after it was stored in fewer bits.

        Args:
            values: A tensor.
            axis: The axis of its scales.

        Returns:
            The values in float32.
        """
        if self._storage == "float32" or not _is_reduced(values):
            return values
        if self._storage == "half":
            return values.astype(np.float16).astype(np.float32)
        numbers, scale = int8_of(values, axis)
        return numbers.astype(np.float32) * scale

    def matrix(self, values: np.ndarray) -> None:
        """Write a matrix `(R, C)` with a row for each output, or a table with a row for each id."""
        self.stored(self.together([values])[0])

    def together(self, parts: Sequence[np.ndarray]) -> list[Stored]:
        """Store matrices that are one tensor of the graph.

        Args:
            parts: Matrices with R rows.

        Returns:
            What `stored` writes for each.
        """
        whole = np.concatenate(parts, 1)
        if self._storage == "float32" or not _is_reduced(whole):
            return [Stored(_FLOAT32, None, part.astype("<f4")) for part in parts]
        if self._storage == "half":
            return [Stored(_FLOAT16, None, part.astype("<f2")) for part in parts]
        numbers, scale = int8_of(whole, 0)
        ends = np.cumsum([part.shape[1] for part in parts])[:-1]
        return [Stored(_INT8, scale[:, 0], part) for part in np.split(numbers, ends, 1)]

    def stored(self, matrix: Stored) -> None:
        """Write a matrix that `together` returned."""
        self.u8(matrix.kind)
        self.u32(*matrix.values.shape)
        if matrix.scale is not None:
            self._parts.append(matrix.scale.astype("<f4").tobytes())
        self._parts.append(matrix.values.tobytes())

    def content(self) -> bytes:
        """Return everything that was written."""
        return b"".join(self._parts)


def _is_reduced(values: np.ndarray) -> bool:
    """Return whether a graph stores a tensor in fewer bits."""
    return values.size >= LEAST and bool(np.isfinite(values).all())
