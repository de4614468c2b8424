"""Where the states of a network with two units go, and how far a gradient comes back.

    h -> f(h) -> f(f(h)) -> ...         attractor: where the sequence ends;  basin: the states that end there
    g(h) = || d f^T(h) / d h ||         the largest factor of a gradient over T steps that start at h

Inside a basin, all states end at one point, so the gradient vanishes. On the border between two basins, the
smallest change decides the end, so it explodes (Pascanu et al. 2013, section 2.2).

Axes: N states of a square grid, S its side.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import ShapeError
from ...views import vector_field

_SAME = 1e-3  # ends closer than this are one attractor
_SETTLED = 1_000  # steps after which a state has reached its attractor
_TINY = 1e-12

Step = Callable[[Float[Tensor, "N 2"]], Float[Tensor, "N 2"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class PhasePortrait:
    """The flow of the states of a network with two units. A notebook shows it as a drawing.

    Attributes:
        states: The states of the grid, row by row.
        next_states: Each state after one step.
        end_states: Each state after all steps.
        gradient: The largest factor of a gradient over all steps, for each state.
        attractors: The stable fixed points that states reach.
    """

    states: Float[Tensor, "N 2"]
    next_states: Float[Tensor, "N 2"]
    end_states: Float[Tensor, "N 2"]
    gradient: Float[Tensor, " N"]
    attractors: Float[Tensor, "A 2"]

    def _repr_svg_(self) -> str:
        return vector_field(
            self.states.tolist(),
            self.next_states.tolist(),
            shades=self.gradient.clamp(min=_TINY).log10().tolist(),
            marks=self.attractors.tolist(),
            title="Flow of the states",
            shade_label="log10 of the gradient factor",
        )


def phase_portrait(
    step: Step, *, low: float = -1.0, high: float = 1.0, side: int = 21, num_steps: int = 30
) -> PhasePortrait:
    """Compute the flow of the states of a network with two units.

    Args:
        step: Maps states to the states after one step, for example of a cell that reads a constant input.
        low: Smallest value of a unit on the grid.
        high: Largest value of a unit on the grid.
        side: Number of values of each unit.
        num_steps: Number of steps until the end.

    Returns:
        The states with their next states, ends, gradients and attractors.

    Raises:
        ShapeError: The step does not map two units to two units.

    Examples:
        >>> weights = 1.5 * torch.eye(2)
        >>> portrait = phase_portrait(lambda states: torch.tanh(states @ weights))
        >>> portrait.attractors.shape  # one in each corner
        torch.Size([4, 2])
    """
    values = torch.linspace(low, high, side)
    states = torch.cartesian_prod(values, values).requires_grad_()
    with torch.enable_grad():
        ends = following = step(states)
        if following.shape != states.shape:
            raise ShapeError(
                f"phase_portrait: the step must map {list(states.shape)} to the same shape, got "
                f"{list(following.shape)}. Use a network with two units."
            )
        for _ in range(num_steps - 1):
            ends = step(ends)
        # An end depends on its own start alone, so the gradient of a sum has one row of every Jacobian.
        rows = [torch.autograd.grad(unit.sum(), states, retain_graph=True)[0] for unit in ends.T]
    return PhasePortrait(
        states=states.detach(),
        next_states=following.detach(),
        end_states=ends.detach(),
        gradient=torch.linalg.matrix_norm(torch.stack(rows, -2), 2),
        attractors=_attractors(step, ends.detach()),
    )


def _attractors(step: Step, ends: Float[Tensor, "N 2"]) -> Float[Tensor, "A 2"]:
    """Return the different stable fixed points that the states reach after many steps."""
    with torch.no_grad():
        for _ in range(_SETTLED):
            ends = step(ends)
        still = ends[(step(ends) - ends).norm(dim=-1) < _SAME]
    found = list[Tensor]()
    for point in still:
        if all((point - other).norm() > 10 * _SAME for other in found) and _is_stable(step, point):
            found.append(point)
    return torch.stack(found) if found else ends[:0]


def _is_stable(step: Step, point: Float[Tensor, "2"]) -> bool:
    """Return whether small changes shrink. A point of the grid can be a fixed point that all its neighbors leave."""
    jacobian = torch.autograd.functional.jacobian(lambda state: step(state[None])[0], point)
    assert isinstance(jacobian, Tensor)
    return bool(torch.linalg.eigvals(jacobian).abs().max() < 1)
