"""Models that read and decide: classifier, tagger, pair matcher, memory network."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from foveal.distributions import Categorical, ProjectiveTree
from foveal.errors import ShapeError, SpecError, ValueRangeError
from foveal.models import (
    AdditiveSpec,
    ChainStepsSpec,
    ClassifierSpec,
    DecomposableAttentionSpec,
    DocumentEncoderSpec,
    ImageEncoderSpec,
    MemoryNetworkSpec,
    RecurrentSpec,
    SoftmaxSpec,
    SoftStepsSpec,
    StepsSpec,
    SyntacticSpec,
    TaggerSpec,
    TextEncoderSpec,
    WordEncoderSpec,
)
from foveal.networks import SelfAttentiveEncoder
from foveal.testing import check_model

pytestmark = pytest.mark.slow

TEXT = TextEncoderSpec(embedding_size=8, hidden_size=8, dropout=0.0)
WORDS = WordEncoderSpec(embedding_size=16, dropout=0.0)


def descend(loss: Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def test_a_classifier_learns_which_word_decides() -> None:
    """One of two words is somewhere in the text and decides the class; the attention finds it."""
    torch.manual_seed(0)
    spec = ClassifierSpec(encoder=WORDS, dropout=0.0)
    model = spec.build(vocabulary=10, num_classes=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def texts() -> tuple[Tensor, Tensor, Tensor]:
        tokens, place = torch.randint(2, 10, (64, 8)), torch.randint(8, (64, 1))
        labels = torch.randint(2, (64,))
        return tokens.scatter(1, place, labels.unsqueeze(1)), place, labels

    for _ in range(120):
        tokens, _, labels = texts()
        descend(nn.functional.nll_loss(model(tokens).log_probs, labels), optimizer)
    tokens, place, labels = texts()
    classified = model.eval()(tokens)
    assert (classified.log_probs.argmax(-1) == labels).double().mean() > 0.95
    assert classified.weights is not None
    assert classified.weights.gather(1, place).mean() > 0.5  # chance is 0.125


def test_weights_over_a_document_are_of_both_levels() -> None:
    encoder = DocumentEncoderSpec(words=TEXT, sentences=RecurrentSpec(hidden_size=4))
    model = ClassifierSpec(encoder=encoder).build(vocabulary=9, num_classes=2).eval()
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[0, 2], mask[1, :, 3] = False, False
    classified = model(torch.randint(9, (2, 3, 4)), mask)
    assert classified.weights is not None
    assert classified.weights.shape == (2, 3, 4)
    assert not classified.weights[~mask].any()
    torch.testing.assert_close(classified.weights.sum((1, 2)), torch.ones(2))


def test_weights_are_only_where_something_attends() -> None:
    model = ClassifierSpec(encoder=TEXT, pooling="mean").build(vocabulary=9, num_classes=2)
    assert model(torch.randint(9, (2, 3))).weights is None


def test_a_crf_learns_what_may_follow_what() -> None:
    """The words do not determine the tags: 0 and 1 alternate, and either tag may come first."""
    torch.manual_seed(0)
    model = TaggerSpec(encoder=WORDS).build(vocabulary=3, num_tags=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-2)
    for _ in range(60):
        first = torch.randint(2, (32, 1))
        tags = (first + torch.arange(6)) % 2
        tokens = torch.cat([first, torch.full((32, 5), 2)], 1)  # only the first word is informative
        descend(-model(tokens).log_prob(tags).mean(), optimizer)
    model.eval()
    found = model(
        torch.tensor([[0, 2, 2, 2], [1, 2, 2, 9]]), torch.tensor([[1] * 4, [1, 1, 1, 0]]) == 1
    )
    assert found.argmax().tolist() == [[0, 1, 0, 1], [1, 0, 1, -1]]


def test_without_a_crf_each_token_is_by_itself() -> None:
    model = TaggerSpec(encoder=TEXT, crf=False).build(vocabulary=9, num_tags=3).eval()
    tokens, tags = torch.randint(9, (2, 4)), torch.randint(3, (2, 4))
    taggings = model(tokens)
    alone = Categorical(model.unary(model.encoder(tokens).values))
    torch.testing.assert_close(taggings.marginals(), alone.marginals())
    torch.testing.assert_close(taggings.log_prob(tags), alone.log_prob(tags).sum(-1))


def test_a_matcher_learns_to_find_what_is_missing() -> None:
    """The model decides whether the first text contains every word of the second."""
    torch.manual_seed(0)
    spec = DecomposableAttentionSpec(encoder=WORDS, hidden_size=32, dropout=0.0)
    model = spec.build(vocabulary=8, num_classes=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def pairs() -> tuple[Tensor, Tensor, Tensor]:
        first = torch.stack([torch.randperm(8)[:4] for _ in range(64)])
        inside = first[:, :2].clone()
        labels = torch.randint(2, (64,))
        missing = torch.stack([_missing(row) for row in first])
        inside[:, 1] = torch.where(labels == 1, inside[:, 1], missing)
        return first, inside, labels

    for _ in range(120):
        first, second, labels = pairs()
        matched = model(first, None, second, None)
        descend(nn.functional.nll_loss(matched.log_probs, labels), optimizer)
    first, second, labels = pairs()
    matched = model.eval()(first, None, second, None)
    assert (matched.log_probs.argmax(-1) == labels).double().mean() > 0.9


def _missing(row: Tensor) -> Tensor:
    return next(word for word in torch.randperm(8) if word not in row)


def test_the_facts_of_a_chain_are_its_best_sequence() -> None:
    """No fact appears twice in a row, although independent steps would choose the same fact."""
    torch.manual_seed(0)
    spec = MemoryNetworkSpec(steps=ChainStepsSpec(), max_facts=None, num_steps=3)
    model = spec.build(vocabulary=9, num_answers=2).eval()
    facts = torch.tensor([[[1, 2], [3, 4], [5, 6], [0, 0]]])
    mask = torch.tensor([[[True, True], [True, True], [True, True], [False, False]]])
    answered = model(facts, mask, torch.tensor([[3, 4]]), None)
    (first, second, third) = answered.facts()[0].tolist()
    assert first != second != third
    assert answered.weights.shape == (1, 3, 4)
    assert not answered.weights[..., 3].any()
    torch.testing.assert_close(answered.weights.sum(-1), torch.ones(1, 3))


def test_adjacent_tying_scores_facts_that_share_words() -> None:
    """Without training, a chain reads a fact that shares a word with the question, then one that shares a word with the
    first.
    """
    torch.manual_seed(0)
    spec = MemoryNetworkSpec(
        embedding_size=500, steps=ChainStepsSpec(), tying="adjacent", max_facts=None
    )
    model = spec.build(vocabulary=20, num_answers=2).eval()
    facts = torch.tensor([[[9, 10], [5, 6], [5, 4], [3, 4], [11, 12]]])
    assert model(facts, None, torch.tensor([[3]]), None).facts().tolist() == [[3, 2]]
    assert model.between is not None
    assert len(model.between) == 1


def test_a_tied_output_scores_an_answer_by_its_words() -> None:
    torch.manual_seed(0)
    spec = MemoryNetworkSpec(embedding_size=8, tie_output=True)
    model = spec.build(vocabulary=9, num_answers=2, answers=[[3], [4, 5]])
    vector, table = torch.rand(1, 8), model.values.embedding.weight
    expected = torch.stack([table[3], table[4] + table[5]]) @ vector[0]
    torch.testing.assert_close(model.output(vector, table)[0], expected)
    check_model(model, torch.randint(9, (4, 5, 3)), torch.randint(9, (4, 4)))
    with pytest.raises(ValueRangeError, match="tie_output needs the tokens of all 2 answers"):
        spec.build(vocabulary=9, num_answers=2)


def test_a_matcher_has_a_tree_over_each_text() -> None:
    encoder = WordEncoderSpec(
        embedding_size=4, self_attention=SyntacticSpec(), states=RecurrentSpec(hidden_size=3)
    )
    model = DecomposableAttentionSpec(encoder=encoder).build(vocabulary=9, num_classes=3).eval()
    assert isinstance(model.encoder, SelfAttentiveEncoder)
    tree = model.encoder.attend(torch.randint(9, (2, 5))).distribution
    assert isinstance(tree, ProjectiveTree)
    matched = model(torch.randint(9, (2, 5)), None, torch.randint(9, (2, 3)), None)
    assert matched.second.weights.shape == (2, 3, 5)
    torch.testing.assert_close(matched.first.weights.sum(-1), torch.ones(2, 5))


def stories(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Two of three people (1 to 3) hold one of three things (4 to 6) and are in one of three places
    (7 to 9): where is the thing? Two facts answer: who has it, and where this person is.
    """
    people = torch.stack([torch.randperm(3)[:2] for _ in range(count)]) + 1
    things = torch.stack([torch.randperm(3)[:2] for _ in range(count)]) + 4
    places = torch.randint(7, 10, (count, 2))
    facts = torch.stack([torch.stack([people, things], -1), torch.stack([people, places], -1)], 1)
    facts = facts.flatten(1, 2)  # has, has, is in, is in
    which = torch.randint(2, (count,))
    rows = torch.arange(count)
    return facts, things[rows, which].unsqueeze(1), places[rows, which] - 7


@pytest.mark.parametrize("tying", ["layer_wise", "adjacent"])
@pytest.mark.parametrize("steps", [SoftStepsSpec(), ChainStepsSpec()])
def test_a_memory_reader_learns_two_steps(
    steps: StepsSpec, tying: Literal["layer_wise", "adjacent"]
) -> None:
    torch.manual_seed(0)
    spec = MemoryNetworkSpec(embedding_size=20, max_facts=4, steps=steps, tying=tying)
    model = spec.build(vocabulary=10, num_answers=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(200):
        facts, question, answers = stories(64)
        answered = model(facts, None, question, None)
        descend(nn.functional.nll_loss(answered.log_probs, answers), optimizer)
    facts, question, answers = stories(200)
    answered = model.eval()(facts, None, question, None)
    assert (answered.log_probs.argmax(-1) == answers).double().mean() > 0.9


def test_errors_say_what_to_do() -> None:
    classifier = ClassifierSpec(encoder=TEXT).build(vocabulary=9, num_classes=2)
    with pytest.raises(ValueRangeError, match="Classifier: tokens must hold tokens 0 to 8, got 9"):
        classifier(torch.full((2, 3), 9))
    matcher = DecomposableAttentionSpec().build(vocabulary=9, num_classes=2)
    with pytest.raises(ValueRangeError, match="second must hold tokens 0 to 8, got 10"):
        matcher(torch.zeros(2, 3).long(), None, torch.full((2, 3), 10), None)
    reader = MemoryNetworkSpec(max_facts=3).build(vocabulary=9, num_answers=2)
    with pytest.raises(ShapeError, match=r"at most 3 facts, got 5.*max_facts=5"):
        reader(torch.zeros(2, 5, 3).long(), None, torch.zeros(2, 3).long(), None)
    with pytest.raises(ValueRangeError, match="num_classes must be at least 1, got 0"):
        ClassifierSpec().build(vocabulary=9, num_classes=0)
    pooling = SoftmaxSpec(scorer=AdditiveSpec(hidden_size=0))
    with pytest.raises(SpecError, match=r"pooling.scorer.hidden_size: .*got 0"):
        ClassifierSpec(pooling=pooling).build(vocabulary=9, num_classes=2)
    words = TextEncoderSpec(self_attention=SoftmaxSpec())
    with pytest.raises(ValueRangeError, match=r"Set words\.self_attention to none"):
        DocumentEncoderSpec(words=words).build(9)
    with pytest.raises(ValueRangeError, match="at least one stage"):
        ImageEncoderSpec(sizes=()).build()
