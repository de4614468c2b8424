"""Encoders match their equations."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import (
    AttentionPooling,
    HierarchicalAttention,
    Layout,
    mean_pooling,
    softmax_attention,
)
from foveal.distributions import ProjectiveTree
from foveal.errors import ShapeError, ValueRangeError
from foveal.models import ImageEncoderSpec
from foveal.networks import (
    DocumentEncoder,
    FactsEncoder,
    ImageEncoder,
    TextEncoder,
    TreeEncoder,
    recurrent_stack,
)
from foveal.networks.encoders._blocks import Block


def assert_near(found: Tensor | None, expected: Tensor | None) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def text_encoder() -> TextEncoder:
    return TextEncoder(nn.Embedding(9, 4), recurrent_stack(4, 3, bidirectional=True))


def test_the_summary_of_a_text_has_both_ends() -> None:
    torch.manual_seed(0)
    memory = text_encoder()(
        torch.randint(9, (2, 5)), torch.tensor([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]]).bool()
    )
    last, first = memory.values[[0, 1], [2, 4], :3], memory.values[[0, 1], [0, 1], 3:]
    assert_near(memory.summary, torch.cat([last, first], -1))


def test_a_document_is_its_sentences() -> None:
    torch.manual_seed(1)
    words, stack = text_encoder(), recurrent_stack(6, 5)
    encoder = DocumentEncoder(words, stack)
    tokens, mask = torch.randint(9, (2, 3, 4)), torch.rand(2, 3, 4) < 0.7
    mask[0, 1], mask[:, 0, 0] = False, True
    document = encoder(tokens, mask)
    sentences = [words(tokens[0, i, mask[0, i]]).summary for i in (0, 2)]
    assert_near(document.sentences.values[0, [0, 2]], stack(torch.stack(sentences)).outputs)
    assert not document.sentences.values[0, 1].any()
    assert document.words.layout == Layout("sentences", 3, 4)
    levels = HierarchicalAttention(softmax_attention(2, 6), softmax_attention(2, 6))
    read = levels(torch.randn(2, 7, 2), levels.remember(document.words))
    assert read.weights.shape == (2, 7, 12)


def test_the_words_that_make_a_sentence_can_be_seen() -> None:
    torch.manual_seed(2)
    pooling = AttentionPooling(softmax_attention(3, 6), 3)
    encoder = DocumentEncoder(text_encoder(), recurrent_stack(6, 5), pooling)
    document = encoder(torch.randint(9, (2, 3, 4)))
    assert document.attended is not None
    assert_near(document.attended.weights.sum(-1), torch.ones(2, 3, 1))


@pytest.mark.parametrize("downsampling", ["stride", "max_pool", "mean_pool"])
@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("with_rows", [False, True])
def test_an_image_encodes_the_same_whatever_surrounds_it(
    with_rows: bool,
    norm: Literal["layer", "batch"],
    downsampling: Literal["stride", "max_pool", "mean_pool"],
) -> None:
    torch.manual_seed(3)
    rows = recurrent_stack(8, 3, bidirectional=True) if with_rows else None
    encoder = ImageEncoder(
        2,
        sizes=(4, 6, 8),
        rows=rows,
        positions=with_rows,
        norm=norm,
        blocks=1,
        downsampling=downsampling,
    )
    encoder(torch.randn(4, 2, 16, 12))  # updates the running statistics, if any
    encoder.eval()
    for height, width in ((5, 9), (8, 8), (11, 3)):
        image = torch.randn(2, height, width)
        alone = encoder(image)
        padded, mask = torch.full((2, 16, 12), torch.nan), torch.zeros(16, 12, dtype=torch.bool)
        padded[:, :height, :width], mask[:height, :width] = image, True
        memory = encoder(padded, mask)
        assert memory.layout == Layout("grid", 2, 2)
        assert_near(memory.values[memory.mask], alone.values)
        assert_near(memory.summary, alone.summary)


def test_a_residual_block_adds_its_input() -> None:
    """A residual block is x + W2 phi(W1 x); without the sum, it is a stack of two convolutions."""
    torch.manual_seed(4)
    deep, flat = ImageEncoder(1, sizes=(4,), blocks=1), ImageEncoder(1, sizes=(4,))
    flat.convolutions.load_state_dict(deep.convolutions.state_dict())
    image = torch.randn(2, 1, 8, 8)
    (block,) = (part for part in deep.modules() if isinstance(part, Block))
    x = flat(image).values.movedim(-1, -2).reshape(2, 4, 4, 4)

    def normed(norm: torch.nn.Module, features: torch.Tensor) -> torch.Tensor:
        return norm(features.movedim(1, -1)).movedim(-1, 1)

    change = normed(
        block.second_norm, block.second(normed(block.first_norm, block.first(x)).relu())
    )
    assert_near(deep(image).values.movedim(-1, -2).reshape(2, 4, 4, 4), x + change)
    block.residual = False
    assert_near(deep(image).values.movedim(-1, -2).reshape(2, 4, 4, 4), change.relu())


def test_strides_divide_height_and_width_each_by_its_own() -> None:
    encoder = ImageEncoder(1, sizes=(4, 6, 8), strides=((2, 2), (1, 1), (4, 1)))
    mask = torch.ones(2, 32, 24, dtype=torch.bool)
    mask[0, 16:], mask[0, :, 10:] = False, False
    memory = encoder(torch.rand(2, 1, 32, 24), mask)
    assert memory.layout == Layout("grid", 4, 12)
    assert memory.mask is not None
    assert memory.mask.sum(-1).tolist() == [2 * 5, 4 * 12]
    with pytest.raises(ShapeError, match="a stride for each of 2 stages, got 1"):
        ImageEncoder(1, sizes=(4, 6), strides=((2, 2),))


def test_pools_follow_the_convolutions() -> None:
    """The first stages of LeNet-5: 5 x 5 convolutions, each followed by a pool of 2 x 2."""
    torch.manual_seed(6)
    image = torch.randn(2, 1, 32, 32)
    pools: tuple[tuple[Literal["mean_pool", "max_pool"], nn.Module], ...] = (
        ("mean_pool", nn.AvgPool2d(2)),
        ("max_pool", nn.MaxPool2d(2)),
    )
    for downsampling, pool in pools:
        spec = ImageEncoderSpec(
            num_channels=1, sizes=(6,), kernel_size=5, downsampling=downsampling
        )
        assert not spec.is_centered
        encoder = spec.build()
        found = encoder(image).values.movedim(-1, -2).reshape(2, 6, 16, 16)
        assert_near(found, pool(encoder.convolutions[0](image).relu()))
    with pytest.raises(ValueRangeError, match="kernel_size must be odd"):
        ImageEncoderSpec(kernel_size=4).build()


def test_a_row_is_read_from_both_ends_and_no_other_row_with_it() -> None:
    torch.manual_seed(5)
    encoder = ImageEncoder(1, sizes=(4,), rows=recurrent_stack(4, 3, bidirectional=True))
    image = torch.rand(1, 16, 16)
    changed = image.clone()
    changed[:, 15, 15] += 1.0  # the last cell of the last row
    same = (encoder(image).values == encoder(changed).values).all(-1).view(8, 8)
    assert same[:7].all()
    assert not same[7].any()
    with pytest.raises(ShapeError, match="input_size 4"):
        ImageEncoder(1, sizes=(4,), rows=recurrent_stack(5, 3))


def test_positions_tell_apart_what_looks_the_same() -> None:
    torch.manual_seed(6)
    flat = torch.full((1, 16, 16), 0.5)
    blind, sighted = (ImageEncoder(1, sizes=(4, 8), positions=is_on) for is_on in (False, True))
    inner = [encoder(flat).values.view(4, 4, -1)[1:3, 1:3] for encoder in (blind, sighted)]
    assert_near(inner[0][0, 0], inner[0][1, 1])
    assert (inner[1][0, 0] - inner[1][1, 1]).abs().max() > 1e-4


def test_the_position_encoding_of_facts() -> None:
    """The position encoding equals the formula for every word."""
    torch.manual_seed(4)
    encoder = FactsEncoder(nn.Embedding(9, 4), max_facts=5)
    tokens = torch.tensor([[[1, 2, 3], [4, 5, 0], [6, 0, 0]]])
    mask = torch.tensor([[[1, 1, 1], [1, 1, 0], [0, 0, 0]]]).bool()
    memory = encoder(tokens, mask)
    assert encoder.ages is not None
    for fact, (num_words, age) in enumerate([(3, 1), (2, 0)]):
        expected = encoder.ages.weight[age].clone()
        for j in range(1, num_words + 1):
            k = torch.arange(1, 5)
            share = j / num_words
            weight = (1 - share) - (k / 4) * (1 - 2 * share)
            expected = expected + weight * encoder.embedding.weight[tokens[0, fact, j - 1]]
        assert_near(memory.values[0, fact], expected)
    assert memory.mask is not None
    assert memory.mask.tolist() == [[True, True, False]]
    assert memory.layout.kind == "facts"


def test_a_bag_of_words_has_no_order() -> None:
    encoder = FactsEncoder(nn.Embedding(9, 4), positions=False)
    one, other = encoder(torch.tensor([[1, 2, 3]])), encoder(torch.tensor([[3, 1, 2]]))
    assert_near(one.values, other.values)
    with pytest.raises(ShapeError, match="max_facts=3"):
        FactsEncoder(nn.Embedding(9, 4), max_facts=2)(torch.zeros(3, 2, dtype=torch.long))


def tree_by_recursion(
    encoder: TreeEncoder, inputs: Tensor, heads: list[int], node: int
) -> tuple[Tensor, Tensor]:
    """Compute hidden state and memory of a node by the equations of Tai et al."""
    below = [
        tree_by_recursion(encoder, inputs, heads, k)
        for k in range(len(heads))
        if heads[k] == node + 1
    ]
    summed = sum((hidden for hidden, _ in below), torch.zeros(encoder.value_size))
    i, o, u, f = encoder.from_input(inputs[node]).chunk(4, -1)
    child_i, child_o, child_u = encoder.from_children(summed).chunk(3, -1)
    memory = torch.sigmoid(i + child_i) * torch.tanh(u + child_u)
    for hidden, child_memory in below:
        memory = memory + torch.sigmoid(f + encoder.from_child(hidden)) * child_memory
    return torch.sigmoid(o + child_o) * torch.tanh(memory), memory


def test_a_tree_by_levels_equals_the_recursion() -> None:
    torch.manual_seed(5)
    encoder, inputs = TreeEncoder(3, 4), torch.randn(4, 5, 3)
    heads = torch.tensor([[2, 0, 2, 3, 3], [0, 1, 2, 3, 4], [5, 5, 5, 5, 0], [2, 0, 0, 3, -7]])
    mask = torch.ones(4, 5, dtype=torch.bool)
    mask[3, 4] = False
    memory = encoder(inputs, heads, mask)
    assert memory.summary is not None
    for item in range(4):
        rows = heads[item].tolist()
        states = [tree_by_recursion(encoder, inputs[item], rows, node)[0] for node in range(5)]
        real = mask[item].nonzero().flatten().tolist()
        for node in real:
            assert_near(memory.values[item, node], states[node])
        roots = [states[node] for node in real if rows[node] == 0]
        assert_near(memory.summary[item], torch.stack(roots).sum(0))
    assert not memory.values[3, 4].any()


def test_a_tree_encoder_reads_what_a_distribution_gives() -> None:
    mask = torch.tensor([[True, True, True], [True, True, False]])
    heads = ProjectiveTree(torch.randn(2, 4, 4), mask=mask).argmax()
    memory = TreeEncoder(3, 4)(torch.randn(2, 3, 3), heads, mask)
    assert memory.values.isfinite().all()


def test_levels_are_shared_by_the_batch() -> None:
    """A hundred flat trees take the same number of steps as one tree: the loop runs over heights."""
    encoder, counts = TreeEncoder(3, 4), []
    for num_items in (1, 100):
        heads = torch.tensor([0, 1, 1, 1, 1]).expand(num_items, 5)
        with torch.profiler.profile() as profile:
            encoder(torch.randn(num_items, 5, 3), heads)
        counts.append(sum(event.name == "aten::index_add" for event in profile.events() or ()))
    assert counts == [4, 4]  # two sums at each of two heights


def test_heads_that_are_no_tree_are_an_error() -> None:
    encoder = TreeEncoder(3, 4)
    with pytest.raises(ValueRangeError, match="cycle among 2 nodes"):
        encoder(torch.zeros(1, 3, 3), torch.tensor([[0, 3, 2]]))
    with pytest.raises(ValueRangeError, match=r"0 \(the root\) to 3, got 0 to 4"):
        encoder(torch.zeros(1, 3, 3), torch.tensor([[0, 1, 4]]))
    mask = torch.tensor([[True, True, True], [True, False, True]])
    with pytest.raises(ValueRangeError, match=r"got head 2 of node 3 in item 1.*mask is False"):
        encoder(torch.zeros(2, 3, 3), torch.tensor([[0, 1, 2], [0, 1, 2]]), mask)


def test_the_mean_is_a_summary() -> None:
    memory = ImageEncoder(1, sizes=(4,))(torch.randn(2, 1, 6, 6))
    assert_near(memory.summary, mean_pooling(memory))


def test_age_noise_makes_facts_older_in_training_alone() -> None:
    """With probability 1, every fact counts as two; the last fact still has age 0."""
    encoder = FactsEncoder(nn.Embedding(9, 4), max_facts=5, random_noise=1.0)
    assert encoder.ages is not None
    facts = torch.ones(3, 2, dtype=torch.long)
    words = encoder.eval()(facts).values - encoder.ages(torch.tensor([2, 1, 0]))
    torch.testing.assert_close(
        encoder.train()(facts).values, words + encoder.ages(torch.tensor([4, 2, 0]))
    )
    many = torch.ones(5, 2, dtype=torch.long)  # ages 8 and 6 exceed the table: last row
    torch.testing.assert_close(
        encoder(many).values - words[0], encoder.ages(torch.tensor([4, 4, 4, 2, 0]))
    )
    some = FactsEncoder(nn.Embedding(9, 4), max_facts=5, random_noise=0.5).train()
    torch.manual_seed(0)
    assert not torch.equal(some(facts).values, some(facts).values)
