"""The Transformer decoder matches torch's; its cached steps match teacher forcing."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import (
    Attention,
    Memory,
    local_attention,
    monotone_attention,
    scaled_dot_scorer,
    segment_attention,
    sigmoid_attention,
    softmax_attention,
    sparsemax_attention,
)
from foveal.distributions import LinearChain
from foveal.errors import ShapeError, ValueRangeError
from foveal.networks import DecoderStepper, TransformerDecoder, TransformerDecoderLayer
from foveal.networks.encoders.transformer._positions import Positions, sinusoids
from foveal.testing import check_decoder

TOKENS, VALUE = 9, 6


def softmax() -> Attention:
    return softmax_attention(4, 4, scaled_dot_scorer(4))


HEADS: dict[str, Callable[[], Attention]] = {
    "softmax": softmax,
    "softmax, additive": lambda: softmax_attention(4, 4),
    "sigmoid": lambda: sigmoid_attention(4, 4),
    "sparsemax": lambda: sparsemax_attention(4, 4),
    "segment": lambda: segment_attention(4, 4),
    "local": lambda: local_attention(4, 4, window=2.0),
}
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 1], [1, 0, 0, 0, 0]]).bool()


def decoder_with(head: Attention, num_layers: int = 2, **options: Any) -> TransformerDecoder:
    """Build a decoder with one given head and one softmax head in each layer."""
    torch.manual_seed(0)
    layers = [TransformerDecoderLayer(8, VALUE, [head, softmax()], 16) for _ in range(num_layers)]
    return TransformerDecoder(nn.Embedding(TOKENS, 8), layers, **options).eval()


def memory(**parts: Any) -> Memory:
    generator = torch.Generator().manual_seed(1)
    return Memory(torch.randn(4, 5, VALUE, generator=generator), MASK, **parts)


@pytest.mark.parametrize(
    ("name", "positions", "copy"),
    [("segment", "rotary", False), ("softmax", "learned", True), ("local", "sinusoidal", False)],
)
def test_a_decoder_obeys_the_laws(name: str, positions: Positions, copy: bool) -> None:
    decoder = decoder_with(HEADS[name](), 1, positions=positions, copy=copy, tie_embeddings=copy)
    check_decoder(decoder, memory(copies=torch.randint(TOKENS, (4, 5))), TOKENS)


def test_a_decoder_that_points_obeys_the_laws() -> None:
    decoder = decoder_with(HEADS["softmax"](), 1, point_end=3)
    check_decoder(decoder, memory(copies=torch.randint(4, TOKENS, (4, 5))), TOKENS)


def same_as_torch(layer: TransformerDecoderLayer) -> nn.TransformerDecoderLayer:
    """Return torch's layer with the weights of ours."""
    other = nn.TransformerDecoderLayer(
        layer.model_size,
        layer.num_heads,
        layer.widen.out_features,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    )
    causal, cross = layer.causal, layer.cross
    parts = {
        "self_attn.out_proj": causal.output,
        "multihead_attn.out_proj": cross.output,
        "linear1": layer.widen,
        "linear2": layer.narrow,
        "norm1": layer.causal_norm,
        "norm2": layer.cross_norm,
        "norm3": layer.feed_forward_norm,
    }
    weights: dict[str, Tensor] = {
        "self_attn.in_proj_weight": causal.project.weight,
        "self_attn.in_proj_bias": causal.project.bias,
        "multihead_attn.in_proj_weight": torch.cat([cross.query.weight, cross.project.weight]),
        "multihead_attn.in_proj_bias": torch.cat([cross.query.bias, cross.project.bias]),
    }
    for name, part in parts.items():
        weights |= {f"{name}.{key}": value for key, value in part.state_dict().items()}
    other.load_state_dict(weights)
    return other


def test_softmax_heads_give_the_values_and_gradients_of_torch() -> None:
    torch.manual_seed(0)
    heads = [softmax()] * 4
    layers = [TransformerDecoderLayer(16, 16, heads, 40) for _ in range(3)]
    for layer in layers:
        for norm in (layer.causal_norm, layer.cross_norm, layer.feed_forward_norm):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
    embedding = nn.Embedding(TOKENS, 16)
    ours = TransformerDecoder(embedding, layers, positions="sinusoidal")
    theirs = nn.TransformerDecoder(same_as_torch(layers[0]), 3, ours.norm)
    theirs.layers = nn.ModuleList(same_as_torch(layer) for layer in layers)
    tokens, values = torch.randint(TOKENS, (3, 5)), torch.randn(3, 7, 16, requires_grad=True)
    real = torch.tensor([5, 3, 1]).unsqueeze(-1) > torch.arange(5)
    places = torch.tensor([4, 7, 2]).unsqueeze(-1) > torch.arange(7)
    found = ours.unroll(tokens, Memory(values, places), real).log_probs
    rows = 4 * embedding(tokens) + sinusoids(torch.arange(5), 16)
    vectors = theirs(
        rows,
        values,
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        tgt_key_padding_mask=~real,
        memory_key_padding_mask=~places,
    )
    expected = ours.output(vectors, embedding)
    torch.testing.assert_close(found[real], expected[real], rtol=1e-5, atol=1e-5)
    pull = torch.randn(3, 5, TOKENS)[real]
    inputs = (embedding.weight, values)
    first = torch.autograd.grad((found[real] * pull).sum(), inputs)
    second = torch.autograd.grad((expected[real] * pull).sum(), inputs)
    for mine, other in zip(first, second, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", HEADS)
def test_cached_steps_of_reordered_hypotheses_match_teacher_forcing(name: str) -> None:
    decoder = decoder_with(HEADS[name]())
    stepper, generator = DecoderStepper(decoder), torch.Generator().manual_seed(2)
    state = stepper.reorder(stepper.start(memory()), torch.zeros(4, 3, dtype=torch.long))
    written = torch.zeros(4, 3, 0, dtype=torch.long)
    for step in range(5):
        tokens = torch.randint(TOKENS, (4, 3), generator=generator)
        written = torch.cat([written, tokens.unsqueeze(-1)], -1)
        state, log_probs, weights = stepper.step(state, tokens)
        for k in range(3):
            whole = decoder.unroll(written[:, k], memory())
            torch.testing.assert_close(log_probs[:, k], whole.log_probs[:, -1])
            assert weights is not None
            assert whole.weights is not None
            torch.testing.assert_close(weights[:, k], whole.weights[:, -1])
        parents = torch.randint(3, (4, 3), generator=generator)
        state = stepper.reorder(state, parents)
        written = written.gather(1, parents.unsqueeze(-1).expand(-1, -1, step + 1))


def test_a_step_in_a_batch_equals_the_step_alone_to_the_bit() -> None:
    torch.manual_seed(0)
    head = softmax_attention(16, 16, scaled_dot_scorer(16))
    layers = [TransformerDecoderLayer(64, 32, [head] * 4, 256) for _ in range(2)]
    stepper = DecoderStepper(TransformerDecoder(nn.Embedding(50, 64), layers).eval())
    values, tokens = torch.randn(9, 11, 32), torch.randint(50, (9, 4, 12))
    spread = torch.zeros(9, 4, dtype=torch.long)
    whole = stepper.reorder(stepper.start(Memory(values)), spread)
    alone = stepper.reorder(stepper.start(Memory(values[:1])), spread[:1])
    for t in range(12):
        found, one = (
            stepper.step(state, tokens[: stepper.batch_size(state), :, t])
            for state in (whole, alone)
        )
        assert torch.equal(found.log_probs[:1], one.log_probs)
        assert found.weights is not None
        assert one.weights is not None
        assert torch.equal(found.weights[:1], one.weights)
        whole, alone = found.state, one.state


def test_forced_weights_replace_the_weights_of_all_heads() -> None:
    decoder = decoder_with(softmax())
    stepper = DecoderStepper(decoder)
    state = stepper.start(memory())
    tokens = torch.full((4, 1), 3)
    # With all weight on one position, the memory might as well have no other.
    forced = torch.zeros(4, 1, 5)
    forced[..., 3] = 1.0
    found = stepper.step(state, tokens, forced)
    only = Memory(memory().cleared("test").values[:, 3:4])
    expected = stepper.step(stepper.start(only), tokens)
    torch.testing.assert_close(found.log_probs, expected.log_probs)
    assert found.weights is not None
    assert torch.equal(found.weights, forced)


def test_cross_attentions_have_the_heads_of_every_layer() -> None:
    decoder = decoder_with(segment_attention(4, 4))
    tokens = torch.randint(TOKENS, (4, 3))
    found = decoder.cross_attentions(tokens, memory())
    assert [each.weights.shape for each in found] == [(4, 1, 3, 5)] * 4
    segments, softmaxes = found[2:]
    assert isinstance(segments.distribution, LinearChain)
    mean = (segments.weights + softmaxes.weights).squeeze(1) / 2
    weights = decoder.unroll(tokens, memory()).weights
    assert weights is not None
    torch.testing.assert_close(weights, mean)
    assert not weights[3, :, 1:].any()  # padding


def test_what_does_not_fit_is_refused_in_words() -> None:
    with pytest.raises(ShapeError, match="multiple of the number of heads, got 8 and 3"):
        TransformerDecoderLayer(8, VALUE, [softmax()] * 3, 16)
    layer = TransformerDecoderLayer(8, VALUE, [softmax()] * 2, 16)
    with pytest.raises(ShapeError, match="as wide as the layers, 8, got 6"):
        TransformerDecoder(nn.Embedding(TOKENS, 6), [layer])
    with pytest.raises(ShapeError, match="at least one layer"):
        TransformerDecoder(nn.Embedding(TOKENS, 8), [])
    short = decoder_with(softmax(), positions="learned", max_positions=2)
    with pytest.raises(ShapeError, match="2 learned positions, got a text of 3 tokens"):
        short.unroll(torch.zeros(4, 3, dtype=torch.long), memory())
    with pytest.raises(ValueRangeError, match="queries are independent"):
        DecoderStepper(decoder_with(monotone_attention(4, 4)))
