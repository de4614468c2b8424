"""Coverage as a feature of the score: a hand-written loop, single steps, padding, and refused settings."""

from typing import Any

import pytest
import torch

from foveal.attention import Attention, CoverageScorer, Memory
from foveal.errors import ValueRangeError
from foveal.models import DecoderSpec, MultiHeadSpec, SoftmaxSpec
from foveal.networks import AttentionDecoder
from foveal.networks.decoders._decoder import AbstractAttentionDecoder
from foveal.networks.decoders._vector_decoder import AbstractVectorDecoder

FORMS: list[dict[str, Any]] = [{}, {"input_feeding": True}, {"attend": "before"}]


def decoder_of(**choices: Any) -> AbstractVectorDecoder:
    torch.manual_seed(3)
    spec = DecoderSpec(embedding_size=4, hidden_size=5, dropout=0.0, coverage=True, **choices)
    decoder = spec.build(7, 6, 6)
    assert isinstance(decoder, AbstractVectorDecoder)
    attention = decoder.get_submodule("attention")
    assert isinstance(attention, Attention)
    assert isinstance(attention.scorer, CoverageScorer)
    with torch.no_grad():
        attention.scorer.weight.fill_(-1.5)
    return decoder


def memory_of(mask: torch.Tensor | None = None) -> Memory:
    generator = torch.Generator().manual_seed(4)
    values = torch.randn(2, 4, 6, generator=generator)
    return Memory(values, mask, torch.randn(2, 6, generator=generator))


TOKENS = torch.tensor([[1, 2, 3, 4], [1, 5, 6, 2]])


def test_weights_equal_a_loop_over_the_equation() -> None:
    decoder, memory = decoder_of(), memory_of()
    assert isinstance(decoder, AttentionDecoder)
    assert isinstance(decoder.attention, Attention)
    scorer = decoder.attention.scorer
    assert isinstance(scorer, CoverageScorer)
    inner = scorer.inner
    state = decoder.start(decoder.remember(memory))
    covered, found = torch.zeros(2, 1, 4), []
    for token in TOKENS.unbind(1):
        hidden, layers = decoder.stack.step(decoder.embedding(token), state.layers)
        scores = inner(hidden.unsqueeze(1), inner.remember(memory.values))
        weights = (scores[0] - 1.5 * covered).softmax(-1)
        covered, state = covered + weights, state._replace(layers=layers)
        found.append(weights)
    unrolled = decoder.unroll(TOKENS, memory)
    torch.testing.assert_close(unrolled.weights, torch.cat(found, 1))
    torch.testing.assert_close(unrolled.state.history, covered.squeeze(1))


@pytest.mark.parametrize("form", FORMS)
def test_single_steps_equal_teacher_forcing(form: dict[str, Any]) -> None:
    decoder = decoder_of(**form)
    memory = decoder.remember(memory_of())
    unrolled, state = decoder.unroll(TOKENS, memory), decoder.start(memory)
    for number, token in enumerate(TOKENS.unbind(1)):
        state, log_probs, _ = decoder.step(state, token, memory)
        torch.testing.assert_close(log_probs, unrolled.log_probs[:, number])


@pytest.mark.parametrize("form", FORMS)
def test_padded_tokens_add_no_coverage(form: dict[str, Any]) -> None:
    decoder, mask = decoder_of(**form), torch.tensor([[True] * 4, [True, True, False, False]])
    padded = decoder.unroll(TOKENS, memory_of(), mask)
    short = decoder.unroll(TOKENS[:, :2], memory_of())
    assert padded.state.history is not None
    assert short.state.history is not None
    torch.testing.assert_close(padded.state.history[1], short.state.history[1])
    torch.testing.assert_close(padded.state.history.sum(-1), torch.tensor([4.0, 2.0]))


def test_the_weight_of_the_coverage_is_trained() -> None:
    decoder = decoder_of(attention=SoftmaxSpec())
    assert isinstance(decoder, AbstractAttentionDecoder)
    decoder.score(TOKENS, TOKENS, memory_of()).loss.sum().backward()
    gradient = decoder.get_parameter("attention.scorer.weight").grad
    assert gradient is not None
    assert gradient.abs() > 0


@pytest.mark.parametrize("attention", [None, MultiHeadSpec()])
def test_other_attentions_have_no_coverage(attention: Any) -> None:
    with pytest.raises(
        ValueRangeError, match="coverage is a feature of the score of each position"
    ):
        DecoderSpec(attention=attention, coverage=True).build(7, 6, 6)
