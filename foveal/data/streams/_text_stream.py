"""TextStream: one long text read at B positions at once, for language models.

    text        t_1 ... t_N                       the sources of all examples, one after another
    row b       t_{bL+1} ... t_{bL+L}             L = ceil(N / B)
    batch k     columns kn+1 ... kn+n of all rows

Each row continues the row of the previous batch, so a model can carry its state over and backpropagate through only n
steps (truncated backpropagation through time, Williams and Peng 1990). Every token is a target once; its input is the
previous token, also at the beginning of a row. In a corpus larger than a pool, each pool is such a text.
"""

import math
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Int
from typing_extensions import override

from ...errors import ValueRangeError
from .._batches import TextBatch
from .._source import Source
from ..vocabularies._vocabulary import END
from ._pools import POOL_SIZE, Encode, Pool
from ._prepared import PreparedCorpus
from ._stream import AbstractStream, Prepared, part, rank_checked


@final
class TextStream(AbstractStream[TextBatch]):
    """Segments of `length` tokens from `batch_size` positions of a text.

    `encode` returns the tokens of a line, including the end token, as `source`.

    Args:
        source: The source of examples.
        encode: Converts an example to ids; None skips the example.
        batch_size: Number of rows of a batch of all processes.
        length: Number of tokens of a row of a batch.
        seed: Seed of the order of shards, together with the epoch, if the text is larger than a pool.
        rank: The rank of this process.
        world_size: The number of processes.
        shuffle: If False, shards are read in the order of their names.
        pool_size: Number of tokens in memory at once, 4 bytes each. Defaults to `source.pool_size`, or to 4 million.

    Raises:
        ValueRangeError: `batch_size` is less than `world_size`, or `length` is less than 1.

    Examples:
        >>> from foveal.data import Encoded, Example, InMemory
        >>> text = InMemory((Example("abcd"), Example("efg")))
        >>> encode = lambda example: Encoded([ord(letter) for letter in example.source])
        >>> batch = next(iter(TextStream(text, encode, batch_size=2, length=3)))
        >>> "".join(chr(token) for token in batch.targets[1])
        'efg'
    """

    def __init__(
        self,
        source: Source | PreparedCorpus,
        encode: Encode,
        *,
        batch_size: int,
        length: int,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        shuffle: bool = True,
        pool_size: int | None = None,
    ) -> None:
        rank_checked(rank, world_size)
        if batch_size < world_size or length < 1:
            raise ValueRangeError(
                f"TextStream: batch_size must be at least world_size={world_size}, and length at "
                f"least 1, got batch_size={batch_size} and length={length}. Increase them."
            )
        self._batch_size, self._length = batch_size, length
        self._rank, self._world_size = rank, world_size
        super().__init__(
            source,
            encode,
            max_width=None,
            min_rows=1,
            settings={
                "batch_size": batch_size,
                "length": length,
                "seed": seed,
                "shuffle": shuffle,
                "pool_size": pool_size or source.pool_size or POOL_SIZE,
            },
        )

    @override
    def _prepare(self, pool: Pool, generator: np.random.Generator) -> Prepared[TextBatch]:
        text = pool.packed.source.joined()
        size = max(1, math.ceil(len(text) / self._batch_size))
        padded = np.zeros(self._batch_size * size + 1, dtype=np.int64)
        padded[0], padded[1 : len(text) + 1] = END, text
        real = np.arange(self._batch_size * size) < len(text)
        rows = part(np.arange(self._batch_size), self._rank, self._world_size)
        return _Stretches(
            tokens=padded[:-1].reshape(self._batch_size, size)[rows],
            targets=padded[1:].reshape(self._batch_size, size)[rows],
            mask=real.reshape(self._batch_size, size)[rows],
            length=self._length,
        )


@final
class _Stretches(Prepared[TextBatch]):
    def __init__(
        self,
        *,
        tokens: Int[np.ndarray, "B L"],
        targets: Int[np.ndarray, "B L"],
        mask: Bool[np.ndarray, "B L"],
        length: int,
    ) -> None:
        self._tokens, self._targets, self._mask = tokens, targets, mask
        self._length = length

    @override
    def __len__(self) -> int:
        return math.ceil(self._tokens.shape[1] / self._length)

    @override
    def batch(self, number: int) -> TextBatch:
        here = slice(number * self._length, (number + 1) * self._length)
        return TextBatch(
            tokens=torch.from_numpy(self._tokens[:, here].copy()),
            targets=torch.from_numpy(self._targets[:, here].copy()),
            mask=torch.from_numpy(self._mask[:, here].copy()),
            fresh=number == 0,
        )
