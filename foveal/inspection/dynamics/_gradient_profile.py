"""The norm of a gradient that flows back through a recurrent cell, by distance.

    dL/ds_t = dL/ds_T  prod over k = t+1..T of  ds_k/ds_{k-1}          s is the state: h, or (h, c)

The doctor measures the cells of a trained model in the same way.

Axes: B sequences, T positions, D width of an input.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import ShapeError
from ...networks import AbstractCell
from ...views import Series, curves
from ..doctor._recurrences import Recurrence
from ..doctor._through_time import log_norms, rate, states_of


@dataclass(frozen=True, kw_only=True, slots=True)
class GradientProfile:
    """Norms of a gradient by distance from the end. A notebook shows it as a drawing.

    Attributes:
        norms: The norm at each distance, relative to the norm at the end; the first is 1.
        rate: The factor by which the norm changes with each step back, from a straight line through the logarithms.
    """

    norms: tuple[float, ...]
    rate: float

    def series(self, name: str) -> Series:
        """Return the curve of the base-10 logarithm of the norms, for `foveal.views.curves`.

        Args:
            name: Name of the curve in the legend.

        Returns:
            One point for each distance.
        """
        points = tuple((distance, math.log10(norm)) for distance, norm in enumerate(self.norms))
        return Series(name=name, points=points)

    def _repr_svg_(self) -> str:
        return curves(
            [self.series(f"x {self.rate:.3g} per step")],
            title="Gradient norm by distance",
            x_label="distance from the end",
            y_label="log10 of the gradient norm",
        )


def gradient_profile(cell: AbstractCell, inputs: Float[Tensor, "B T D"]) -> GradientProfile:
    """Measure how the norm of a gradient changes on its way back through a recurrent cell.

    The gradient enters at the last state, in the direction of a vector of ones, and the profile is the geometric mean
    over the sequences.

    Args:
        cell: A recurrent cell.
        inputs: Sequences that the cell reads, at least four positions long.

    Returns:
        The norms by distance and their rate of change.

    Raises:
        ShapeError: There is no sequence, or the sequences are too short.

    Examples:
        >>> from foveal.networks import ElmanCell
        >>> cell = ElmanCell(1, 1)
        >>> with torch.no_grad():
        ...     for weight in cell.parameters():
        ...         _ = weight.fill_(0.0)
        ...     _ = cell.weights.hidden.fill_(0.9)
        >>> profile = gradient_profile(cell, torch.zeros(1, 50, 1))  # tanh'(0) = 1
        >>> f"{profile.norms[50]:.5f}", f"{profile.rate:.3f}"
        ('0.00515', '0.900')
    """
    if not len(inputs) or inputs.shape[1] < 4:
        raise ShapeError(
            f"gradient_profile: expected at least one sequence of at least four positions, got "
            f"{len(inputs)} of {inputs.shape[1]} positions. A rate needs several distances."
        )
    lengths = torch.full((len(inputs),), inputs.shape[1], device=inputs.device)
    recurrence = Recurrence("cell", cell, inputs, lengths, cell.start([len(inputs)]), None)
    logarithms = log_norms(recurrence, states_of(recurrence))
    slope = rate(logarithms)
    assert slope is not None  # long enough, as checked above
    return GradientProfile(norms=tuple(map(math.exp, logarithms)), rate=slope)
