"""Run a recurrent cell again, one step at a time, and measure its gradients, gates and units.

    dL/ds_t = dL/ds_T  prod over k = t+1..T of  ds_k/ds_{k-1}          s is the state: h, or (h, c)

On a logarithmic scale, the norm of this product over the distance T - t is a straight line if the Jacobians are
similar. The slope of the line is the rate at which a gradient grows or shrinks with each step. The gradient
enters only at the end, so the measurement contains only the product.

References: Bengio et al. 1994; Pascanu et al. 2013, section 2 (the products); Karpathy et al. 2015,
section 4.2 (saturated gates).

Axes: B rows, T steps, D distances, H units.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import linear

from ...networks import CellState, GRUCell, LSTMCell
from ._recurrences import Recurrence

MAX_STEPS = 100  # back from the end; the trend is clear after a hundred steps
SATURATED = 0.05  # a gate below this, or above 1 - this, passes under a fifth of its steepest slope
CONSTANT = 1e-3  # standard deviation of a unit, with outputs in -1..1, that carries no information
_TINY = 1e-37  # the smallest float32 that keeps its digits
_LEAST_DISTANCE = 3  # a slope needs several points


class Course(NamedTuple):
    """The behavior of one cell over a batch."""

    name: str
    norms: list[float]  # gradient norm by distance from the end, relative to the norm at the end
    rate: float | None  # factor of the norm for each step back; None if texts are too short
    saturated: float | None  # fraction of gates; None if the cell has no gates
    dead: float  # fraction of units whose output is constant over the batch

    @property
    def factor(self) -> float:
        """The norm at the farthest distance that at least half of the texts reach."""
        return self.norms[-1]


def course(recurrence: Recurrence) -> Course:
    """Run a recurrence again, one step at a time, and measure it."""
    recurrence = _shortened(recurrence)
    states = states_of(recurrence)
    hidden = torch.stack([state.hidden for state in states], 1).detach()
    steps = torch.arange(recurrence.inputs.shape[1], device=hidden.device)
    real = steps < recurrence.lengths.unsqueeze(-1)
    norms = log_norms(recurrence, states)
    return Course(
        recurrence.name,
        [math.exp(value) for value in norms],
        rate(norms),
        _saturated(recurrence, hidden[:, :-1], real),
        _dead(hidden[:, 1:], real),
    )


def _shortened(recurrence: Recurrence) -> Recurrence:
    """Keep the rows that have a token, cut to the maximum number of steps."""
    rows = recurrence.lengths > 0
    start, gradient = recurrence.start, recurrence.gradient
    return recurrence._replace(
        inputs=recurrence.inputs[rows, :MAX_STEPS],
        lengths=recurrence.lengths[rows].clamp(max=MAX_STEPS),
        start=CellState(start.hidden[rows], None if start.cell is None else start.cell[rows]),
        gradient=None if gradient is None else gradient[rows],
    )


def states_of(recurrence: Recurrence) -> list[CellState]:
    """Return the states before the first step and after each step, with h and c separate: `where` makes tensors that
    depend on each other only through the next step.
    """
    cell, start = recurrence.cell, recurrence.start
    with torch.enable_grad():
        hidden = start.hidden.clone().requires_grad_()
        memory = None if start.cell is None else start.cell.clone().requires_grad_()
        states = [CellState(hidden, memory)]
        for t, inputs in enumerate(recurrence.inputs.unbind(1)):
            real = (t < recurrence.lengths).unsqueeze(-1)
            before, after = states[-1], cell(inputs, states[-1])
            memory = None
            if after.cell is not None and before.cell is not None:
                memory = torch.where(real, after.cell, before.cell)
            states.append(CellState(torch.where(real, after.hidden, before.hidden), memory))
    return states


def log_norms(recurrence: Recurrence, states: list[CellState]) -> list[float]:
    """Return the mean log norm of the gradient by distance from the end, relative to the norm at the end, up to the
    distance that half of the rows reach.
    """
    return _by_distance(_by_step(recurrence, states), recurrence)


def _by_step(recurrence: Recurrence, states: list[CellState]) -> Float[Tensor, "B T"]:
    """Return the log norms of the gradient with respect to each state, h and c together."""
    last = states[-1].hidden
    direction = torch.ones_like(last)
    if recurrence.gradient is not None:
        # A row that the loss does not reach has no gradient direction.
        reached = recurrence.gradient.norm(dim=-1, keepdim=True) > 0
        direction = torch.where(reached, recurrence.gradient, direction)
    direction = direction / direction.norm(dim=-1, keepdim=True)
    tensors = [part for state in states for part in state if part is not None]
    found = torch.autograd.grad(last, tensors, direction, allow_unused=True, materialize_grads=True)
    squares = torch.stack([gradient.square().sum(-1) for gradient in found], -1)
    parts = 1 if states[0].cell is None else 2
    return squares.unflatten(-1, (-1, parts)).sum(-1).sqrt().clamp(min=_TINY).log()


def _by_distance(norms: Float[Tensor, "B T"], recurrence: Recurrence) -> list[float]:
    lengths = recurrence.lengths
    if not len(lengths):
        return [0.0]
    farthest = int(lengths.median())
    distance = torch.arange(farthest + 1, device=lengths.device)
    index = lengths.unsqueeze(-1) - distance
    values = norms.gather(1, index.clamp(min=0))
    there = index >= 0
    means = torch.where(there, values, 0.0).sum(0) / there.sum(0)
    return (means - means[0]).tolist()


def rate(norms: list[float]) -> float | None:
    """Return the slope of a straight line through the logarithms, as a factor."""
    if len(norms) <= _LEAST_DISTANCE:
        return None
    distance = torch.arange(len(norms), dtype=torch.float64)
    centered = distance - distance.mean()
    slope = (centered * torch.tensor(norms, dtype=torch.float64)).sum() / centered.square().sum()
    return math.exp(float(slope))


def _saturated(
    recurrence: Recurrence, before: Float[Tensor, "B T H"], real: Bool[Tensor, "B T"]
) -> float | None:
    """Return the fraction of gates, over real steps, that are almost fully open or closed."""
    found = gates_of(recurrence, before)
    if not found:
        return None
    gates = torch.cat([*found.values()], -1)[real]
    shut = (gates < SATURATED) | (gates > 1 - SATURATED)
    return float(shut.float().mean()) if len(gates) else None


@torch.no_grad()
def gates_of(
    recurrence: Recurrence, before: Float[Tensor, "B T H"]
) -> dict[str, Float[Tensor, "B T H"]]:
    """Return the gates of each step by name, given the outputs before it; none for a cell without gates."""
    cell = recurrence.cell
    if not isinstance(cell, LSTMCell | GRUCell):
        return {}
    weights = cell.weights
    scores = linear(recurrence.inputs, weights.input, weights.input_bias)
    scores = scores + linear(before, weights.hidden, weights.hidden_bias)
    if isinstance(cell, LSTMCell):
        i, f, _, o = scores.chunk(4, -1)
        return {"input": i.sigmoid(), "forget": f.sigmoid(), "output": o.sigmoid()}
    r, z, _ = scores.chunk(3, -1)
    return {"reset": r.sigmoid(), "update": z.sigmoid()}


def _dead(after: Float[Tensor, "B T H"], real: Bool[Tensor, "B T"]) -> float:
    """Return the fraction of units that are constant over all real steps of all rows."""
    outputs = after[real]
    if len(outputs) < 2:
        return 0.0
    return float((outputs.std(0) < CONSTANT).float().mean())
