"""The spec of pyramidal encoders of speech."""

import math
from dataclasses import dataclass
from typing import Literal, final

from ...errors import ValueRangeError
from ...networks import PyramidalEncoder
from ...specs import setting
from ._recurrent_spec import AbstractRecurrentSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PyramidalEncoderSpec(AbstractRecurrentSpec):
    """Levels of bidirectional recurrent layers, each of which joins neighboring outputs of the level below (Chan et al.
    2016).
    """

    kind: Literal["pyramidal"] = "pyramidal"
    num_layers: int = setting(1, "number of recurrent layers of each level", at_least=1)
    factors: tuple[int, ...] = setting(
        (2, 2, 2), "number of neighboring vectors that each level reads as one", at_least=1
    )
    dropout: float = setting(0.1, "dropout of the inputs of each layer", at_least=0, at_most=1)

    def build(self, num_features: int) -> PyramidalEncoder:
        """Build the encoder.

        Args:
            num_features: Width of a frame.

        Returns:
            An encoder with new weights.

        Raises:
            ValueRangeError: If there are no factors.
        """
        if not self.factors:
            raise ValueRangeError(
                "PyramidalEncoderSpec: factors must name at least one level, got none. Pass, for example, (2, 2, 2)."
            )
        levels, width = [], num_features
        for factor in self.factors:
            levels.append(self.stack(factor * width, bidirectional=True))
            width = levels[-1].output_size
        return PyramidalEncoder(levels, factors=self.factors, dropout=self.dropout)

    @property
    def step(self) -> int:
        """Return the number of frames of a position of the memory."""
        return math.prod(self.factors)
