"""Attention that moves from its previous weights: a hand-written loop, single steps, padding, and refused settings."""

from typing import Any

import pytest
import torch
from torch.nn.functional import softplus

from foveal.attention import Attention, Memory, shift_attention
from foveal.attention.history._shift import ShiftScorer
from foveal.errors import ValueRangeError
from foveal.models import DecoderSpec, MultiHeadSpec, SparsemaxSpec
from foveal.networks import AttentionDecoder
from foveal.networks.decoders._vector_decoder import AbstractVectorDecoder

FORMS: list[dict[str, Any]] = [{}, {"input_feeding": True}, {"attend": "before"}]
TOKENS = torch.tensor([[1, 2, 3, 4], [1, 5, 6, 2]])


def decoder_of(**choices: Any) -> AbstractVectorDecoder:
    torch.manual_seed(3)
    spec = DecoderSpec(embedding_size=4, hidden_size=5, dropout=0.0, shift=1, **choices)
    decoder = spec.build(7, 6, 6)
    assert isinstance(decoder, AbstractVectorDecoder)
    return decoder


def memory_of(mask: torch.Tensor | None = None) -> Memory:
    generator = torch.Generator().manual_seed(4)
    values = torch.randn(2, 4, 6, generator=generator)
    return Memory(values, mask, torch.randn(2, 6, generator=generator))


def test_weights_equal_a_loop_over_the_equations() -> None:
    decoder, memory = decoder_of(), memory_of()
    assert isinstance(decoder, AttentionDecoder)
    assert isinstance(decoder.attention, Attention)
    scorer = decoder.attention.scorer
    assert isinstance(scorer, ShiftScorer)
    state = decoder.start(decoder.remember(memory))
    weights, found = torch.tensor([[1.0, 0.0, 0.0, 0.0]] * 2), []
    for token in TOKENS.unbind(1):
        hidden, layers = decoder.stack.step(decoder.embedding(token), state.layers)
        scores = scorer.inner(hidden.unsqueeze(1), scorer.inner.remember(memory.values))[0]
        head = scorer.head(hidden)
        gate = torch.sigmoid(head[:, :1])
        mixed = gate * scores.squeeze(1).softmax(-1) + (1 - gate) * weights
        moves = head[:, 2:].softmax(-1)
        moved = torch.zeros(2, 4)
        for place in range(4):
            for number, distance in enumerate((-1, 0, 1)):
                if 0 <= place - distance < 4:
                    moved[:, place] += moves[:, number] * mixed[:, place - distance]
        powers = moved ** (1 + softplus(head[:, 1:2]))
        weights, state = powers / powers.sum(-1, keepdim=True), state._replace(layers=layers)
        found.append(weights)
    unrolled = decoder.unroll(TOKENS, memory)
    torch.testing.assert_close(unrolled.weights, torch.stack(found, 1))
    torch.testing.assert_close(unrolled.state.history, weights)


def set_head(attention: Attention, *head: float) -> None:
    """Set gate, sharpness and shifts, whatever the query is."""
    scorer = attention.scorer
    assert isinstance(scorer, ShiftScorer)
    with torch.no_grad():
        scorer.head.weight.zero_()
        assert scorer.head.bias is not None
        scorer.head.bias.copy_(torch.tensor(head))


def test_a_head_that_moves_by_one_reads_every_position_in_order() -> None:
    decoder = decoder_of(attend="before")
    attention = decoder.get_submodule("attention")
    assert isinstance(attention, Attention)
    set_head(attention, -50.0, 0.0, -50.0, -50.0, 50.0)
    weights = decoder.unroll(torch.ones(1, 3, dtype=torch.long), Memory(torch.randn(1, 9, 6)))
    assert weights.weights is not None
    assert weights.weights.argmax(-1).tolist() == [[1, 2, 3]]


def test_the_first_step_moves_from_the_first_real_position() -> None:
    attention = shift_attention(5, 6)
    assert isinstance(attention.scorer, ShiftScorer)
    mask = torch.tensor([[False, True, False, True], [True, True, True, True]])
    first = attention.scorer.first(memory_of(mask))
    assert first.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]


def test_weights_that_leave_the_memory_are_lost() -> None:
    attention = shift_attention(5, 6)
    set_head(attention, -1e4, 0.0, -1e4, -1e4, 1e4)
    memory = attention.remember(memory_of())
    last = torch.tensor([[[0.0, 0.0, 0.0, 1.0]]]).expand(2, 1, 4)
    memory = memory._replace(keys=memory.keys._replace(history=last))
    attended = attention(torch.zeros(2, 1, 5), memory)
    assert attended.weights.abs().sum() == 0
    attended.context.sum().backward()
    assert all(part.grad is None or part.grad.isfinite().all() for part in attention.parameters())


@pytest.mark.parametrize("form", FORMS)
def test_single_steps_equal_teacher_forcing(form: dict[str, Any]) -> None:
    decoder = decoder_of(**form)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    memory = decoder.remember(memory_of(mask))
    unrolled, state = decoder.unroll(TOKENS, memory), decoder.start(memory)
    for number, token in enumerate(TOKENS.unbind(1)):
        state, log_probs, _ = decoder.step(state, token, memory)
        torch.testing.assert_close(log_probs, unrolled.log_probs[:, number])


@pytest.mark.parametrize("form", FORMS)
def test_padded_tokens_do_not_move_the_head(form: dict[str, Any]) -> None:
    decoder, mask = decoder_of(**form), torch.tensor([[True] * 4, [True, True, False, False]])
    padded = decoder.unroll(TOKENS, memory_of(), mask)
    short = decoder.unroll(TOKENS[:, :2], memory_of())
    assert padded.state.history is not None
    assert short.state.history is not None
    torch.testing.assert_close(padded.state.history[1], short.state.history[1])


@pytest.mark.parametrize(
    "choices",
    [
        {"attention": None},
        {"attention": MultiHeadSpec()},
        {"attention": SparsemaxSpec()},
        {"coverage": True},
    ],
)
def test_other_attentions_do_not_move(choices: dict[str, Any]) -> None:
    with pytest.raises(ValueRangeError, match="shift moves the weights of softmax attention"):
        DecoderSpec(shift=1, **choices).build(7, 6, 6)
