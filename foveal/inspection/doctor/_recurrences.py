"""Recordings of the recurrent layers of a model, to run them again one step at a time.

Whole sequences go through torch's fused kernels, which expose neither gates nor the gradient at each
step. A hook on every `RecurrentStack` records its inputs and outputs. The stack of a
decoder that reads its context takes single steps, so the inputs of its cells are recorded instead.

Axes: B rows, T positions, D input width, H state width.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ...attention import Memory
from ...networks import (
    AbstractCell,
    BahdanauDecoder,
    CellState,
    InputFeedingDecoder,
    RecurrentStack,
    StackState,
)
from ...networks.recurrent._bidirectional import Bidirectional
from ...networks.recurrent._layers import AbstractLayer
from ...networks.recurrent._stacks import StackOutput


class Heard(NamedTuple):
    """One recorded call of a stack."""

    name: str  # encoder, decoder, or the path of another module
    stack: RecurrentStack
    inputs: Float[Tensor, "B T D"]
    mask: Bool[Tensor, "B T"]
    state: StackState
    ran: StackOutput  # its output, with the autograd graph


class Recurrence(NamedTuple):
    """The input of one cell, in its reading order."""

    name: str
    cell: AbstractCell
    inputs: Float[Tensor, "B T D"]
    lengths: Int[Tensor, " B"]
    start: CellState
    gradient: (
        Float[Tensor, "B H"] | None
    )  # gradient of the loss with respect to the output at the end


@contextmanager
def listening(model: nn.Module) -> Iterator[list[Heard]]:
    """Record every call of a stack inside the block; the model is unchanged afterwards."""
    heard: list[Heard] = []
    handles = [
        module.register_forward_hook(partial(_note, heard, name), with_kwargs=True)
        for name, module in model.named_modules()
        if isinstance(module, RecurrentStack)
    ]
    try:
        yield heard
    finally:
        for handle in handles:
            handle.remove()


def recurrences(heard: Sequence[Heard], loss: Float[Tensor, ""]) -> list[Recurrence]:
    """Return every cell of every stack, with the gradient of the loss with respect to the top outputs."""
    tops = [(one.ran.outputs, one.ran.state[-1].hidden) for one in heard]
    wanted = [tensor for pair in tops for tensor in pair]
    gradients = torch.autograd.grad(loss, wanted, allow_unused=True) if wanted else ()
    pairs = zip(gradients[::2], gradients[1::2], strict=True)
    return [
        each
        for one, (outputs, last) in zip(heard, pairs, strict=True)
        for each in _layers(one, outputs, last)
    ]


def of_cells(heard: Sequence[Heard]) -> list[Recurrence]:
    """Return every cell of every stack, without gradients."""
    return [each for one in heard for each in _layers(one, None, None)]


@torch.no_grad()
def fed_recurrences(
    decoder: InputFeedingDecoder | BahdanauDecoder,
    tokens: Int[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    memory: Memory,
) -> list[Recurrence]:
    """Return the cells of a decoder that reads its context, by taking its steps. The context counts as an input:
    the gradient is not followed through it.
    """
    memory = decoder.remember(memory)
    first = state = decoder.start(memory)
    cells = decoder.stack.cells_in_order()
    inputs: list[list[Tensor]] = [[] for _ in cells]
    handles = [
        cell.register_forward_pre_hook(partial(_note_input, taken))
        for cell, taken in zip(cells, inputs, strict=True)
    ]
    try:
        for token in tokens.unbind(1):
            state = decoder.step(state, token, memory).state
    finally:
        for handle in handles:
            handle.remove()
    lengths = mask.sum(-1)
    names = (
        ["decoder"] if len(cells) == 1 else [f"decoder layer {n + 1}" for n in range(len(cells))]
    )
    return [
        Recurrence(name, cell, torch.stack(taken, 1), lengths, start, None)
        for name, cell, taken, start in zip(names, cells, inputs, first.layers, strict=True)
    ]


def _note_input(taken: list[Tensor], cell: nn.Module, args: tuple[Any, ...]) -> None:
    del cell
    taken.append(args[0])


def _note(
    heard: list[Heard],
    name: str,
    stack: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ran: StackOutput,
) -> None:
    given = dict(zip(("inputs", "mask", "state"), args, strict=False)) | kwargs
    assert isinstance(stack, RecurrentStack)
    inputs, mask = given["inputs"].detach(), given.get("mask")
    if inputs.ndim != 3:  # such as sentences of a document, whose rows are separate examples
        return
    if mask is None:
        mask = inputs.new_ones(inputs.shape[:-1], dtype=torch.bool)
    state = given.get("state") or stack.start(inputs.shape[:1])
    part = name.removesuffix(".stack")
    heard.append(Heard(part, stack, inputs, mask, _detached(state), ran))


def _layers(heard: Heard, outputs: Tensor | None, last: Tensor | None) -> Iterator[Recurrence]:
    """Return the cells from the lowest layer up; only the top layer has a gradient."""
    stack, below = heard.stack, heard.inputs
    layers = stack.layers_in_order()
    for number, layer in enumerate(layers):
        is_top = number == len(layers) - 1
        reads = torch.cat([below, heard.inputs], -1) if stack.skip and number else below
        name = heard.name if len(layers) == 1 else f"{heard.name} layer {number + 1}"
        gradients = (outputs, last) if is_top else (None, None)
        yield from _cells(name, layer, reads, heard.mask, heard.state[number], *gradients)
        if not is_top:
            above = _run(layer, reads, heard.mask, heard.state[number])
            joined = stack.residual and above.shape == below.shape
            below = below + above if joined else above


def _cells(
    name: str,
    layer: AbstractLayer,
    reads: Tensor,
    mask: Tensor,
    start: CellState,
    outputs: Tensor | None,
    last: Tensor | None,
) -> Iterator[Recurrence]:
    """Return one forward cell, or a forward and a backward cell."""
    if isinstance(layer, Bidirectional):
        size = layer.forward_cell.output_size
        sides = [
            (f"{name} forward", layer.forward_cell, slice(None, size), False),
            (f"{name} backward", layer.backward_cell, slice(size, None), True),
        ]
    else:
        assert isinstance(layer, AbstractCell)
        sides = [(name, layer, slice(None), False)]
    lengths = mask.sum(-1)
    for side, cell, part, backwards in sides:
        order = _order(mask, backwards=backwards)
        gradient = None
        if outputs is not None:
            given = _in_order(outputs[..., part], order)
            gradient = given[torch.arange(len(given)), (lengths - 1).clamp(min=0)]
        if last is not None:
            gradient = last[..., part] + (0.0 if gradient is None else gradient)
        memory = None if start.cell is None else start.cell[..., part]
        first = CellState(start.hidden[..., part], memory)
        yield Recurrence(side, cell, _in_order(reads, order), lengths, first, gradient)


def _run(layer: AbstractLayer, reads: Tensor, mask: Tensor, start: CellState) -> Tensor:
    """Return the output of a layer at each position, detached."""
    order = _order(mask, backwards=False)
    with torch.no_grad():
        outputs = layer.run(_in_order(reads, order), start, mask.sum(-1)).outputs
    index = order.unsqueeze(-1).expand_as(outputs)
    return torch.zeros_like(outputs).scatter(1, index, outputs)


def _order(mask: Bool[Tensor, "B T"], *, backwards: bool) -> Int[Tensor, "B T"]:
    """Return the positions in reading order, real ones first."""
    place = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    key = -place if backwards else place
    return torch.where(mask, key, mask.shape[1]).argsort(dim=-1, stable=True)


def _in_order(values: Tensor, order: Int[Tensor, "B T"]) -> Tensor:
    return values.gather(1, order.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


def _detached(state: StackState) -> StackState:
    return tuple(
        CellState(one.hidden.detach(), None if one.cell is None else one.cell.detach())
        for one in state
    )
