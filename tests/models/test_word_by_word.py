"""Models that read one text with another: they equal the equations of their papers, and learn."""

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import AdditiveScorer
from foveal.models import AttentiveReaderSpec, TextEncoderSpec, WordByWordSpec


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def test_word_by_word_attention_equals_a_loop_over_the_equations() -> None:
    """Rocktäschel et al. 2016, equations 11 to 14, with the weights of the model."""
    model = WordByWordSpec(embedding_size=4, hidden_size=5).build(vocabulary=9, num_classes=3)
    model.eval()
    premise, hypothesis = torch.randint(9, (6,)), torch.randint(9, (3,))
    first, second = (layer.cells_in_order()[0] for layer in (model.first, model.second))
    state, outputs = first.start([]), []
    for token in premise:
        state = first(model.embedding(token), state)
        outputs.append(state.hidden)
    y, r = torch.stack(outputs), torch.zeros(5)
    assert model.attention is not None
    assert model.carry is not None
    assert model.join is not None
    scorer, rows = model.attention.scorer, []
    assert isinstance(scorer, AdditiveScorer)
    keys = scorer.remember(y)
    for token in hypothesis:
        state = second(model.embedding(token), state)
        (scores,) = scorer(torch.cat([state.hidden, r]).unsqueeze(0), keys)
        weights = scores.squeeze(0).softmax(-1)
        r = weights @ y + torch.tanh(model.carry.weight @ r)
        rows.append(weights)
    joined = torch.tanh(model.join.weight @ torch.cat([r, state.hidden]))
    expected = model.output(joined).log_softmax(-1)
    found = model(premise.unsqueeze(0), None, hypothesis.unsqueeze(0), None)
    torch.testing.assert_close(found.log_probs[0], expected)
    assert found.weights is not None
    torch.testing.assert_close(found.weights[0], torch.stack(rows))


def test_an_earlier_reading_changes_a_later_one() -> None:
    """The recurrent vector r carries the first reading to the second: without it, the weights differ."""
    model = WordByWordSpec(embedding_size=4, hidden_size=5).build(vocabulary=9, num_classes=3)
    model.eval()
    pair = torch.randint(9, (1, 6)), None, torch.randint(9, (1, 2)), None
    before = model(*pair).weights
    assert model.carry is not None
    with torch.no_grad():
        model.carry.weight.mul_(5.0)
    after = model(*pair).weights
    torch.testing.assert_close(after[:, 0], before[:, 0])  # r is 0 before the first word
    torch.testing.assert_close(after[:, 1], before[:, 1])  # the first r is only a context
    three = torch.randint(9, (1, 6)), None, torch.randint(9, (1, 3)), None
    with torch.no_grad():
        changed = model(*three).weights
        model.carry.weight.zero_()
        assert not torch.allclose(changed[:, 2], model(*three).weights[:, 2])


def test_only_the_state_connects_the_texts_under_conditional_encoding() -> None:
    spec = WordByWordSpec(embedding_size=4, hidden_size=5, readers="nothing")
    model = spec.build(vocabulary=9, num_classes=3).eval()
    second = torch.tensor([[5, 6]])
    found = [model(torch.tensor([[word, 2]]), None, second, None) for word in (3, 4)]
    assert found[0].weights is None
    assert not torch.allclose(found[0].log_probs, found[1].log_probs)


def test_the_attentive_reader_equals_its_equations() -> None:
    spec = AttentiveReaderSpec(encoder=TextEncoderSpec(embedding_size=4, hidden_size=3))
    model = spec.build(vocabulary=9, num_classes=4).eval()
    document, question = torch.randint(9, (1, 7)), torch.randint(9, (1, 3))
    y, u = model.encoder(document).values[0], model.encoder(question).summary[0]
    assert model.attention is not None
    (scores,) = model.attention.scorer(u.unsqueeze(0), model.attention.scorer.remember(y))
    weights = scores.squeeze(0).softmax(-1)
    joined = torch.tanh(model.join.weight @ torch.cat([weights @ y, u]))
    found = model(document, None, question, None)
    torch.testing.assert_close(found.log_probs[0], model.output(joined).log_softmax(-1))
    assert found.weights is not None
    torch.testing.assert_close(found.weights[0, 0], weights)


def _documents(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return documents of three entities (1 to 4), each before its property (5 to 8); which entity has the property?"""
    entities = torch.stack([torch.randperm(4)[:3] for _ in range(count)])
    properties = torch.stack([torch.randperm(4)[:3] for _ in range(count)])
    which = torch.randint(3, (count, 1))
    document = torch.stack([entities + 1, properties + 5], -1).flatten(1)
    return document, properties.gather(1, which) + 5, entities.gather(1, which).squeeze(1)


def test_an_attentive_reader_learns_to_find_the_answer() -> None:
    encoder = TextEncoderSpec(embedding_size=16, hidden_size=16, dropout=0.0)
    model = AttentiveReaderSpec(encoder=encoder, hidden_size=16).build(vocabulary=9, num_classes=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        document, question, answers = _documents(64)
        loss = nn.functional.nll_loss(model(document, None, question, None).log_probs, answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    document, question, answers = _documents(200)
    found = model.eval()(document, None, question, None)
    assert (found.log_probs.argmax(-1) == answers).double().mean() > 0.9
