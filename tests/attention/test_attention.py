"""The worked example of the lectures, and every structured attention against enumeration."""

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize
from typing_extensions import override

from foveal.attention import (
    AbstractReader,
    AbstractScorer,
    Attention,
    AttentionTrace,
    DotScorer,
    ExpectedValue,
    HierarchicalAttention,
    LinearScorer,
    Memory,
    MultiHead,
    PointerGenerator,
    Selection,
    coverage_loss,
    grid_memory,
    hard_attention,
    head_selection_attention,
    k_step_attention,
    local_attention,
    marginal_log_likelihood,
    monotone_attention,
    path_attention,
    per_query,
    segment_attention,
    sentences_memory,
    sigmoid_attention,
    softmax_attention,
    sparsemax_attention,
    syntactic_attention,
    trace_of,
)
from foveal.attention._hard import SampledValue
from foveal.attention._readers import Read
from foveal.distributions import Categorical, LinearChain, Sparsemax
from foveal.errors import ImpossibleError, ShapeError, ValueRangeError
from foveal.testing import check_scorer


def test_the_worked_example_of_the_lectures() -> None:
    """The score is linear with weights (-1, -1, -1, 2, 2, 2) on [query; key]."""
    scorer = LinearScorer(3, 3)
    with torch.no_grad():
        scorer.query.weight.fill_(-1.0)
        scorer.key.weight.fill_(2.0)
    attention = softmax_attention(3, 3, scorer)
    keys = torch.tensor([[1.0, 3.0, 0.0], [0.0, 0.0, 1.0], [5.0, -1.0, 2.0]])
    read = attention(torch.tensor([[1.0, 1.0, 0.0]]), attention.remember(Memory(keys)))
    torch.testing.assert_close(read.weights, torch.tensor([[0.02, 0.0, 0.98]]), rtol=0, atol=0.005)
    torch.testing.assert_close(read.context, torch.tensor([[4.9, -0.92, 1.96]]), rtol=0, atol=0.03)


def test_segment_attention_equals_enumeration() -> None:
    torch.manual_seed(0)
    attention = segment_attention(3, 3, DotScorer()).double()
    values, query = torch.randn(4, 3).double(), torch.randn(2, 3).double()
    read = attention(query, attention.remember(Memory(values)))
    transitions = attention.get_parameter("scorer.transitions")
    for q in range(2):
        scores, chosen = [], []
        for z in product([0, 1], repeat=4):
            unary = sum(z[s] * (query[q] @ values[s]) for s in range(4))
            scores.append(unary + sum(transitions[z[s], z[s + 1]] for s in range(3)))
            chosen.append(torch.tensor(z).double())
        probabilities = torch.stack([torch.as_tensor(score) for score in scores]).softmax(0)
        torch.testing.assert_close(read.weights[q], probabilities @ torch.stack(chosen))
    torch.testing.assert_close(read.context, read.weights @ values)


def test_the_total_of_segment_weights() -> None:
    attention = segment_attention(3, 3, DotScorer(), total=2.0)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    memory = attention.remember(Memory(torch.randn(2, 3, 3), mask))
    weights = attention(torch.randn(2, 5, 3), memory).weights
    torch.testing.assert_close(weights[0].sum(-1), torch.full((5,), 2.0))
    assert (weights[1] == 0).all()


@pytest.mark.parametrize("repeat", [True, False])
def test_k_step_attention_equals_enumeration(repeat: bool) -> None:
    torch.manual_seed(1)
    attention = k_step_attention(2, 2, DotScorer(), repeat=repeat).double()
    values, query = torch.randn(3, 2).double(), torch.randn(2, 2).double()
    read = attention(query, attention.remember(Memory(values)))
    pairs = values @ attention.get_parameter("scorer.follow.weight").T @ values.T
    scores = (query @ values.T)[0].unsqueeze(1) + pairs + (query @ values.T)[1]
    if not repeat:
        scores = scores.masked_fill(torch.eye(3).bool(), -torch.inf)
    joint = scores.flatten().softmax(0).view(3, 3)
    torch.testing.assert_close(read.weights, torch.stack([joint.sum(1), joint.sum(0)]))


def test_monotone_attention_equals_enumeration() -> None:
    torch.manual_seed(8)
    attention = monotone_attention(2, 2, DotScorer()).double()
    values, query = torch.randn(3, 2).double(), torch.randn(4, 2).double()
    read = attention(query, attention.remember(Memory(values)))
    scores = query @ values.T
    total, weights = 0.0, torch.zeros(4, 3).double()
    for places in product(range(3), repeat=4):
        if list(places) == sorted(places):
            mass = torch.stack([scores[q, s] for q, s in enumerate(places)]).sum().exp()
            total = total + mass
            for q, s in enumerate(places):
                weights[q, s] += mass
    torch.testing.assert_close(read.weights, weights / total)


def test_sparsemax_attention_gives_zeros() -> None:
    attention = sparsemax_attention(2, 2, DotScorer())
    memory = attention.remember(Memory(torch.tensor([[3.0, 0.0], [0.0, 3.0], [-3.0, 0.0]])))
    weights = attention(torch.tensor([[1.0, 0.0]]), memory).weights
    assert weights.tolist() == [[1.0, 0.0, 0.0]]


def test_syntactic_attention_reads_heads() -> None:
    torch.manual_seed(2)
    attention = syntactic_attention(4, 4, 5)
    words = torch.randn(2, 6, 4)
    memory = attention.remember(Memory(words))
    read = attention(words, memory)
    heads = read.distribution.marginals()
    torch.testing.assert_close(read.weights, heads[..., 1:, 1:].transpose(-1, -2))
    # The root has exactly one child.
    torch.testing.assert_close(heads[:, 0].sum(-1), torch.ones(2))
    children = syntactic_attention(4, 4, 5, read="children", projective=False)
    read = children(words, children.remember(Memory(words)))
    torch.testing.assert_close(read.weights.sum((-1, -2)), torch.full((2,), 5.0))


def test_head_selection_is_a_softmax_over_other_words_and_the_root() -> None:
    torch.manual_seed(2)
    attention = head_selection_attention(4, 4, 5)
    words, mask = torch.randn(5, 4), torch.tensor([True, True, False, True, True])
    memory = attention.remember(Memory(words, mask))
    read = attention(words, memory)
    (arcs,) = attention.scorer(words, memory.keys)
    for word in mask.nonzero().flatten().tolist():
        allowed = [0, *(h + 1 for h in range(5) if mask[h] and h != word)]
        expected = torch.zeros(6)
        expected[allowed] = arcs[allowed, word + 1].softmax(0)
        torch.testing.assert_close(read.weights[word], expected[1:])
        root = attention.reader.get_parameter("root")
        context = expected[1:] @ memory.values + expected[0] * root
        torch.testing.assert_close(read.context[word], context)


def test_syntactic_attention_equals_enumeration() -> None:
    """The reference enumerates the projective trees of three words with one root."""
    torch.manual_seed(9)
    attention = syntactic_attention(4, 4, 5).double()
    words = torch.randn(3, 4).double()
    memory = attention.remember(Memory(words))
    read = attention(words, memory)
    (arcs,) = attention.scorer(words, memory.keys)
    trees = [(0, 1, 1), (0, 1, 2), (0, 3, 1), (2, 0, 2), (2, 3, 0), (3, 1, 0), (3, 3, 0)]
    scores = torch.stack(
        [torch.stack([arcs[h, d + 1] for d, h in enumerate(t)]).sum() for t in trees]
    )
    weights = torch.zeros(3, 3).double()
    for heads, probability in zip(trees, scores.softmax(0), strict=True):
        for word, head in enumerate(heads):
            if head > 0:
                weights[word, head - 1] += probability
    torch.testing.assert_close(read.weights, weights)


def test_hierarchical_weights_are_products() -> None:
    torch.manual_seed(3)
    words, sentences = softmax_attention(3, 4), softmax_attention(3, 4)
    attention = HierarchicalAttention(words, sentences)
    mask = torch.tensor([[[1, 1, 0], [1, 1, 1]], [[1, 0, 0], [0, 0, 0]]]).bool()
    values = torch.randn(2, 2, 3, 4)
    read = attention(torch.randn(2, 5, 3), attention.remember(sentences_memory(values, mask)))
    assert read.weights.shape == (2, 5, 6)
    torch.testing.assert_close(read.weights.sum(-1), torch.ones(2, 5))
    by_sentence = read.weights.unflatten(-1, (2, 3))
    assert (by_sentence[1, :, 1] == 0).all()
    torch.testing.assert_close(
        by_sentence,
        read.sentences.weights.squeeze(-2).unsqueeze(-1) * read.words.weights.transpose(1, 2),
    )
    torch.testing.assert_close(
        read.context, torch.einsum("bqnw,bnwv->bqv", by_sentence, values * mask[..., None])
    )


def test_hierarchical_attention_needs_sentences() -> None:
    attention = HierarchicalAttention(softmax_attention(4, 4), softmax_attention(4, 4))
    with pytest.raises(ShapeError, match="words in sentences, got the layout sequence"):
        attention(torch.randn(1, 4), Memory(torch.randn(6, 4)))


def test_one_head_per_batch_axis() -> None:
    torch.manual_seed(4)
    inner = Attention(scorer=DotScorer(), distribute=per_query(Categorical), reader=ExpectedValue())
    attention = MultiHead(inner, num_heads=2, query_size=4, value_size=4)
    mask = torch.tensor([[True, True, False]])
    memory = attention.remember(Memory(torch.randn(1, 3, 4), mask))
    read = attention(torch.randn(1, 5, 4), memory)
    assert read.context.shape == (1, 5, 4)
    assert read.weights.shape == (1, 2, 5, 3)
    assert (read.weights[..., 2] == 0).all()
    with pytest.raises(ShapeError, match="num_heads=2"):
        MultiHead(inner, num_heads=3, query_size=4, value_size=4)


def test_local_attention_prefers_the_predicted_place() -> None:
    attention = local_attention(3, 3, DotScorer(), window=1.0)
    with torch.no_grad():
        attention.get_parameter("scorer.place.2.weight").fill_(0.0)  # predicts the middle
    memory = attention.remember(Memory(torch.zeros(9, 3)))
    weights = attention(torch.randn(2, 3), memory).weights
    assert (weights.argmax(-1) == 4).all()


def test_hard_attention_reads_one_place() -> None:
    torch.manual_seed(6)
    attention = hard_attention(3, 3)
    memory = attention.remember(Memory(torch.randn(2, 4, 3)))
    query = torch.randn(2, 5, 3, requires_grad=True)
    read = attention(query, memory)
    assert set(read.weights.detach().flatten().round(decimals=5).tolist()) == {0.0, 1.0}
    read.context.sum().backward()
    assert query.grad is not None
    assert query.grad.abs().sum() > 0
    attention.eval()
    best = attention(query, memory)
    torch.testing.assert_close(best.weights.argmax(-1), best.distribution.argmax())


@pytest.mark.parametrize("distribute", [Categorical, Sparsemax])
@pytest.mark.parametrize("training", [True, False])
def test_hard_attention_without_a_possible_position_reads_zeros(
    training: bool, distribute: type[Categorical | Sparsemax]
) -> None:
    scores = torch.tensor([[0.0, 1.0], [-torch.inf, -torch.inf], [0.0, 0.0]], requires_grad=True)
    mask = torch.tensor([[True, True], [True, True], [False, False]])
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    read = SampledValue().train(training)(distribute(scores, mask=mask), values)
    assert read.weights[0].sum() == 1
    assert torch.equal(read.context[1:], torch.zeros(2, 2))
    (gradient,) = torch.autograd.grad(read.context.square().sum(), scores)
    assert gradient.isfinite().all()
    assert not gradient[1:].any()


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
@pytest.mark.parametrize("training", [True, False])
def test_hard_attention_passes_on_broken_scores(training: bool, broken: float) -> None:
    scores = torch.tensor([[0.0, broken], [0.0, 1.0]])
    read = SampledValue().train(training)(Categorical(scores), torch.ones(2, 3))
    assert read.context[0].isnan().all()
    assert torch.equal(read.context[1], torch.ones(3))


def test_the_distribution_of_hard_attention_checks_what_users_ask() -> None:
    torch.manual_seed(6)
    attention = hard_attention(3, 3)
    mask = torch.tensor([[True, True], [False, False]])
    memory = attention.remember(Memory(torch.randn(2, 2, 3), mask))
    distribution = attention(torch.randn(2, 1, 3), memory).distribution
    for choose in (distribution.argmax, distribution.sample):
        with pytest.raises(ImpossibleError, match=r"index \[1, 0\]"):
            choose()
    with pytest.raises(ValueRangeError, match=r"in 0\.\.1, got 2"):
        distribution.indicators(torch.full((2, 1), 2))


def test_summing_out_a_selection_equals_enumeration() -> None:
    torch.manual_seed(7)
    scores, emissions = torch.randn(3, 4).double(), torch.randn(3, 4).double()
    expected = (scores.softmax(-1) * emissions.exp()).sum(-1).log()
    found = marginal_log_likelihood(Categorical, scores, emissions)
    torch.testing.assert_close(found, expected)


def test_a_grid_is_read_row_by_row() -> None:
    memory = grid_memory(torch.arange(6.0).view(2, 3, 1))
    assert memory.values.squeeze(-1).tolist() == [0, 1, 2, 3, 4, 5]
    assert (memory.layout.rows, memory.layout.columns) == (2, 3)


def test_what_was_read_twice_is_counted() -> None:
    weights = torch.tensor([[0.7, 0.3], [0.4, 0.6]])
    torch.testing.assert_close(coverage_loss(weights), torch.tensor(0.4 + 0.3))


def test_copied_and_generated_words_sum_to_one() -> None:
    torch.manual_seed(5)
    pointer = PointerGenerator(3, 4)
    log_probs = torch.randn(2, 5, 6).log_softmax(-1)
    weights = torch.randn(2, 5, 3).softmax(-1)
    source = torch.tensor([[0, 7, 7], [1, 1, 6]])  # 6 and 7 are words outside the vocabulary
    mixed = pointer(torch.randn(2, 5, 3), torch.randn(2, 5, 4), log_probs, weights, source, 8)
    torch.testing.assert_close(mixed.exp().sum(-1), torch.ones(2, 5))
    assert (mixed[1, :, 7] == -torch.inf).all()
    gate = pointer.gate.weight
    (gradient,) = torch.autograd.grad(mixed[mixed > -torch.inf].sum(), gate)
    assert gradient.isfinite().all()


def test_a_trace_is_plain_data() -> None:
    attention = sigmoid_attention(3, 3)
    memory = attention.remember(Memory(torch.randn(4, 3)))
    trace = trace_of(
        attention(torch.randn(2, 3), memory),
        kind="sigmoid",
        sources=["ein", "kleiner", "Test"],
        targets=["a", "tést"],
        layout=memory.layout,
    )
    assert AttentionTrace.from_json(trace.to_json()) == trace
    with pytest.raises(ShapeError, match="expected 1 rows of 1 weights, got 2 rows of"):
        AttentionTrace(kind="x", sources=("a",), targets=("b",), weights=((1.0,), (2.0,)))


@pytest.mark.parametrize(
    "attention",
    [
        softmax_attention(4, 4),
        segment_attention(4, 4),
        MultiHead(softmax_attention(2, 2), num_heads=2, query_size=4, value_size=4),
    ],
)
def test_a_memory_without_keys_is_remembered(attention: Attention | MultiHead) -> None:
    """`remember` also clears garbage in the padding."""
    values, query = torch.randn(2, 5, 4), torch.randn(2, 3, 4)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    values[1, 2:] = torch.nan
    read = attention(query, Memory(values, mask))
    before = attention(query, attention.remember(Memory(values, mask)))
    assert torch.equal(read.context, before.context)
    assert torch.equal(read.weights, before.weights)


def test_words_in_sentences_without_keys_are_remembered() -> None:
    attention = HierarchicalAttention(softmax_attention(4, 4), softmax_attention(4, 4))
    memory, query = sentences_memory(torch.randn(2, 3, 5, 4)), torch.randn(2, 1, 4)
    read, before = attention(query, memory), attention(query, attention.remember(memory))
    assert torch.equal(read.context, before.context)


class CosineScorer(AbstractScorer):
    """A scorer that returns its potentials as a single tensor."""

    @override
    def remember(self, values: Tensor) -> Tensor:
        return normalize(values, dim=-1).mT

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return normalize(query, dim=-1) @ keys


class TupleScorer(AbstractScorer):
    """The same scores as a tuple, which scorers with several potentials return."""

    def __init__(self, potentials: int = 1) -> None:
        super().__init__()
        self.inner, self.potentials = CosineScorer(), potentials

    @override
    def remember(self, values: Tensor) -> Tensor:
        return self.inner.remember(values)

    @override
    def forward(self, query: Tensor, keys: Tensor) -> tuple[Tensor, ...]:
        return (self.inner(query, keys),) * self.potentials


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize(
    "make",
    [softmax_attention, segment_attention, path_attention, k_step_attention, local_attention],
)
def test_a_scorer_may_return_a_bare_tensor(make: Callable[..., Attention], batch: int) -> None:
    memory, query = Memory(torch.randn(batch, 4, 3)), torch.randn(batch, 2, 3)
    attention = make(3, 3, CosineScorer())
    read = attention(query, memory)
    in_a_tuple = make(3, 3, TupleScorer())
    in_a_tuple.load_state_dict(attention.state_dict())
    assert torch.equal(read.context, in_a_tuple(query, memory).context)


def test_a_scorer_with_a_bare_tensor_obeys_the_laws() -> None:
    check_scorer(CosineScorer(), query_size=4, value_size=4)


def test_a_scorer_with_two_potentials_cannot_be_inner() -> None:
    attention = segment_attention(3, 3, TupleScorer(2))
    with pytest.raises(ShapeError, match=r"TupleScorer: expected one tensor .* got 2"):
        attention(torch.randn(2, 3), Memory(torch.randn(4, 3)))


def test_a_reader_of_ones_own_names_the_type_that_it_takes() -> None:
    class HalfOfTheValue(AbstractReader):
        @override
        def forward(self, distribution: Selection, values: Tensor) -> Read:
            weights = distribution.marginals() / 2
            return Read(weights @ values, weights)

    attention = Attention(
        scorer=CosineScorer(), distribute=per_query(Categorical), reader=HalfOfTheValue()
    )
    read = attention(torch.randn(2, 3), Memory(torch.randn(5, 3)))
    torch.testing.assert_close(read.weights.sum(-1), torch.full((2,), 0.5))


def test_all_queries_are_one_call() -> None:
    """64 x 12 queries make one chain distribution with that batch shape."""
    attention = segment_attention(8, 8)
    memory = attention.remember(Memory(torch.randn(64, 25, 8)))
    read = attention(torch.randn(64, 12, 8), memory)
    assert isinstance(read.distribution, LinearChain)
    assert read.distribution.batch_shape == (64, 12)
