"""The states and gates of recurrent cells over a text.

    h[t], c[t]          output and memory of an LSTM, or h[t] of other cells, after token t
    i[t], f[t], o[t]    gates of an LSTM at token t; r[t], z[t] of a GRU

The model reads the text once. Every cell then takes its steps again one at a time, because torch's fused kernels
expose neither states nor gates.

Axes: T tokens, H units.
Reference: Karpathy et al. 2015, Visualizing and understanding recurrent networks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float

from ...data import Example
from ...errors import ValueRangeError
from ...tasks import AbstractTask
from ..doctor._recurrences import Recurrence, listening, of_cells
from ..doctor._through_time import gates_of, states_of
from ..explaining._explaining import explain

BEGIN = "begin"  # label of the token that a decoder reads first


@final
@dataclass(frozen=True, kw_only=True)
class Activations:
    """The states and gates of one recurrent cell over a text.

    `parts` has `hidden`, also `cell`, `input`, `forget` and `output` for an LSTM, and `reset` and `update` for a GRU.
    States are between -1 and 1, except `cell`; gates are between 0 and 1.
    """

    name: str  # encoder forward, decoder, decoder layer 2, ...
    tokens: tuple[str, ...]
    parts: Mapping[str, Float[np.ndarray, "T H"]]

    def unit(self, part: str, number: int) -> tuple[float, ...]:
        """Return the values of one unit or gate.

        Args:
            part: A key of `parts`.
            number: Number of the unit, from 0.

        Returns:
            One value for each token.

        Raises:
            ValueRangeError: If the cell has no such part or unit.
        """
        if part not in self.parts or not 0 <= number < self.parts[part].shape[1]:
            size = self.parts["hidden"].shape[1]
            raise ValueRangeError(
                f"Activations: {self.name} has the parts {', '.join(self.parts)} with units 0 to {size - 1}, "
                f"got {part} {number}. Choose one of these."
            )
        return tuple(self.parts[part][:, number].tolist())

    def most_varied(self, part: str = "hidden") -> int:
        """Return the number of the unit whose value varies most over the text.

        Args:
            part: A key of `parts`.

        Returns:
            The unit with the largest standard deviation.
        """
        return int(self.parts[part].std(0).argmax())


def activations(task: AbstractTask[Any], example: Example) -> list[Activations]:
    """Return the states and gates of every recurrent cell while a model reads an example.

    A decoder reads the target of the example, or the model's own output if there is no target.

    Args:
        task: A task with its model.
        example: Example of the task.

    Returns:
        One entry for each cell; a bidirectional layer has two.

    Raises:
        ValueRangeError: If the model has no recurrent cell that reads whole sequences.
    """
    explanation = explain(task, example)
    target = explanation.output if example.target is None else example.target
    batch = task.collate([task.encode(replace(example, target=target))])
    was_training = task.model.training
    task.model.eval()
    try:
        with torch.no_grad(), listening(task.model) as heard:
            task.forced(batch)
        cells = of_cells(heard)
    finally:
        task.model.train(was_training)
    if not cells:
        raise ValueRangeError(
            f"activations: expected a model with recurrent cells that read whole sequences, got {task.spec.kind} "
            f"without one. Decoders with input feeding and Transformers have no such view."
        )
    written = (BEGIN, *(step.token for step in explanation.steps))[:-1]
    return [_activations(cell, explanation.sources, written) for cell in cells]


def _activations(
    recurrence: Recurrence, sources: Sequence[str], written: Sequence[str]
) -> Activations:
    """Take the steps of one cell again. A backward cell reads the text from its end."""
    with torch.no_grad():
        states = states_of(recurrence)
        hidden = torch.stack([state.hidden for state in states], 1)
        parts = {"hidden": hidden[:, 1:]}
        memories = [state.cell for state in states[1:] if state.cell is not None]
        if memories:
            parts["cell"] = torch.stack(memories, 1)
        parts |= gates_of(recurrence, hidden[:, :-1])
    step = -1 if recurrence.name.endswith(" backward") else 1
    values = {name: part[0].detach().numpy()[::step] for name, part in parts.items()}
    num = hidden.shape[1] - 1
    is_written = recurrence.name.startswith("decoder") and len(written) == num
    if is_written or len(sources) == num:
        tokens = tuple(written if is_written else sources)
    else:  # such as features before the source
        tokens = tuple(str(place + 1) for place in range(num))
    return Activations(name=recurrence.name, tokens=tokens, parts=values)
