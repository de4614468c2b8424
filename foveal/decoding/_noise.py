"""Random numbers for a batch, from one generator or from one for each item.

With a separate generator, an item gets the same numbers in every batch.

Axes: B items.
"""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..errors import ShapeError

Generators = torch.Generator | Sequence[torch.Generator] | None


@final
class Noise:
    """Draws random numbers for the remaining items."""

    def __init__(self, generator: Generators, num_items: int, search: str) -> None:
        self._one: torch.Generator | None = None
        self._each: list[torch.Generator] | None = None
        if generator is None or isinstance(generator, torch.Generator):
            self._one = generator
        else:
            self._each = list(generator)
        self._num_items = num_items
        if self._each is not None and len(self._each) != num_items:
            raise ShapeError(
                f"{search}: generator must be one torch.Generator or one for each of {num_items} "
                f"items, got {len(self._each)}."
            )

    def uniform(self, lengths: Sequence[int], width: int) -> Float[Tensor, "B T {width}"]:
        """Draw numbers in [0, 1), `lengths[i]` rows for item i, padded with 0 to the longest.

        They have double precision: float32 draws are multiples of 2^-24 and would miss most tokens with
        a smaller probability.
        """
        if self._each is None:
            shape = (self._num_items, max(lengths, default=0), width)
            return torch.rand(
                shape, dtype=torch.float64, generator=self._one, device=self._device()
            )
        rows = [
            torch.rand(length, width, dtype=torch.float64, generator=g, device=g.device)
            for length, g in zip(lengths, self._each, strict=True)
        ]
        return pad_sequence(rows, batch_first=True)

    def gumbel(self, *shape: int) -> Float[Tensor, "B ..."]:
        """Draw standard Gumbel noise in double precision, because its tail decides."""
        size = shape if self._each is not None else (self._num_items, *shape)
        draws = [
            torch.empty(size, dtype=torch.float64, device=self._device()).exponential_(
                generator=generator
            )
            for generator in self._each or (self._one,)
        ]
        whole = draws[0] if self._each is None else torch.stack(draws)
        return -whole.clamp_min(torch.finfo(whole.dtype).tiny).log()

    def keep(self, items: Int[Tensor, " b"]) -> None:
        """Keep only these items."""
        self._num_items = len(items)
        if self._each is not None:
            self._each = [self._each[item] for item in items.tolist()]

    def _device(self) -> torch.device | None:
        first = self._one if self._each is None else self._each[0]
        return None if first is None else first.device
