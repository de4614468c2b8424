"""Laws of cells, encoders and decoders.

Axes: B batch, T positions.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..attention import Memory
from ..masking import mask_from_lengths
from ..networks import AbstractCell, CellState, DecoderState
from ..networks.decoders._token_decoder import AbstractTokenDecoder
from ._module_laws import (
    assert_near,
    assert_same_gradients,
    check_reach,
    check_undisturbed,
    gradients,
    junk_in,
    masks,
    total,
)


def check_cell(cell: AbstractCell) -> None:
    """Check the laws of a recurrent cell.

    A run over a sequence of any length equals its single steps, padding does not change the result, gradients reach
    every parameter, and the module keeps no state.

    Args:
        cell: Cell to check.

    Examples:
        >>> from foveal.networks import GRUCell
        >>> check_cell(GRUCell(3, 4))
    """
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(4, 5, cell.input_size, generator=generator)
    other = torch.randn(4, 5, cell.input_size, generator=generator)
    zero = cell.start([4])
    assert (zero.cell is not None) == cell.has_memory, "has_memory and the state disagree"
    first = cell(torch.randn(4, cell.input_size, generator=generator), zero)
    first = CellState(first.hidden.detach(), None if first.cell is None else first.cell.detach())
    for state in (zero, first):
        for lengths in (None, torch.tensor([5, 3, 1, 0])):
            _check_run(cell, inputs, state, lengths)
    lengths = torch.tensor([5, 3, 1, 0])
    real = mask_from_lengths(lengths, 5)
    clean = cell.run(inputs, first, lengths)
    for dirty in junk_in(inputs, real.unsqueeze(-1)):
        junk = cell.run(dirty, first, lengths)
        assert torch.equal(junk.outputs, clean.outputs), "junk after the end is read"
        for found, expected in zip(_parts(junk.state), _parts(clean.state), strict=True):
            assert torch.equal(found, expected), "junk after the end reaches the state"
    _check_no_batch(cell, inputs, first)
    check_reach(cell, total(cell.run(inputs, first, lengths).outputs))
    check_reach(cell, total(cell(inputs[:, 0], first).hidden))
    check_undisturbed(
        cell,
        lambda: cell.run(inputs, first, lengths).outputs,
        lambda: cell.run(other, zero).outputs,
    )


def check_encoder(
    encoder: nn.Module,
    inputs: Tensor,
    mask_shape: tuple[int, ...] | None = None,
    *,
    over: Callable[[Tensor], Tensor] | None = None,
    memory_of: Callable[[Any], Memory] = lambda encoded: encoded,
) -> None:
    """Check the laws of an encoder: shapes, every mask pattern, arbitrary values in padding, batching, gradients, and
    independent requests.

    Args:
        encoder: The encoder, called as `encoder(inputs, mask)`.
        inputs: A batch of at least three items, `(B, ...)`.
        mask_shape: The shape of the mask; None for an encoder that takes no mask.
        over: A function that reshapes the mask to broadcast to the inputs. By default, axes are appended.
        memory_of: A function from the output of the encoder to the memory.

    Examples:
        >>> from foveal.networks import TextEncoder, recurrent_stack
        >>> encoder = TextEncoder(nn.Embedding(9, 4), recurrent_stack(4, 5))
        >>> check_encoder(encoder, torch.randint(9, (4, 6)), (4, 6))
    """
    encoder.eval()

    def encode(*arguments: Tensor) -> Memory:
        return memory_of(encoder(*arguments))

    whole = encode(inputs)
    _check_memory(whole, len(inputs))
    for item in range(len(inputs)):
        alone = encode(inputs[item : item + 1])
        assert_near(alone.values[0], whole.values[item], "one item alone and in a batch")
    shaped = encode(inputs[:, None])
    assert_near(shaped.values[:, 0], whole.values, "with two leading axes")
    if mask_shape is not None:
        full = encode(inputs, torch.ones(mask_shape, dtype=torch.bool))
        assert_near(full.values, whole.values, "no mask, and one that is all True")
        for pattern, mask in masks(mask_shape).items():
            places = over(mask) if over else mask[(...,) + (None,) * (inputs.ndim - mask.ndim)]
            _check_masked(encoder, encode, inputs, mask, places, pattern)
    check_reach(encoder, _loss(whole))
    check_undisturbed(encoder, lambda: encode(inputs).values, lambda: encode(inputs.flip(0)).values)


def check_decoder(decoder: AbstractTokenDecoder, memory: Memory, num_tokens: int) -> None:
    """Check the laws of a decoder.

    Single steps equal the unrolled sequence for every mask pattern, and so does the loss that is computed without the
    table of log-probabilities. Padding of tokens and memory does not change the result, a sequence may be decoded in
    two pieces, two requests may be interleaved, and gradients reach every parameter.

    Args:
        decoder: Any decoder.
        memory: The memory that it reads, with one batch axis of at least three items.
        num_tokens: Size of the vocabulary.

    Examples:
        >>> from foveal.networks import PlainDecoder, NoBridge, recurrent_stack
        >>> from foveal.networks._bridges import no_memory
        >>> stack, bridge = recurrent_stack(4, 5), NoBridge()
        >>> decoder = PlainDecoder(embedding=nn.Embedding(9, 4), stack=stack, bridge=bridge)
        >>> check_decoder(decoder, no_memory(4), num_tokens=9)
    """
    decoder.eval()
    batch = len(memory.values)
    tokens = torch.randint(num_tokens, (batch, 5), generator=torch.Generator().manual_seed(0))
    whole = decoder.unroll(tokens, memory)
    assert whole.log_probs.shape == (batch, 5, num_tokens), "the shape of the log-probabilities"
    sums = whole.log_probs.exp().sum(-1)
    assert_near(sums, torch.ones_like(sums), "probabilities sum to 1")
    for pattern, mask in masks((batch, 5)).items():
        _check_steps(decoder, tokens, memory, mask, pattern)
        _check_score(decoder, tokens, memory, mask, pattern)
    _check_pieces(decoder, tokens, memory)
    _check_turns(decoder, tokens, memory)
    if memory.mask is not None:
        expected = gradients(decoder, total(whole.log_probs))
        for dirty in junk_in(memory.values, memory.mask.unsqueeze(-1)):
            junk = decoder.unroll(tokens, memory._replace(values=dirty))
            assert torch.equal(junk.log_probs, whole.log_probs), "junk in the memory is read"
            found = gradients(decoder, total(junk.log_probs))
            assert_same_gradients(found, expected, "junk in the memory")
    check_reach(decoder, total(decoder.unroll(tokens, memory).log_probs))
    check_reach(decoder, total(decoder.score(tokens, tokens.flip(1), memory).loss))
    check_undisturbed(
        decoder,
        lambda: decoder.unroll(tokens, memory).log_probs,
        lambda: decoder.unroll(tokens.flip(0), memory).log_probs,
    )


def _check_run(
    cell: AbstractCell, inputs: Tensor, state: CellState, lengths: Tensor | None
) -> None:
    """Compare a run with the same steps taken one at a time."""
    fused, stepped = (
        cell.run(inputs, state, lengths),
        AbstractCell.run(cell, inputs, state, lengths),
    )
    assert_near(fused.outputs, stepped.outputs, "a run and its steps")
    for found, expected in zip(_parts(fused.state), _parts(stepped.state), strict=True):
        assert_near(found, expected, "the state after a run and after its steps")
    if lengths is not None:
        for item, length in enumerate(lengths.tolist()):
            assert not fused.outputs[item, length:].any(), "an output after the end is not 0"


def _check_no_batch(cell: AbstractCell, inputs: Tensor, state: CellState) -> None:
    """Check a step of one item without a batch axis."""
    after = cell(inputs[:, 0], state)
    one = CellState(state.hidden[0], None if state.cell is None else state.cell[0])
    assert_near(cell(inputs[0, 0], one).hidden, after.hidden[0], "one item without a batch axis")


def _check_memory(memory: Memory, batch: int) -> None:
    values = memory.values
    assert values.isfinite().all(), "a value is not finite"
    assert values.shape[0] == batch, "the values have lost the batch axis"
    if memory.mask is not None:
        assert memory.mask.shape == values.shape[:-1], "the shapes of values and mask"
        assert not values[~memory.mask].any(), "a value is not 0 on padding"
    if memory.summary is not None:
        assert memory.summary.ndim == 2, "a summary is one vector for each item"
        assert memory.summary.isfinite().all(), "a summary is not finite"


def _check_masked(
    encoder: nn.Module,
    encode: Callable[..., Memory],
    inputs: Tensor,
    mask: Tensor,
    places: Tensor,
    pattern: str,
) -> None:
    """Check that padding is 0, that an item gives the same result in any batch, and that arbitrary values in
    padding change neither the memory nor the gradients of the parameters, bit for bit.
    """
    clean = encode(inputs, mask)
    _check_memory(clean, len(inputs))
    assert clean.mask is not None, f"{pattern}: the memory has lost its mask"
    for item in range(len(inputs)):
        alone = encode(inputs[item : item + 1], mask[item : item + 1])
        assert_near(alone.values[0], clean.values[item], f"{pattern}: alone and in a batch")
    expected = gradients(encoder, _loss(clean))
    for dirty in junk_in(inputs, places):
        junk = encode(dirty, mask)
        assert torch.equal(junk.values, clean.values), f"{pattern}: junk in padding is read"
        if clean.summary is not None and junk.summary is not None:
            assert torch.equal(junk.summary, clean.summary), f"{pattern}: junk is summarized"
        found = gradients(encoder, _loss(junk))
        assert_same_gradients(found, expected, f"{pattern}: junk in padding")


def _loss(memory: Memory) -> Tensor:
    """Return a scalar that depends on all values and on the summary, if there is one."""
    loss = total(memory.values)
    return loss if memory.summary is None else loss + total(memory.summary)


def _check_steps(
    decoder: AbstractTokenDecoder, tokens: Tensor, memory: Memory, mask: Tensor, pattern: str
) -> None:
    """Compare the unrolled sequence with single steps over the real tokens of each item."""
    whole = decoder.unroll(tokens, memory, mask)
    assert not whole.log_probs[~mask].any(), f"{pattern}: log-probabilities on padding are not 0"
    for dirty in junk_in(tokens, mask):
        junk = decoder.unroll(dirty, memory, mask)
        assert torch.equal(junk.log_probs, whole.log_probs), f"{pattern}: a padded token is read"
    for item in range(len(tokens)):
        alone = decoder.remember(_one(memory, item))
        state = decoder.start(alone)
        for t in mask[item].nonzero().flatten().tolist():
            state, log_probs, _ = decoder.step(state, tokens[item : item + 1, t], alone)
            expected = whole.log_probs[item, t]
            assert_near(log_probs[0], expected, f"{pattern}: steps and the unrolled whole")
        for found, expected in zip(_leaves(state), _leaves(whole.state), strict=True):
            assert_near(found[0], expected[item], f"{pattern}: the state at the end")
        ended = whole.state.map(partial(_row, item))
        found, expected = (decoder.step(each, tokens[:1, 0], alone) for each in (state, ended))
        assert_near(found.log_probs, expected.log_probs, f"{pattern}: a step after the end")


def _check_score(
    decoder: AbstractTokenDecoder, tokens: Tensor, memory: Memory, mask: Tensor, pattern: str
) -> None:
    """Compare the loss of the targets with the log-probabilities of the unrolled sequence.

    The targets are the next input tokens, because a decoder may use either to track its position.
    """
    targets = tokens.roll(1, 0)
    for item, real in enumerate(mask):
        read = tokens[item, real]
        targets[item, real] = torch.cat([read[1:], targets[item, real][-1:]])
    whole = decoder.unroll(tokens, memory, mask).log_probs
    chosen = whole.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    possible = whole > -torch.inf
    mean = torch.where(possible, whole, 0.0).sum(-1) / possible.sum(-1)
    smooth = torch.where(mask, -0.9 * chosen - 0.1 * mean, 0.0)
    scored = decoder.score(tokens, targets, memory, mask, label_smoothing=0.1)
    assert_near(scored.log_prob, chosen, f"{pattern}: log-probabilities of the targets")
    assert_near(scored.loss, smooth, f"{pattern}: the smoothed loss of the targets")
    for dirty, aims in zip(junk_in(tokens, mask), junk_in(targets, mask), strict=True):
        junk = decoder.score(dirty, aims, memory, mask, label_smoothing=0.1)
        assert torch.equal(junk.loss, scored.loss), f"{pattern}: junk in padding has a loss"


def _check_pieces(decoder: AbstractTokenDecoder, tokens: Tensor, memory: Memory) -> None:
    """Check that two pieces, the second starting from the state of the first, equal the whole sequence."""
    whole = decoder.unroll(tokens, memory).log_probs
    begun = decoder.unroll(tokens[:, :2], memory)
    rest = decoder.unroll(tokens[:, 2:], memory, state=begun.state)
    assert_near(torch.cat([begun.log_probs, rest.log_probs], 1), whole, "in two pieces")


def _check_turns(decoder: AbstractTokenDecoder, tokens: Tensor, memory: Memory) -> None:
    """Check that two interleaved requests give the same result as each request in isolation."""
    whole = decoder.unroll(tokens, memory).log_probs
    memories = [decoder.remember(_one(memory, item)) for item in (0, 1)]
    states = [decoder.start(each) for each in memories]
    for t in range(tokens.shape[1]):
        for item in (0, 1):
            step = decoder.step(states[item], tokens[item : item + 1, t], memories[item])
            states[item] = step.state
            assert_near(step.log_probs[0], whole[item, t], "requests that take turns")


def _one(memory: Memory, item: int) -> Memory:
    """Return one item as a batch of one."""
    one = slice(item, item + 1)
    return memory._replace(
        values=memory.values[one],
        mask=None if memory.mask is None else memory.mask[one],
        summary=None if memory.summary is None else memory.summary[one],
        copies=None if memory.copies is None else memory.copies[one],
    )


def _row(item: int, part: Tensor) -> Tensor:
    return part[item : item + 1]


def _parts(state: CellState) -> list[Tensor]:
    return [state.hidden] if state.cell is None else [state.hidden, state.cell]


def _leaves(state: DecoderState) -> list[Tensor]:
    leaves = [part for layer in state.layers for part in _parts(layer)]
    return [*leaves, state.own] if isinstance(state.own, Tensor) else leaves
