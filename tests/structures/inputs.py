"""Inputs of every kind: ordinary, masked, forbidden, sentinels, impossible, NaN, single.

Axes: B items of a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor

from tests.structures.structures import KINDS, SINGLE, Kind
from tests.structures.truth import Truth

BATCH = 3
SENTINELS = {
    f"{value:g}": value for value in (-1e4, -1e9, -1e19, -1e30, torch.finfo(torch.float32).min)
}


@dataclass(frozen=True, eq=False)
class Case:
    """Potentials and masks of a batch, with a second distribution over the same structures."""

    kind: Kind
    potentials: list[Tensor]  # (B, *shape), or without B if shared
    others: list[Tensor]
    masks: list[Tensor]  # (B, size)
    given: bool  # whether the library gets the masks, or None

    def make(self, potentials: list[Tensor], masks: list[Tensor] | None = None) -> Any:
        """Build the distribution of the library."""
        found = self.masks if masks is None else masks
        return self.kind.make(*potentials, *(found if self.given else [None] * len(found)))

    @cached_property
    def own_truths(self) -> list[Truth]:
        return self.truths(self.potentials)

    @cached_property
    def other_truths(self) -> list[Truth]:
        return self.truths(self.others)

    def truths(self, potentials: list[Tensor]) -> list[Truth]:
        """Return the results of enumeration, for each item."""
        return [
            self.kind.solve(
                self.kind.listed(tuple(mask[item] for mask in self.masks)),
                [
                    part if n in self.kind.shared else part[item]
                    for n, part in enumerate(potentials)
                ],
            )
            for item in range(len(self.masks[0]))
        ]


Change = Callable[[Kind, list[Tensor], list[Tensor], torch.Generator], None]


def ordinary(
    kind: Kind, potentials: list[Tensor], masks: list[Tensor], generator: torch.Generator
) -> None:
    """Leave the potentials as drawn."""


def holes(
    kind: Kind, potentials: list[Tensor], masks: list[Tensor], generator: torch.Generator
) -> None:
    """Mask all items except the first; entries that no structure reads are NaN."""
    for item in range(1, BATCH):
        for _ in range(20):
            for mask in masks:
                mask[item] = torch.rand(mask.shape[1], generator=generator) < 0.7
            if item == 1:  # begins with a hole, if a real entry remains
                masks[0][item, 0] = False
            if len(kind.listed(tuple(mask[item] for mask in masks)).values):
                break
        else:
            for mask in masks:
                mask[item] = True
    for n, potential in enumerate(potentials):
        reads = [
            kind.listed(tuple(mask[item] for mask in masks)).reads(n)
            for item in range(len(masks[0]))
        ]
        unread = ~torch.stack(reads)
        if kind.reads_rows:
            unread = ~masks[0].unsqueeze(-1).expand_as(potential)
        potential[unread.all(0) if n in kind.shared else unread] = torch.nan


def bad(value: float) -> Change:
    """Mask, and set many entries to one value, except for the entries of one structure of each
    item.
    """

    def change(
        kind: Kind, potentials: list[Tensor], masks: list[Tensor], generator: torch.Generator
    ) -> None:
        holes(kind, potentials, masks, generator)
        every = [kind.listed(tuple(mask[item] for mask in masks)) for item in range(BATCH)]
        kept = [int(torch.randint(len(each.values), (), generator=generator)) for each in every]
        for n, potential in enumerate(potentials):
            needed = torch.stack(
                [each.parts[n][row] > 0 for each, row in zip(every, kept, strict=True)]
            )
            needed = needed.any(0) if n in kind.shared else needed
            some = torch.rand(potential.shape, generator=generator) < 0.4
            potential[some & ~needed & ~potential.isnan()] = value

    return change


def impossible(kind: Kind, potentials: list[Tensor], *_: Any) -> None:
    """Forbid all structures."""
    del kind
    for potential in potentials:
        potential[:] = -torch.inf


def not_a_number(
    kind: Kind, potentials: list[Tensor], masks: list[Tensor], generator: torch.Generator
) -> None:
    """Set one entry that the first item reads to NaN."""
    reads = kind.listed(tuple(mask[0] for mask in masks)).reads(0).nonzero()
    place = reads[torch.randint(len(reads), (), generator=generator)]
    potentials[0][(0, *place.tolist())] = torch.nan


INPUTS: dict[str, tuple[Change, torch.dtype]] = {
    "ordinary": (ordinary, torch.float32),
    "ordinary, double": (ordinary, torch.float64),
    "masked": (holes, torch.float32),
    "masked, double": (holes, torch.float64),
    "forbidden": (bad(-torch.inf), torch.float32),
    "forbidden, double": (bad(-torch.inf), torch.float64),
    **{f"sentinel {name}": (bad(value), torch.float32) for name, value in SENTINELS.items()},
    "sentinel -1e+30, double": (bad(-1e30), torch.float64),
    "impossible": (impossible, torch.float32),
    "NaN": (not_a_number, torch.float32),
    "single": (ordinary, torch.float32),
    "single, masked": (holes, torch.float32),
}
# Every item has a structure, and all entries that structures read are numbers.
REGULAR = [name for name in INPUTS if name not in ("impossible", "NaN")]


@cache
def case(name: str, inputs: str) -> Case:
    """Build the batch of one kind of inputs for one distribution; every call returns the same."""
    kind = (SINGLE if inputs.startswith("single") else KINDS)[name]
    change, dtype = INPUTS[inputs]
    generator = torch.Generator().manual_seed(sum(map(ord, name + inputs)))
    both = []
    masks = [torch.ones(BATCH, size, dtype=torch.bool) for size in kind.masks]
    for _ in range(2):
        both.append(
            [
                torch.randn(
                    *(() if n in kind.shared else (BATCH,)),
                    *shape,
                    generator=generator,
                    dtype=dtype,
                )
                for n, shape in enumerate(kind.shapes)
            ]
        )
    potentials, others = both
    change(kind, potentials, masks, generator)
    return Case(kind, potentials, others, masks, given=change not in (ordinary, impossible))
