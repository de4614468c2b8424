"""The language model: segments, search, and a text that it learns."""

import pytest
import torch

from foveal.errors import ValueRangeError
from foveal.models import LanguageModel, LanguageModelSpec, detached


def language_model(num_layers: int = 2) -> LanguageModel:
    torch.manual_seed(0)
    spec = LanguageModelSpec(embedding_size=5, hidden_size=6, num_layers=num_layers)
    return spec.build(vocabulary=9)


def test_a_text_in_pieces_is_the_text() -> None:
    model, tokens = language_model().eval(), torch.randint(9, (3, 8))
    targets = torch.randint(9, (3, 8))
    whole = model.score(tokens, targets)
    first = model.score(tokens[:, :3], targets[:, :3])
    rest = model.score(tokens[:, 3:], targets[:, 3:], state=first.state)
    torch.testing.assert_close(torch.cat([first.loss, rest.loss], 1), whole.loss)


def test_a_detached_state_ends_the_gradient() -> None:
    model, tokens = language_model(), torch.randint(9, (3, 8))
    state = model.score(tokens, tokens).state
    assert state.layers[0].hidden.requires_grad
    cut = detached(state)
    assert not any(part.hidden.requires_grad for part in cut.layers)
    assert torch.equal(cut.layers[1].hidden, state.layers[1].hidden)
    assert cut.layers[1].cell is not None
    assert not cut.layers[1].cell.requires_grad
    model.score(tokens, tokens, state=cut).loss.sum().backward()


def test_a_search_steps_through_the_same_probabilities() -> None:
    model, tokens = language_model().eval(), torch.randint(9, (3, 4))
    stepper, state = model.stepper(), model.start(3)
    for t in range(4):
        state, log_probs, weights = stepper.step(state, tokens[:, t : t + 1])
        torch.testing.assert_close(log_probs[:, 0], model(tokens).log_probs[:, t])
        assert weights is None


def test_it_learns_what_comes_next() -> None:
    """In a walk around a circle, every token except the first is certain."""
    torch.manual_seed(0)
    model = language_model(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for _ in range(60):
        tokens = (torch.randint(9, (32, 1)) + torch.arange(6)) % 9
        loss = model.score(tokens[:, :-1], tokens[:, 1:]).loss.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    tokens = (torch.arange(9).unsqueeze(1) + torch.arange(12)) % 9  # longer than any training text
    assert (model(tokens[:, :-1]).log_probs.argmax(-1) == tokens[:, 1:]).double().mean() > 0.95


def test_errors_say_what_to_do() -> None:
    model, tokens = language_model(), torch.full((2, 3), 9)
    with pytest.raises(ValueRangeError, match="tokens must hold tokens 0 to 8, got 9"):
        model(tokens)
    with pytest.raises(ValueRangeError, match="targets must hold tokens 0 to 8, got 9"):
        model.score(tokens - 1, tokens)
    with pytest.raises(
        ValueRangeError, match="Set embedding_size to 256, or tie_embeddings to false"
    ):
        LanguageModelSpec(tie_embeddings=True).build(vocabulary=9)
