"""Decoders: cost of teacher forcing, tied embeddings, gradients and error messages."""

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import Attended, Memory, segment_attention, softmax_attention
from foveal.errors import ShapeError
from foveal.networks import (
    AbstractDecoder,
    AttentionDecoder,
    EveryStepBridge,
    InitialStateBridge,
    InputFeedingDecoder,
    NoBridge,
    PlainDecoder,
    TextEncoder,
    recurrent_stack,
)
from foveal.networks._bridges import no_memory


def attention_decoder(*, tie_embeddings: bool = False) -> AttentionDecoder:
    stack = recurrent_stack(5, 5)
    return AttentionDecoder(
        embedding=nn.Embedding(9, 5),
        stack=stack,
        bridge=InitialStateBridge(6, stack),
        attention=segment_attention(5, 6),
        value_size=6,
        tie_embeddings=tie_embeddings,
    )


def operations(decoder: AbstractDecoder, num_steps: int) -> int:
    """Count the operators that teacher forcing runs."""
    tokens, memory = torch.zeros(2, num_steps, dtype=torch.long), Memory(torch.randn(2, 4, 6))
    with torch.profiler.profile() as profile, torch.no_grad():
        decoder.unroll(tokens, memory)
    # The fused kernel calls operators at each step; that is not a Python loop.
    return sum(event.cpu_parent is None for event in profile.events() or ())


def test_teacher_forcing_has_no_loop_over_time() -> None:
    """Teacher forcing runs the same number of operators for 40 steps as for 8: the stack runs once
    and attention is called once. The sizes give at least 16 rows, because smaller products are
    padded to 16.
    """
    decoder = attention_decoder()
    operations(decoder, 8)
    assert operations(decoder, 40) == operations(decoder, 8) > 10


def test_all_steps_are_one_distribution() -> None:
    unrolled = attention_decoder().unroll(
        torch.zeros(2, 7, dtype=torch.long), Memory(torch.randn(2, 4, 6))
    )
    (attended,) = unrolled.attended
    assert isinstance(attended, Attended)
    assert attended.distribution.batch_shape == (2, 7)
    assert unrolled.weights is not None
    assert unrolled.weights.shape == (2, 7, 4)


def test_input_feeding_reads_what_was_attended_to() -> None:
    """The second step depends on the context of the first step, and another memory changes that
    context.
    """
    torch.manual_seed(0)
    stack = recurrent_stack(5 + 5, 5)
    decoder = InputFeedingDecoder(
        embedding=nn.Embedding(9, 5),
        stack=stack,
        bridge=NoBridge(),
        attention=softmax_attention(5, 6),
        value_size=6,
        vector_size=5,
    )
    tokens = torch.tensor([[1, 2, 3]])
    states = []
    for values in torch.randn(2, 1, 4, 6):
        memory = decoder.remember(Memory(values))
        first = decoder.step(decoder.start(memory), tokens[:, 0], memory)
        second = decoder.step(first.state, tokens[:, 1], memory)
        states.append((first.state.layers[0].hidden, second.state.layers[0].hidden))
    assert torch.equal(states[0][0], states[1][0])  # no context has been read yet
    assert not torch.allclose(states[0][1], states[1][1])
    unrolled = decoder.unroll(tokens, Memory(torch.randn(1, 4, 6)))
    assert len(unrolled.attended) == 3
    assert unrolled.weights is not None
    torch.testing.assert_close(unrolled.weights.sum(-1), torch.ones(1, 3))


def test_tied_embeddings_are_one_table() -> None:
    tied, free = attention_decoder(tie_embeddings=True), attention_decoder()
    tables = [name for name, part in tied.state_dict().items() if part.shape == (9, 5)]
    assert tables == ["embedding.weight"]
    assert sum(part.shape == (9, 5) for part in free.state_dict().values()) == 2
    hidden = torch.randn(2, 5)
    expected = (hidden @ tied.embedding.weight.T + tied.output.bias).log_softmax(-1)
    torch.testing.assert_close(tied.output(hidden, tied.embedding), expected)


def test_an_encoder_and_a_decoder_learn_to_copy() -> None:
    """After a few training steps on one batch, the loss falls and attention follows the source."""
    torch.manual_seed(1)
    encoder = TextEncoder(nn.Embedding(9, 16), recurrent_stack(16, 16, bidirectional=True))
    stack = recurrent_stack(16, 32)
    decoder = AttentionDecoder(
        embedding=nn.Embedding(9, 16),
        stack=stack,
        bridge=InitialStateBridge(encoder.summary_size, stack),
        attention=softmax_attention(32, encoder.value_size),
        value_size=encoder.value_size,
    )
    source = torch.randint(1, 9, (32, 5))
    read = torch.cat([torch.zeros(32, 1, dtype=torch.long), source[:, :-1]], 1)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-2)

    def loss() -> Tensor:
        log_probs = decoder.unroll(read, encoder(source)).log_probs
        return -log_probs.gather(-1, source.unsqueeze(-1)).mean()

    first = loss().item()
    for _ in range(60):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
    assert loss().item() < 0.2 * first


def test_a_memory_is_remembered_first() -> None:
    decoder = attention_decoder()
    memory = Memory(torch.randn(2, 4, 6))
    with pytest.raises(ShapeError, match=r"memory = decoder\.remember\(memory\)"):
        decoder.start(memory)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ShapeError, match=r"input_size 7, got 5.*token \(4\), the bridge \(3\)"):
        PlainDecoder(
            embedding=nn.Embedding(9, 4), stack=recurrent_stack(5, 5), bridge=EveryStepBridge(3)
        )
    with pytest.raises(ShapeError, match="tied embeddings need vectors of width 4, got 5"):
        PlainDecoder(
            embedding=nn.Embedding(9, 4),
            stack=recurrent_stack(4, 5),
            bridge=NoBridge(),
            tie_embeddings=True,
        )


def test_a_language_model_has_no_memory() -> None:
    decoder = PlainDecoder(
        embedding=nn.Embedding(9, 4), stack=recurrent_stack(4, 5), bridge=NoBridge()
    )
    unrolled = decoder.unroll(torch.randint(9, (2, 3)), no_memory(2))
    assert unrolled.attended == ()
    assert unrolled.weights is None


def decoder_of(kind: str, *, tie_embeddings: bool = False) -> AbstractDecoder:
    stack = recurrent_stack(10 if kind == "feeding" else 5, 5)
    parts = {
        "embedding": nn.Embedding(9, 5),
        "stack": stack,
        "bridge": InitialStateBridge(6, stack),
        "tie_embeddings": tie_embeddings,
    }
    if kind == "plain":
        return PlainDecoder(**parts)
    make = InputFeedingDecoder if kind == "feeding" else AttentionDecoder
    return make(**parts, attention=softmax_attention(5, 6), value_size=6, vector_size=5)


@pytest.mark.parametrize("tie_embeddings", [False, True])
@pytest.mark.parametrize("kind", ["plain", "attention", "feeding"])
def test_the_loss_without_a_table_has_the_gradients_of_the_one_with(
    kind: str, tie_embeddings: bool
) -> None:
    torch.manual_seed(2)
    decoder = decoder_of(kind, tie_embeddings=tie_embeddings)
    tokens, targets = torch.randint(9, (2, 3, 4))
    memory, mask = Memory(torch.randn(3, 7, 6)), torch.rand(3, 4) < 0.7
    log_probs = decoder.unroll(tokens, memory, mask).log_probs
    plain = -log_probs.gather(-1, targets.unsqueeze(-1)).sum()
    loss = decoder.score(tokens, targets, memory, mask).loss.sum()
    torch.testing.assert_close(loss, plain)
    parameters = list(decoder.parameters())
    for found, expected in zip(
        torch.autograd.grad(loss, parameters), torch.autograd.grad(plain, parameters), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["plain", "attention", "feeding"])
def test_teacher_forcing_has_the_gradients_of_its_steps(kind: str) -> None:
    """Scoring all steps at once, with precomputed scores, gives the gradients of scoring step by
    step.
    """
    torch.manual_seed(3)
    decoder, tokens = decoder_of(kind), torch.randint(9, (3, 4))
    memory = Memory(torch.randn(3, 7, 6))
    remembered = decoder.remember(memory)
    state, steps = decoder.start(remembered), []
    for t in range(4):
        state, log_probs, _ = decoder.step(state, tokens[:, t], remembered)
        steps.append(log_probs)
    direction, parameters = torch.randn(3, 4, 9), list(decoder.parameters())
    for found, expected in zip(
        torch.autograd.grad(decoder.unroll(tokens, memory).log_probs, parameters, direction),
        torch.autograd.grad(torch.stack(steps, 1), parameters, direction),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_the_loss_keeps_no_table() -> None:
    """Autograd saves no (tokens x vocabulary) table for the backward pass."""
    decoder = AttentionDecoder(
        embedding=nn.Embedding(500, 5),
        stack=(stack := recurrent_stack(5, 5)),
        bridge=InitialStateBridge(6, stack),
        attention=softmax_attention(5, 6),
        value_size=6,
    )
    tokens, held = torch.randint(500, (8, 20)), [0]

    def note(tensor: Tensor) -> Tensor:
        # Do not count the workspace of the fused kernel, which is a byte tensor.
        held.append(tensor.numel() if tensor.is_floating_point() else 0)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        decoder.score(tokens, tokens, Memory(torch.randn(8, 7, 6)))
    assert max(held) < tokens.numel() * 500 / 10


def test_half_precision_trains() -> None:
    """Under autocast the loss is close to the float32 loss, has dtype float32, and all gradients
    are finite.
    """
    torch.manual_seed(4)
    for kind in ("plain", "attention", "feeding"):
        decoder, tokens = decoder_of(kind), torch.randint(9, (3, 4))
        memory = Memory(torch.randn(3, 7, 6))
        exact = decoder.score(tokens, tokens.flip(0), memory).loss
        with torch.autocast("cpu", torch.bfloat16):
            rough = decoder.score(tokens, tokens.flip(0), memory).loss
        assert rough.dtype == torch.float32
        torch.testing.assert_close(rough, exact, rtol=0.05, atol=0.05)
        rough.sum().backward()
        for name, part in decoder.named_parameters():
            assert part.grad is not None, name
            assert part.grad.isfinite().all(), name
