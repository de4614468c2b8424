"""The Transformer encoder matches torch's; tests of its positions and of heads with other
attentions.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import (
    Attention,
    DotScorer,
    Memory,
    head_selection_attention,
    scaled_dot_scorer,
    segment_attention,
    sigmoid_attention,
    softmax_attention,
    sparsemax_attention,
    syntactic_attention,
)
from foveal.distributions import LinearChain, ProjectiveTree
from foveal.errors import ShapeError
from foveal.networks import TransformerEncoder, TransformerLayer
from foveal.networks.encoders.transformer._positions import Positions, rotated, rotation, sinusoids
from foveal.testing import check_encoder


def softmax() -> Attention:
    return softmax_attention(4, 4, scaled_dot_scorer(4))


ATTENTIONS: dict[str, Callable[[], Attention]] = {
    "softmax": softmax,
    "softmax, not scaled": lambda: softmax_attention(4, 4, DotScorer()),
    "softmax, additive": lambda: softmax_attention(4, 4),
    "sigmoid": lambda: sigmoid_attention(4, 4),
    "sparsemax": lambda: sparsemax_attention(4, 4),
    "segment": lambda: segment_attention(4, 4),
    "tree": lambda: syntactic_attention(4, 4, 4),
    "children, any tree": lambda: syntactic_attention(4, 4, 4, projective=False, read="children"),
    "head selection": lambda: head_selection_attention(4, 4, 4),
}
POSITIONS: tuple[Positions, ...] = ("rotary", "learned", "sinusoidal")
RIGHT = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()


def encoder(*heads: Attention, **options: Any) -> TransformerEncoder:
    """Build an encoder of one layer with the given heads and one softmax head."""
    torch.manual_seed(0)
    size = 4 * (len(heads) + 1)
    layer = TransformerLayer(size, [*heads, softmax()], 16)
    return TransformerEncoder(nn.Embedding(9, size), [layer], **options).eval()


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_an_encoder_obeys_the_laws(name: str, positions: Positions) -> None:
    check_encoder(
        encoder(ATTENTIONS[name](), positions=positions), torch.randint(9, (4, 5)), (4, 5)
    )


def same_as_torch(layer: TransformerLayer) -> nn.TransformerEncoderLayer:
    """Return torch's layer with the weights of ours."""
    other = nn.TransformerEncoderLayer(
        layer.model_size,
        layer.num_heads,
        layer.widen.out_features,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    )
    other.load_state_dict(
        {
            "self_attn.in_proj_weight": layer.project.weight,
            "self_attn.in_proj_bias": layer.project.bias,
            "self_attn.out_proj.weight": layer.output.weight,
            "self_attn.out_proj.bias": layer.output.bias,
            "linear1.weight": layer.widen.weight,
            "linear1.bias": layer.widen.bias,
            "linear2.weight": layer.narrow.weight,
            "linear2.bias": layer.narrow.bias,
            "norm1.weight": layer.attention_norm.weight,
            "norm1.bias": layer.attention_norm.bias,
            "norm2.weight": layer.feed_forward_norm.weight,
            "norm2.bias": layer.feed_forward_norm.bias,
        }
    )
    return other


def test_softmax_heads_give_the_values_and_gradients_of_torch() -> None:
    torch.manual_seed(0)
    layers = [TransformerLayer(16, [softmax()] * 4, 40) for _ in range(3)]
    for layer in layers:
        for norm in (layer.attention_norm, layer.feed_forward_norm):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
    embedding = nn.Embedding(9, 16)
    ours = TransformerEncoder(embedding, layers, positions="sinusoidal")
    theirs = nn.ModuleList(same_as_torch(layer) for layer in layers)
    tokens = torch.randint(9, (3, 5))
    found = ours(tokens, RIGHT).values
    rows = 4 * embedding(tokens) + sinusoids(torch.arange(5), 16)
    for layer in theirs:
        rows = layer(rows, src_key_padding_mask=~RIGHT)
    expected = ours.norm(rows)
    torch.testing.assert_close(found[RIGHT], expected[RIGHT], rtol=1e-5, atol=1e-5)
    pull = torch.randn(3, 5, 16)[RIGHT]
    (first,) = torch.autograd.grad((found[RIGHT] * pull).sum(), embedding.weight)
    (second,) = torch.autograd.grad((expected[RIGHT] * pull).sum(), embedding.weight)
    torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("positions", POSITIONS)
def test_order_matters_and_padding_before_a_text_does_not(positions: Positions) -> None:
    model = encoder(softmax(), positions=positions)
    text = torch.tensor([[3, 1, 4]])
    plain = model(text).values[0]
    assert not torch.allclose(plain[1], model(text.flip(1)).values[0, 1], atol=1e-3)
    padded = torch.tensor([[7, 3, 8, 1, 4]])
    real = torch.tensor([[False, True, False, True, True]])
    torch.testing.assert_close(model(padded, real).values[0, real[0]], plain)


def test_rotated_products_depend_on_the_distance_only() -> None:
    torch.manual_seed(0)
    query, key = (torch.randn(6).expand(1, 20, 1, 6) for _ in range(2))
    turn = rotation(torch.arange(20), 6)
    scores = (rotated(query, turn)[0, :, 0] @ rotated(key, turn)[0, :, 0].T).double()
    for distance in (-7, 0, 3):
        same = scores.diagonal(distance)
        torch.testing.assert_close(same, same[:1].expand_as(same), rtol=1e-4, atol=1e-4)
    assert scores[0].std() > 0.01  # the scores do depend on the distance


def test_sinusoids_are_those_of_the_paper() -> None:
    found = sinusoids(torch.tensor([0, 1, 2, 3]), 6)
    angle = torch.tensor([3.0, 3 / 10_000 ** (1 / 3), 3 / 10_000 ** (2 / 3)])
    torch.testing.assert_close(found[3], torch.cat([angle.sin(), angle.cos()]))
    assert sinusoids(torch.arange(4), 5).shape == (4, 5)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_the_fused_context_is_the_context_of_the_weights(name: str) -> None:
    """The output of the fused layer, which returns no weights, equals the equations on top of
    `attend`.
    """
    torch.manual_seed(1)
    layer = TransformerLayer(12, [ATTENTIONS[name](), shared := softmax(), shared], 20).eval()
    rows = torch.randn(3, 5, 12)
    attended = layer.attend(rows, RIGHT)
    assert [each.weights.shape[1] for each in attended] == [1, 2]
    context = torch.cat([each.context for each in attended], 1).transpose(1, 2).flatten(-2)
    middle = rows + layer.output(context)
    hidden = nn.functional.gelu(layer.widen(layer.feed_forward_norm(middle)))
    expected = middle + layer.narrow(hidden)
    torch.testing.assert_close(layer(rows, RIGHT)[RIGHT], expected[RIGHT], rtol=1e-5, atol=1e-5)


def projections(layer: TransformerLayer, rows: Tensor, head: int) -> list[Tensor]:
    """Compute query, keys and values of one head by the equations."""
    normed = layer.attention_norm(rows)
    part = slice(4 * head, 4 * head + 4)
    weights, biases = layer.project.weight.chunk(3), layer.project.bias.chunk(3)
    return [normed @ w[part].T + b[part] for w, b in zip(weights, biases, strict=True)]


@pytest.mark.parametrize(
    ("name", "kind"), [("tree", ProjectiveTree), ("segment", LinearChain)], ids=["tree", "segment"]
)
def test_a_structured_head_has_the_marginals_of_its_distribution(name: str, kind: type) -> None:
    torch.manual_seed(2)
    structured = ATTENTIONS[name]()
    layer = TransformerLayer(8, [structured, softmax()], 16).eval()
    rows = torch.randn(3, 5, 8)
    of_structure, of_softmax = layer.attend(rows, RIGHT)
    query, keys, values = projections(layer, rows, 0)
    alone = structured(query, structured.remember(Memory(keys, RIGHT))._replace(values=values))
    assert isinstance(of_structure.distribution, kind)
    marginals = of_structure.distribution.marginals()[:, 0]
    torch.testing.assert_close(marginals, alone.distribution.marginals(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(of_structure.weights[:, 0], alone.weights, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(of_structure.context[:, 0], alone.context, rtol=1e-5, atol=1e-5)
    difference = (of_structure.weights - of_softmax.weights)[:, 0][0].abs().max()
    assert difference > 0.05


def test_a_syntactic_head_reads_one_tree() -> None:
    """Every word has one head or is the root, as in a projective tree with a single root."""
    torch.manual_seed(3)
    tree, _ = TransformerLayer(8, [ATTENTIONS["tree"](), softmax()], 16).attend(
        torch.randn(3, 5, 8)
    )
    heads = tree.distribution.marginals()[:, 0, :, 1:]  # (B, 1 + T heads, T words)
    torch.testing.assert_close(heads.sum(1), torch.ones(3, 5))
    torch.testing.assert_close(heads[:, 0].sum(-1), torch.ones(3))
    torch.testing.assert_close(tree.weights[:, 0], heads[:, 1:].mT)


def test_self_attentions_have_every_layer() -> None:
    first, second = softmax(), softmax()
    layers = [
        TransformerLayer(8, [first, ATTENTIONS["segment"]()], 16),
        TransformerLayer(8, [second] * 2, 16),
    ]
    model = TransformerEncoder(nn.Embedding(9, 8), layers).eval()
    tokens = torch.randint(9, (3, 5))
    found = model.self_attentions(tokens, RIGHT)
    assert [each.weights.shape for each in found] == [(3, 1, 5, 5), (3, 1, 5, 5), (3, 2, 5, 5)]
    assert not found[2].weights[1, :, :, 3:].any()  # padding
    torch.testing.assert_close(found[2].weights.sum(-1), torch.ones(3, 2, 5))
    alone = model.self_attentions(tokens[0])
    torch.testing.assert_close(alone[2].weights, found[2].weights[0], rtol=1e-5, atol=1e-5)


def test_a_transformer_learns_to_reverse() -> None:
    """The model learns to output the input token T - 1 - t at t, which needs positions and
    attention.
    """
    torch.manual_seed(0)
    head = softmax_attention(16, 16, scaled_dot_scorer(16))
    layers = [TransformerLayer(32, [head] * 2, 64)]
    embedding = nn.Embedding(8, 32)
    nn.init.normal_(embedding.weight, std=32**-0.5)
    model = TransformerEncoder(embedding, layers, positions="sinusoidal")
    output = nn.Linear(32, 8)
    parameters = [*model.parameters(), *output.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=5e-3)
    loss = torch.tensor(torch.inf)
    for _ in range(200):
        tokens = torch.randint(8, (32, 6))
        scores = output(model(tokens).values)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1  # random guessing gives log 8 = 2.08


def test_what_does_not_fit_is_refused_in_words() -> None:
    with pytest.raises(ShapeError, match="multiple of the number of heads, got 8 and 3"):
        TransformerLayer(8, [softmax()] * 3, 16)
    with pytest.raises(ShapeError, match="got 8 and 0"):
        TransformerLayer(8, [], 16)
    narrow, wide = TransformerLayer(8, [softmax()] * 2, 16), TransformerLayer(16, [softmax()], 16)
    with pytest.raises(ShapeError, match=r"one width and one number of heads, got .*\(8, 4\)"):
        TransformerEncoder(nn.Embedding(9, 8), [narrow, wide])
    odd = TransformerLayer(3, [softmax_attention(3, 3)], 4)
    with pytest.raises(ShapeError, match="must be even, got 3"):
        TransformerEncoder(nn.Embedding(9, 3), [odd])
    short = encoder(softmax(), positions="learned", max_positions=4)
    with pytest.raises(ShapeError, match="4 learned positions, got a text of 5 tokens"):
        short(torch.zeros(1, 5, dtype=torch.long))
    # padding is not counted
    short(torch.zeros(1, 5, dtype=torch.long), torch.tensor([[True] * 4 + [False]]))
