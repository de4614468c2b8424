"""Steps with forced attention weights match equations written out by hand."""

import pytest
import torch
from torch import Tensor

from foveal.attention import Attended, Memory, MultiHead
from foveal.errors import ShapeError, ValueRangeError
from foveal.networks import AbstractDecoder, BahdanauDecoder, DecoderStepper
from foveal.networks.decoders._decoder import AbstractAttentionDecoder
from tests.networks.test_stepping import (
    ATTENTIONS,
    BATCH,
    TOKENS,
    WIDTH,
    decoder_with,
    memory_for,
    widen,
)

ONE_LEVEL = [name for name in ATTENTIONS if name not in ("heads", "levels")]


def by_hand(
    decoder: AbstractDecoder | BahdanauDecoder, memory: Memory, tokens: Tensor, weights: Tensor
) -> Tensor:
    """Compute log-probabilities after the first token of one hypothesis, without any precomputed
    state.
    """
    assert isinstance(decoder, AbstractAttentionDecoder | BahdanauDecoder)
    memory = decoder.remember(memory)
    state = decoder.start(memory)
    if isinstance(decoder.attention, MultiHead):
        heads = [weights[:, None] @ memory.values[:, head] for head in range(2)]
        context = decoder.attention.output(torch.cat(heads, -1)).squeeze(1)
    else:
        context = (weights.unsqueeze(-1) * memory.values).sum(1)
    if isinstance(decoder, BahdanauDecoder):
        vector, _ = decoder.advance(decoder.with_context(state, context), tokens, memory)
        return decoder.output(vector, decoder.embedding)
    hidden, _ = decoder.advance(state, tokens, memory)
    vector = torch.tanh(torch.cat([context, hidden], -1) @ decoder.combine.weight.T)
    return decoder.output(vector, decoder.embedding)


@pytest.mark.parametrize("attention", ONE_LEVEL)
@pytest.mark.parametrize("kind", ["attention", "feeding", "before", "deep"])
def test_forcing_the_own_weights_changes_nothing(kind: str, attention: str) -> None:
    torch.manual_seed(0)
    decoder, memory = decoder_with(kind, attention), memory_for(attention)
    stepper = DecoderStepper(decoder)
    free = given = widen(stepper, stepper.start(memory), WIDTH)
    for _ in range(3):  # input feeding passes each context to the next step
        tokens = torch.randint(TOKENS, (BATCH, WIDTH))
        own = stepper.step(free, tokens)
        forced = stepper.step(given, tokens, own.weights)
        torch.testing.assert_close(forced.log_probs, own.log_probs, rtol=0, atol=1e-6)
        torch.testing.assert_close(forced.weights, own.weights, rtol=0, atol=0)
        free, given = own.state, forced.state


@pytest.mark.parametrize("attention", [*ONE_LEVEL, "heads"])
@pytest.mark.parametrize("kind", ["attention", "feeding", "before"])
def test_forcing_another_place_reads_that_place(kind: str, attention: str) -> None:
    torch.manual_seed(1)
    decoder, memory = decoder_with(kind, attention), memory_for(attention)
    stepper, tokens = DecoderStepper(decoder), torch.randint(TOKENS, (BATCH,))
    state = stepper.start(memory)
    free = stepper.step(state, tokens.unsqueeze(1)).log_probs
    for place in range(4):
        weights = torch.zeros(BATCH, 4)
        weights[:, place] = 1.0
        if memory.mask is not None:
            weights[~memory.mask] = 0.0
        stepped = stepper.step(state, tokens.unsqueeze(1), weights.unsqueeze(1))
        expected = by_hand(decoder, memory, tokens, weights)
        torch.testing.assert_close(stepped.log_probs.squeeze(1), expected, rtol=1e-5, atol=1e-5)
        assert (stepped.log_probs - free).abs().max() > 1e-3


def test_segments_that_a_step_chooses() -> None:
    torch.manual_seed(0)
    decoder, memory = decoder_with("feeding", "segment"), memory_for()
    stepper, tokens = DecoderStepper(decoder), torch.randint(TOKENS, (BATCH, 1))
    found = stepper.selection(stepper.start(memory), tokens)
    read = decoder.unroll(tokens, memory).attended[0]
    assert found is not None
    assert isinstance(read, Attended)
    assert torch.equal(found, read.distribution.argmax() == 1)
    softmax = DecoderStepper(decoder_with("feeding", "softmax"))
    assert softmax.selection(softmax.start(memory), tokens) is None


def test_a_decoder_without_attention_cannot_be_forced() -> None:
    stepper = DecoderStepper(decoder_with("plain", "softmax"))
    state = stepper.start(memory_for("softmax"))
    tokens = torch.zeros(BATCH, 1, dtype=torch.long)
    with pytest.raises(ValueRangeError, match="weighted sum of values"):
        stepper.step(state, tokens, torch.ones(BATCH, 1, 4))


def test_sentences_and_words_can_be_forced() -> None:
    stepper = DecoderStepper(decoder_with("attention", "levels"))
    state = stepper.start(memory_for("levels"))
    tokens = torch.zeros(BATCH, 1, dtype=torch.long)
    free = stepper.step(state, tokens)
    again = stepper.step(state, tokens, free.weights)
    torch.testing.assert_close(again.log_probs, free.log_probs)
    assert free.weights is not None
    other = stepper.step(state, tokens, free.weights.flip(-1))
    assert not torch.allclose(other.log_probs, free.log_probs, atol=1e-3)


def test_weights_are_for_every_place() -> None:
    stepper = DecoderStepper(decoder_with("attention"))
    tokens = torch.zeros(BATCH, 1, dtype=torch.long)
    with pytest.raises(ShapeError, match=r"shape \(4, 1, 4\).* got \(4, 1, 3\)"):
        stepper.step(stepper.start(memory_for()), tokens, torch.ones(BATCH, 1, 3))
