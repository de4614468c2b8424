"""Steps of many hypotheses match the unrolled decoder for each hypothesis."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import (
    Attention,
    BilinearScorer,
    DotScorer,
    HierarchicalAttention,
    LinearScorer,
    Memory,
    MultiHead,
    k_step_attention,
    local_attention,
    segment_attention,
    sentences_memory,
    shift_attention,
    sigmoid_attention,
    softmax_attention,
    sparsemax_attention,
)
from foveal.errors import ValueRangeError
from foveal.networks import (
    AbstractBridge,
    AbstractCell,
    AbstractDecoder,
    AttentionDecoder,
    BahdanauDecoder,
    DecoderStepper,
    ElmanCell,
    EveryStepBridge,
    GRUCell,
    InitialStateAndEveryStepBridge,
    InitialStateBridge,
    InputFeedingDecoder,
    LearnedStateBridge,
    LSTMCell,
    NoBridge,
    PlainDecoder,
    RecurrentStack,
    recurrent_stack,
)
from foveal.networks._bridges import no_memory
from foveal.networks.search import _matrix
from foveal.networks.search._stepping_state import SteppingState

pytestmark = pytest.mark.slow

BATCH, WIDTH, TOKENS, STEPS = 4, 3, 9, 5
Attends = Attention | MultiHead | HierarchicalAttention

ATTENTIONS: dict[str, Callable[[], Attends]] = {
    "softmax": lambda: softmax_attention(6, 6),
    "softmax dot": lambda: softmax_attention(6, 6, DotScorer(0.3)),
    "softmax bilinear": lambda: softmax_attention(6, 6, BilinearScorer(6, 6)),
    "softmax linear": lambda: softmax_attention(6, 6, LinearScorer(6, 6)),
    "local": lambda: local_attention(6, 6, window=3.0),
    "shift": lambda: shift_attention(6, 6),
    "sigmoid": lambda: sigmoid_attention(6, 6),
    "sparsemax": lambda: sparsemax_attention(6, 6),
    "segment": lambda: segment_attention(6, 6),
    "heads": lambda: MultiHead(segment_attention(3, 3), num_heads=2, query_size=6, value_size=6),
    "levels": lambda: HierarchicalAttention(softmax_attention(6, 6), softmax_attention(6, 6)),
}

BRIDGES: dict[str, Callable[[RecurrentStack], AbstractBridge]] = {
    "none": lambda stack: NoBridge(),
    "initial state": lambda stack: InitialStateBridge(6, stack),
    "every step": lambda stack: EveryStepBridge(6),
    "learned": LearnedStateBridge,
    "both": lambda stack: InitialStateAndEveryStepBridge(6, stack),
}


def decoder_with(
    kind: str,
    attention: str = "softmax",
    *,
    bridge: str = "initial state",
    cell: type[AbstractCell] = LSTMCell,
    num_layers: int = 1,
    tie_embeddings: bool = False,
) -> AbstractDecoder | BahdanauDecoder:
    vector = 7 if kind in ("feeding", "deep") else 6
    token = vector if tie_embeddings else 5
    width = token + (6 if bridge in ("every step", "both") else 0)
    width += {"feeding": vector, "before": 6, "deep": 6}.get(kind, 0)
    stack = recurrent_stack(width, 6, cell=cell, num_layers=num_layers, residual=True, skip=True)
    parts = {
        "embedding": nn.Embedding(TOKENS, token),
        "stack": stack,
        "bridge": BRIDGES[bridge](stack),
        "tie_embeddings": tie_embeddings,
        "dropout": 0.2,
    }
    if kind == "plain":
        return PlainDecoder(**parts).eval()
    read = ATTENTIONS[attention]()
    if kind in ("before", "deep"):
        deep_size = vector if kind == "deep" else None
        return BahdanauDecoder(**parts, attention=read, value_size=6, deep_size=deep_size).eval()
    make = AttentionDecoder if kind == "attention" else InputFeedingDecoder
    return make(**parts, attention=read, value_size=6, vector_size=vector).eval()


def memory_for(attention: str = "softmax", *, summary: bool = True) -> Memory:
    if attention == "levels":
        mask = torch.rand(BATCH, 2, 3) < 0.7
        mask[:, 0, 0] = True
        return sentences_memory(torch.randn(BATCH, 2, 3, 6), mask)
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]]).bool()
    return Memory(torch.randn(BATCH, 4, 6), mask, torch.randn(BATCH, 6) if summary else None)


def widen(stepper: DecoderStepper, state: SteppingState, width: int) -> SteppingState:
    items = stepper.batch_size(state)
    return stepper.reorder(state, torch.zeros(items, width, dtype=torch.long))


def check_steps(decoder: AbstractDecoder | BahdanauDecoder, memory: Memory) -> None:
    """Check every hypothesis of every item, step by step, against teacher forcing."""
    stepper = DecoderStepper(decoder)
    tokens = torch.randint(TOKENS, (BATCH, WIDTH, STEPS))
    state = stepper.start(memory)
    assert stepper.batch_size(state) == BATCH
    assert stepper.num_tokens == TOKENS
    state = widen(stepper, state, WIDTH)
    log_probs, weights = [], []
    for t in range(STEPS):
        stepped = stepper.step(state, tokens[..., t])
        state = stepped.state
        assert not stepped.log_probs.requires_grad
        log_probs.append(stepped.log_probs)
        weights.append(stepped.weights)
    for number in range(WIDTH):
        whole = decoder.unroll(tokens[:, number], memory)
        found = torch.stack([each[:, number] for each in log_probs], 1)
        torch.testing.assert_close(found, whole.log_probs, rtol=1e-5, atol=1e-5)
        if whole.weights is None:
            assert weights == [None] * STEPS
        else:
            read = torch.stack([each[:, number] for each in weights], 1)
            torch.testing.assert_close(read, in_one_row(whole.weights), rtol=1e-5, atol=1e-5)


def in_one_row(weights: Tensor) -> Tensor:
    """Return the weights of any attention as (B, T, S): the mean over heads, or the words of all
    sentences in one row.
    """
    if weights.ndim == 3:
        return weights
    return weights.mean(1) if weights.shape[1] == 2 else weights.flatten(-2)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("kind", ["attention", "feeding", "before", "deep"])
def test_steps_equal_the_whole_with_any_attention(kind: str, attention: str) -> None:
    torch.manual_seed(0)
    check_steps(decoder_with(kind, attention), memory_for(attention))


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("cell", [ElmanCell, GRUCell, LSTMCell])
@pytest.mark.parametrize("bridge", BRIDGES)
@pytest.mark.parametrize("kind", ["plain", "attention", "feeding", "before"])
def test_steps_equal_the_whole_with_any_stack(
    kind: str, bridge: str, cell: type[AbstractCell], num_layers: int
) -> None:
    torch.manual_seed(1)
    decoder = decoder_with(
        kind, bridge=bridge, cell=cell, num_layers=num_layers, tie_embeddings=True
    )
    check_steps(decoder, memory_for(summary=False))


def test_a_language_model_steps_without_a_memory() -> None:
    torch.manual_seed(2)
    check_steps(decoder_with("plain", bridge="none"), no_memory(BATCH))


@pytest.mark.parametrize("kind", ["plain", "attention", "feeding", "before"])
def test_hypotheses_continue_their_parents(kind: str) -> None:
    """Hypotheses continue their parents when their order and number change at every step."""
    torch.manual_seed(3)
    decoder, memory = decoder_with(kind), memory_for()
    stepper = DecoderStepper(decoder)
    state, written = stepper.start(memory), torch.zeros(BATCH, 1, 0, dtype=torch.long)
    for width in (1, 4, 2, 3, 3):
        parents = torch.randint(written.shape[1], (BATCH, width))
        state = stepper.reorder(state, parents)
        index = parents.unsqueeze(-1).expand(-1, -1, written.shape[-1])
        tokens = torch.randint(TOKENS, (BATCH, width))
        written = torch.cat([written.gather(1, index), tokens.unsqueeze(-1)], -1)
        state, log_probs, _ = stepper.step(state, tokens)
    for number in range(written.shape[1]):
        whole = decoder.unroll(written[:, number], memory).log_probs[:, -1]
        torch.testing.assert_close(log_probs[:, number], whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("attention", ["softmax", "levels", "heads"])
@pytest.mark.parametrize("kind", ["plain", "attention", "feeding", "before"])
def test_items_leave(kind: str, attention: str) -> None:
    """When some items leave the batch, the remaining items continue unchanged."""
    torch.manual_seed(4)
    decoder, memory = decoder_with(kind, attention), memory_for(attention)
    stepper = DecoderStepper(decoder)
    tokens = torch.randint(TOKENS, (3, BATCH, WIDTH))
    everyone = widen(stepper, stepper.start(memory), WIDTH)
    everyone = stepper.step(everyone, tokens[0]).state
    items = torch.tensor([3, 1])
    some = stepper.keep(everyone, items)
    assert stepper.batch_size(some) == 2
    for t in (1, 2):
        everyone, expected, read = stepper.step(everyone, tokens[t])
        some, found, read_by_some = stepper.step(some, tokens[t][items])
        torch.testing.assert_close(found, expected[items], rtol=1e-5, atol=1e-5)
        if read is not None and read_by_some is not None:
            torch.testing.assert_close(read_by_some, read[items], rtol=1e-5, atol=1e-5)


def test_a_stepper_keeps_nothing_and_changes_nothing() -> None:
    """Two interleaved searches give bit-identical results to two separate searches."""
    torch.manual_seed(5)
    decoder = decoder_with("feeding")
    stepper = DecoderStepper(decoder)
    starts = [stepper.start(memory_for()) for _ in range(2)]
    tokens = torch.randint(TOKENS, (STEPS, BATCH, 1))

    def alone(state: SteppingState) -> list[Tensor]:
        found = []
        for t in range(STEPS):
            state, log_probs, _ = stepper.step(state, tokens[t])
            found.append(log_probs)
        return found

    expected = [alone(state) for state in starts]
    states = list(starts)
    for t in range(STEPS):
        for number in range(2):
            states[number], log_probs, _ = stepper.step(states[number], tokens[t])
            assert torch.equal(log_probs, expected[number][t])


@pytest.mark.parametrize("half", [False, True])
def test_junk_in_the_padding_of_a_memory_changes_nothing(half: bool) -> None:
    torch.manual_seed(6)
    stepper = DecoderStepper(decoder_with("feeding"), half=half)
    memory, tokens = memory_for(), torch.randint(TOKENS, (BATCH, 1))
    assert memory.mask is not None
    clean = stepper.step(stepper.start(memory), tokens)
    for junk in (torch.nan, torch.inf, 1e30):
        dirty = memory.values.masked_fill(~memory.mask.unsqueeze(-1), junk)
        found = stepper.step(stepper.start(memory._replace(values=dirty)), tokens)
        assert torch.equal(found.log_probs, clean.log_probs)


@pytest.mark.parametrize("kind", ["plain", "attention", "feeding", "before"])
@pytest.mark.parametrize("attention", ["softmax", "segment", "heads"])
def test_in_half_precision_steps_are_good_to_three_digits(
    kind: str, attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_matrix, "_MANY_ROWS", 1)
    torch.manual_seed(7)
    decoder, memory = decoder_with(kind, attention, num_layers=1), memory_for(attention)
    exact, half = DecoderStepper(decoder), DecoderStepper(decoder, half=True)
    state, rough = exact.start(memory), half.start(memory)
    for t in range(STEPS):
        tokens = torch.randint(TOKENS, (BATCH, 1))
        state, expected, _ = exact.step(state, tokens)
        rough, found, _ = half.step(rough, tokens)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, expected, rtol=0.03, atol=0.03)
        assert t == 0 or not torch.equal(found, expected)


def test_errors_say_what_to_do() -> None:
    decoder = decoder_with("attention")
    with pytest.raises(ValueRangeError, match=r"Call decoder\.eval\(\) first"):
        DecoderStepper(decoder.train())
    stack = recurrent_stack(5, 6)
    chained = AttentionDecoder(
        embedding=nn.Embedding(TOKENS, 5),
        stack=stack,
        bridge=NoBridge(),
        attention=k_step_attention(6, 6),
        value_size=6,
    )
    with pytest.raises(ValueRangeError, match="single structure of all queries"):
        DecoderStepper(chained.eval())
