"""A causal Transformer reads the last tokens and nothing else, and its steps match teacher forcing."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from foveal.attention import (
    Attention,
    hard_attention,
    head_selection_attention,
    local_attention,
    scaled_dot_scorer,
    segment_attention,
    sigmoid_attention,
    softmax_attention,
    sparsemax_attention,
    syntactic_attention,
)
from foveal.errors import ShapeError, ValueRangeError
from foveal.networks import CausalTransformer, DecoderStepper, TransformerLayer
from foveal.networks._bridges import no_memory
from foveal.testing import check_decoder

TOKENS = 9


def softmax() -> Attention:
    return softmax_attention(4, 4, scaled_dot_scorer(4))


HEADS: dict[str, Callable[[], Attention]] = {
    "softmax": softmax,
    "softmax, additive": lambda: softmax_attention(4, 4),
    "sigmoid": lambda: sigmoid_attention(4, 4, scaled_dot_scorer(4)),
    "sparsemax": lambda: sparsemax_attention(4, 4),
    "segment": lambda: segment_attention(4, 4, scaled_dot_scorer(4)),
    "local": lambda: local_attention(4, 4, scaled_dot_scorer(4), window=2.0),
    "hard": lambda: hard_attention(4, 4),
}


def decoder_with(head: Attention, *, context: int = 4, num_layers: int = 2) -> CausalTransformer:
    """Build a decoder with one given head and one softmax head in each layer."""
    torch.manual_seed(0)
    layers = [TransformerLayer(8, [head, softmax()], 16) for _ in range(num_layers)]
    return CausalTransformer(nn.Embedding(TOKENS, 8), layers, context=context).eval()


def log_probs(decoder: CausalTransformer, tokens: torch.Tensor) -> torch.Tensor:
    return decoder.unroll(tokens, no_memory(len(tokens))).log_probs


@pytest.mark.parametrize("name", ["softmax", "segment"])
def test_a_decoder_obeys_the_laws(name: str) -> None:
    check_decoder(decoder_with(HEADS[name](), context=3, num_layers=1), no_memory(4), TOKENS)


@pytest.mark.parametrize("name", HEADS)
def test_a_search_steps_through_the_probabilities_of_teacher_forcing(name: str) -> None:
    """The text is longer than the context, so the oldest keys and values leave the state."""
    torch.manual_seed(0)
    decoder, tokens = decoder_with(HEADS[name]()), torch.randint(TOKENS, (3, 10))
    whole = log_probs(decoder, tokens)
    stepper = DecoderStepper(decoder)
    state = stepper.start(no_memory(3))
    # Two hypotheses of each text; the second reads the text of the next item.
    state = stepper.reorder(state, torch.zeros(3, 2, dtype=torch.long))
    both = torch.stack([tokens, tokens.roll(1, 0)], 1)
    for t in range(10):
        state, found, weights = stepper.step(state, both[:, :, t])
        torch.testing.assert_close(found[:, 0], whole[:, t])
        torch.testing.assert_close(found[:, 1], whole.roll(1, 0)[:, t])
        assert weights is None
    assert state.decoder.own.num_tokens == 3


@pytest.mark.parametrize("name", HEADS)
def test_a_token_reads_its_context_and_nothing_else(name: str) -> None:
    torch.manual_seed(0)
    decoder, tokens = decoder_with(HEADS[name](), num_layers=1), torch.randint(TOKENS, (1, 9))
    whole = log_probs(decoder, tokens)
    for t in range(9):
        changed = (tokens + 1) % TOKENS
        context = slice(max(0, t - 3), t + 1)
        changed[:, context] = tokens[:, context]
        torch.testing.assert_close(log_probs(decoder, changed)[:, t], whole[:, t])
        assert not torch.allclose(log_probs(decoder, (tokens + 1) % TOKENS)[:, t], whole[:, t])


def test_the_order_of_tokens_matters_and_their_place_does_not() -> None:
    torch.manual_seed(0)
    decoder, tokens = decoder_with(softmax(), num_layers=1), torch.randint(TOKENS, (2, 9))
    whole = log_probs(decoder, tokens)[:, -1]
    torch.testing.assert_close(log_probs(decoder, tokens[:, -4:])[:, -1], whole)
    swapped = tokens[:, [0, 1, 2, 3, 4, 6, 5, 7, 8]]
    assert not torch.allclose(log_probs(decoder, swapped)[:, -1], whole)


def test_self_attentions_are_the_weights_of_every_layer() -> None:
    decoder, tokens = decoder_with(HEADS["segment"]()), torch.randint(TOKENS, (2, 6))
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 0, 1, 0, 0]]).bool()
    found = decoder.self_attentions(tokens, mask)
    assert [each.weights.shape for each in found] == [(2, 1, 6, 6)] * 4
    later = torch.ones(6, 6).triu(1).bool() | torch.ones(6, 6).tril(-4).bool()
    for each in found:
        assert not each.weights[0, ..., later].any()
        assert not each.weights[1, :, 3, 2].any()  # padding
    torch.testing.assert_close(found[1].weights[0].sum(-1), torch.ones(1, 6))


def test_gradients_end_at_the_state_of_the_previous_piece() -> None:
    decoder, tokens = decoder_with(softmax()).train(), torch.randint(TOKENS, (2, 6))
    first = decoder.score(tokens[:, :3], tokens[:, 1:4], no_memory(2))
    state = first.state.map(torch.Tensor.detach)
    assert first.state.own.keys.requires_grad
    rest = decoder.score(tokens[:, 3:5], tokens[:, 4:], no_memory(2), state=state)
    rest.loss.sum().backward()
    assert not state.own.keys.requires_grad


@pytest.mark.parametrize("make", [syntactic_attention, head_selection_attention])
def test_heads_that_choose_for_all_tokens_together_are_refused(
    make: Callable[[int, int, int], Attention],
) -> None:
    with pytest.raises(ValueRangeError, match="a token would depend on later ones"):
        decoder_with(make(4, 4, 4))


def test_errors_say_what_to_do() -> None:
    layers = [TransformerLayer(8, [softmax(), softmax()], 16)]
    with pytest.raises(ShapeError, match="as wide as the layers, 8, got 6"):
        CausalTransformer(nn.Embedding(TOKENS, 6), layers)
    with pytest.raises(ValueRangeError, match="context must be at least 1, got 0"):
        CausalTransformer(nn.Embedding(TOKENS, 8), layers, context=0)
