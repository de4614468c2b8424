"""A batch of sentences with their dependency trees.

Axes: B sentences, n words, P ids for the spelling of a word: features, then characters.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@final
@dataclass(frozen=True, eq=False, slots=True)
class ParseBatch:
    """Sentences with their trees."""

    tokens: Int[Tensor, "B n"]
    mask: Bool[Tensor, "B n"]
    spelling: Int[Tensor, "B n P"] | None
    heads: Int[Tensor, "B n"]
    labels: Int[Tensor, "B n"]
    tags: Int[Tensor, "B n"]  # -1 where the tag is unknown
    indices: Int[Tensor, " B"]

    @property
    def num_inputs(self) -> int:
        """The number of words in the batch, without padding."""
        return int(self.mask.sum())

    def to(self, device: torch.device) -> "ParseBatch":
        """Return the batch on a device."""
        spelling = None if self.spelling is None else self.spelling.to(device)
        tensors = (self.heads, self.labels, self.tags, self.indices)
        rest = (tensor.to(device) for tensor in tensors)
        return ParseBatch(self.tokens.to(device), self.mask.to(device), spelling, *rest)
