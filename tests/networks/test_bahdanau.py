"""A decoder that attends before each step equals a short loop over the equations, with every way to
condition it.
"""

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import Memory, softmax_attention
from foveal.networks import (
    AbstractBridge,
    BahdanauDecoder,
    EveryStepBridge,
    InitialStateAndEveryStepBridge,
    InitialStateBridge,
    LearnedStateBridge,
    LSTMCell,
    recurrent_stack,
)

TOKENS, EMBEDDING, STATE, VALUE = 9, 4, 5, 6
BRIDGES = {
    "initial state": lambda stack: InitialStateBridge(VALUE, stack),
    "every step": lambda stack: EveryStepBridge(VALUE),
    "both": lambda stack: InitialStateAndEveryStepBridge(VALUE, stack),
    "learned": LearnedStateBridge,
}


def decoder_with(bridge: str, deep_size: int | None) -> BahdanauDecoder:
    torch.manual_seed(0)
    summary_size = VALUE if bridge in ("every step", "both") else 0
    stack = recurrent_stack(EMBEDDING + summary_size + VALUE, STATE)
    decoder = BahdanauDecoder(
        embedding=nn.Embedding(TOKENS, EMBEDDING),
        stack=stack,
        bridge=BRIDGES[bridge](stack),
        attention=softmax_attention(STATE, VALUE),
        value_size=VALUE,
        deep_size=deep_size,
    ).double()
    with torch.no_grad():  # at its initial 0 a learned state would not show
        for parameter in decoder.bridge.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return decoder


def initial_state(bridge: AbstractBridge, summary: Tensor) -> tuple[Tensor, Tensor]:
    """Return the hidden vector and memory cell before the first token, computed from the weights
    only.
    """
    weights = {name: part.detach() for name, part in bridge.named_parameters()}
    if isinstance(bridge, LearnedStateBridge):
        hidden, cell = weights["hidden.0"].tanh(), weights["memory.0"]
        return hidden.expand(len(summary), -1), cell.expand(len(summary), -1)
    if isinstance(bridge, EveryStepBridge):
        zero = summary.new_zeros(len(summary), STATE)
        return zero, zero
    prefix = "initial." if isinstance(bridge, InitialStateAndEveryStepBridge) else ""

    def linear(name: str) -> Tensor:
        return summary @ weights[f"{prefix}{name}.weight"].T + weights[f"{prefix}{name}.bias"]

    return linear("hidden.0").tanh(), linear("memory.0")


def by_hand(decoder: BahdanauDecoder, tokens: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Run the equations of the paper token by token, using only torch."""
    of = decoder.state_dict()
    lowest = decoder.stack.cells_in_order()[0]
    assert isinstance(lowest, LSTMCell)
    cell = nn.LSTMCell(decoder.stack.input_size, STATE).double()
    weights = lowest.weights
    cell.load_state_dict(
        {
            "weight_ih": weights.input,
            "weight_hh": weights.hidden,
            "bias_ih": weights.input_bias,
            "bias_hh": weights.hidden_bias,
        }
    )
    keys = values @ of["attention.scorer.key.weight"].T + of["attention.scorer.key.bias"]
    summary = values.mean(1)
    hidden, memory = initial_state(decoder.bridge, summary)
    log_probs, read = [], []
    for token in tokens.unbind(1):
        embedded = of["embedding.weight"][token]
        # e_tj = v . tanh(W s_{t-1} + U h_j),   c_t = sum_j softmax(e_t)_j h_j
        query = (hidden @ of["attention.scorer.query.weight"].T).unsqueeze(1)
        energies = torch.tanh(query + keys) @ of["attention.scorer.combine.weight"][0]
        alpha = energies.softmax(-1)
        context = (alpha.unsqueeze(-1) * values).sum(1)
        # s_t = RNN(s_{t-1}, [e(y_{t-1}); summary; c_t])
        inputs = [embedded, summary, context] if decoder.bridge.step_size else [embedded, context]
        hidden, memory = cell(torch.cat(inputs, 1), (hidden, memory))
        vector = hidden
        if decoder.deep is not None:
            units = torch.cat([hidden, embedded, context], 1) @ of["deep.weight"].T
            pairs = (units + of["deep.bias"]).view(len(hidden), -1, 2)
            vector = torch.maximum(pairs[..., 0], pairs[..., 1])
        scores = vector @ of["output.weight"].T + of["output.bias"]
        log_probs.append(scores.log_softmax(-1))
        read.append(alpha)
    return torch.stack(log_probs, 1), torch.stack(read, 1)


@pytest.mark.parametrize("deep_size", [None, 7])
@pytest.mark.parametrize("bridge", BRIDGES)
def test_teacher_forcing_equals_a_loop_over_the_equations(
    bridge: str, deep_size: int | None
) -> None:
    decoder = decoder_with(bridge, deep_size)
    tokens, values = torch.randint(TOKENS, (3, 6)), torch.randn(3, 4, VALUE).double()
    unrolled = decoder.unroll(tokens, Memory(values))
    log_probs, weights = by_hand(decoder, tokens, values)
    torch.testing.assert_close(unrolled.log_probs, log_probs, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(unrolled.weights, weights, rtol=1e-10, atol=1e-10)


def test_the_first_state_does_not_depend_on_the_source_when_it_is_learned() -> None:
    decoder = decoder_with("learned", None)
    starts = [
        decoder.start(decoder.remember(Memory(torch.randn(2, 4, VALUE).double()))).layers[0].hidden
        for _ in range(2)
    ]
    assert torch.equal(starts[0], starts[1])
    assert starts[0].abs().max() > 0


def test_the_context_of_a_step_reaches_its_own_prediction() -> None:
    """Other values change the first prediction, although state and token of the first step are the
    same.
    """
    decoder = decoder_with("learned", None)
    token = torch.tensor([[1]])
    first, second = (
        decoder.unroll(token, Memory(torch.randn(1, 4, VALUE).double())).log_probs for _ in range(2)
    )
    assert not torch.allclose(first, second)
