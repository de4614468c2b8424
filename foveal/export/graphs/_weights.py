"""The weights of a bundle by name, read without torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np


@final
@dataclass(frozen=True, slots=True)
class Weights:
    """The tensors of one part of a model.

    Examples:
        >>> weights = Weights({"decoder.bias": np.zeros(3, np.float32)})
        >>> weights.at("decoder")["bias"].shape
        (3,)
    """

    tensors: Mapping[str, np.ndarray]
    prefix: str = ""

    def at(self, path: str) -> "Weights":
        """Select the weights of a part of this part.

        Args:
            path: Name of the part.

        Returns:
            The weights of the part.
        """
        return Weights(self.tensors, f"{self.prefix}{path}.")

    def __getitem__(self, name: str) -> np.ndarray:
        return self.tensors[self.prefix + name].astype(np.float32, copy=False)

    def __contains__(self, name: object) -> bool:
        return f"{self.prefix}{name}" in self.tensors
