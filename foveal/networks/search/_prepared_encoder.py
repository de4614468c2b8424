"""A text encoder prepared for encoding many texts in search: it returns the same memory in less time.

    gates[t] = table[ token_t ] + h U^T,   table = E W^T + b

With a small vocabulary, the product of the lowest layer with a token is a row of a table, and a step only
computes the product with the state. Texts are sorted by length, longest first. At step t, the first n_t
rows are the texts that have not ended, so padding is not computed at all.

Axes: B texts, T tokens, n texts that reach a step, W tokens of the vocabulary, D width of
an input, H of a state, G of all gates.
"""

import copy
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ...attention import Memory
from ...batch_invariant import LEAST_ROWS
from ...errors import ValueRangeError
from .._compaction import arranged, to_places
from ..encoders._encoder import AbstractEncoder
from ..encoders._text_encoder import TextEncoder
from ..recurrent._bidirectional import Bidirectional
from ..recurrent._cells import AbstractCell, LSTMCell
from ._kernels import serves
from ._prepared_lstm import InputGates, PreparedLSTM
from ._stepping_state import map_memory

# Entries of the gates that are computed at once: 1 MB of float32, which fits in the cache.
_PIECE = 2**18
# Texts that a kernel computes together.
TEXTS = 128


@final
class PreparedEncoder:
    """An encoder without gradients, prepared from its current weights.

    Build a new one when the weights change. An encoder without a faster form is used unchanged.

    Args:
        encoder: Encoder in evaluation mode.
        half: Compute in bfloat16: faster for more than a few dozen texts, with two or three digits of precision.

    Raises:
        ValueRangeError: If the encoder is in training mode.

    Examples:
        >>> from torch import nn
        >>> from foveal.networks import recurrent_stack
        >>> encoder = TextEncoder(nn.Embedding(9, 4), recurrent_stack(4, 5, bidirectional=True)).eval()
        >>> PreparedEncoder(encoder)(torch.tensor([[1, 2, 3]])).values.shape
        torch.Size([1, 3, 10])
    """

    def __init__(self, encoder: AbstractEncoder, *, half: bool = False) -> None:
        if encoder.training:
            raise ValueRangeError(
                "PreparedEncoder: the encoder must be in evaluation mode, got training mode, whose "
                "dropout would be part of the search. Call encoder.eval() first."
            )
        # In half precision and without our kernels, torch's fused kernels are faster than steps of separate operations.
        self._layers: list[list[_Direction]] = []
        if not half or all(serves(weight, half=True) for weight in encoder.parameters()):
            self._layers = _prepared_layers(encoder, half=half)
        as_it_is = half and not self._layers
        self._encoder = copy.deepcopy(encoder).to(torch.bfloat16) if as_it_is else encoder
        self._half = as_it_is

    @torch.no_grad()
    def __call__(self, inputs: Tensor, mask: Tensor | None = None) -> Memory:
        """Compute the memory, as the encoder does."""
        if not self._layers or inputs.ndim != 2 or inputs.numel() == 0:
            return self._as_it_is(inputs, mask)
        lengths, moved = (None, None) if mask is None else arranged(mask)
        if mask is None or lengths is None:
            values, summary = _read(self._layers, inputs, [len(inputs)] * inputs.shape[1])
            return Memory(values, mask, summary)
        tokens = inputs.masked_fill(~mask, 0)
        tokens = tokens if moved is None else tokens.gather(1, moved.order)
        lengths, order = lengths.sort(descending=True, stable=True)
        steps = torch.arange(inputs.shape[1], device=lengths.device).unsqueeze(1)
        values, summary = _read(
            self._layers, tokens.index_select(0, order), (steps < lengths).sum(1).tolist()
        )
        back = torch.argsort(order)
        values, summary = values.index_select(0, back), summary.index_select(0, back)
        return Memory(values if moved is None else to_places(values, moved), mask, summary)

    def _as_it_is(self, inputs: Tensor, mask: Tensor | None) -> Memory:
        if not self._half:
            return _filled_up(self._encoder, inputs, mask)
        inputs = inputs.to(torch.bfloat16) if inputs.is_floating_point() else inputs
        memory = self._encoder(inputs, mask)
        summary = None if memory.summary is None else memory.summary.float()
        return memory._replace(values=memory.values.float(), summary=summary)


def _filled_up(encoder: AbstractEncoder, inputs: Tensor, mask: Tensor | None) -> Memory:
    """Pad the batch to the minimum size at which the kernels sum in a fixed order, and encode it."""
    size, missing = len(inputs), LEAST_ROWS - len(inputs)
    if missing <= 0 or not size:
        return encoder(inputs, mask)
    rows = torch.arange(size + missing, device=inputs.device).clamp(max=size - 1)
    more = None if mask is None else mask[rows]
    memory = encoder(inputs[rows], more)
    fewer = map_memory(lambda part: part[:size], memory)
    return fewer._replace(mask=mask) if memory.mask is more else fewer


class _Direction(NamedTuple):
    """One cell of a layer, which reads forward or backward."""

    cell: PreparedLSTM
    gates: InputGates
    backward: bool


def _prepared_layers(encoder: AbstractEncoder, *, half: bool) -> list[list[_Direction]]:
    """Return the layers, lowest first; none if the encoder has a different form."""
    if not isinstance(encoder, TextEncoder) or encoder.initial is not None:
        return []
    if encoder.stack.residual or encoder.stack.skip:
        return []
    if not isinstance(encoder.embedding, nn.Embedding):
        return []
    layers: list[list[_Direction]] = []
    for layer in encoder.stack.layers_in_order():
        cells: list[AbstractCell] = []
        if isinstance(layer, Bidirectional):
            cells = [layer.forward_cell, layer.backward_cell]
        elif isinstance(layer, AbstractCell):
            cells = [layer]
        directions = []
        for number, cell in enumerate(cells):
            if isinstance(cell, LSTMCell):
                prepared = PreparedLSTM(cell, half=half)
                table = None if layers else encoder.embedding.weight.detach()
                gates = InputGates(prepared.input_weight, prepared.bias, table, half=half)
                directions.append(_Direction(prepared, gates, backward=number == 1))
        if not directions or len(directions) < len(cells):
            return []
        layers.append(directions)
    return layers


def _read(
    layers: list[list[_Direction]], tokens: Int[Tensor, "B T"], rows: list[int]
) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
    """Compute outputs and summary of texts, longest first: `rows[t]` texts have a token t."""
    inputs, summary, lengths = tokens, [], _lengths(rows, len(tokens))
    for layer in layers:
        sizes = [direction.cell.size for direction in layer]
        outputs = layer[0].cell.bias.new_empty(*tokens.shape, sum(sizes))
        if min(rows) < len(tokens):  # no step writes the outputs after the end of a text
            outputs.zero_()
        summary = []
        for number, (direction, part) in enumerate(
            zip(layer, outputs.split(sizes, -1), strict=True)
        ):
            if direction.cell.from_state.packed is None:
                _run(direction, inputs, rows, part)
            else:
                _run_in_kernel(direction, inputs, lengths, outputs, sum(sizes[:number]))
            summary.append(part[:, 0] if direction.backward else _at_end(part, rows))
        inputs = outputs
    return inputs, torch.cat(summary, -1)


def _lengths(rows: list[int], num_texts: int) -> Int[Tensor, " B"]:
    """Return the length of each text, where `rows[t]` texts have a token t."""
    if min(rows) == num_texts:
        return torch.full((num_texts,), len(rows))
    return (torch.arange(num_texts) < torch.tensor(rows).unsqueeze(1)).sum(0)


def _run(
    direction: _Direction, inputs: Tensor, rows: list[int], outputs: Float[Tensor, "B T H"]
) -> None:
    """Fill in the outputs of one cell; outputs after the end of a text stay 0."""
    cell, before, num_texts = direction.cell, None, len(outputs)
    memory, at = outputs.new_zeros(num_texts, cell.size), outputs.unbind(1)
    times = [t for t, count in enumerate(rows) if count > 0]
    times = times[::-1] if direction.backward else times
    at_once = max(1, _PIECE // (num_texts * len(cell.bias)))
    for start in range(0, len(times), at_once):
        some = times[start : start + at_once]
        first = min(some)
        piece = inputs[:, first : first + len(some)].transpose(0, 1)
        scores = direction.gates(piece.flatten(0, 1)).unflatten(0, piece.shape[:2]).unbind()
        for t in some:
            gates, state, hidden, count = scores[t - first], memory, at[t], rows[t]
            if count < num_texts:
                gates, state, hidden = gates[:count], state[:count], hidden[:count]
            if before is not None:  # the initial state is 0
                cell.from_state.add_to(gates, before[:count])
            cell.update_(gates, state, hidden)
            before = at[t]


def _run_in_kernel(
    direction: _Direction,
    inputs: Tensor,
    lengths: Int[Tensor, " B"],
    outputs: Float[Tensor, "B T D"],
    offset: int,
) -> None:
    """Fill in the outputs of one cell, columns `offset` and following, with one call for a group of texts."""
    cell, packed, table = direction.cell, direction.cell.from_state.packed, direction.gates.table
    assert packed is not None
    at_once = len(inputs)
    if table is None:
        at_once = max(1, _PIECE // (inputs.shape[1] * len(cell.bias) * TEXTS)) * TEXTS
    for start in range(0, len(inputs), at_once):
        some = slice(start, start + at_once)
        piece = inputs[some]
        scores = direction.gates(piece.flatten(0, 1)) if table is None else table
        torch.ops.foveal_native.search_sequence(
            scores,
            None if table is None else piece,
            lengths[some],
            packed.blocks,
            direction.backward,
            packed.half,
            cell.size,
            offset,
            outputs[some],
        )


def _at_end(outputs: Float[Tensor, "B T H"], rows: list[int]) -> Float[Tensor, "B H"]:
    """Return the output at the last token of each text; the longest texts come first."""
    parts, following = [], 0
    for t in reversed(range(len(rows))):
        if rows[t] > following:
            parts.append(outputs[following : rows[t], t])
            following = rows[t]
    return torch.cat([*parts, outputs[following:, 0]])  # texts without a token stay 0
