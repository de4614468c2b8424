"""CTC decoding finds the most probable texts, with the probabilities of the alignment distribution."""

from itertools import product

import pytest
import torch

from foveal.distributions import Alignment
from foveal.errors import ValueRangeError
from foveal.tasks.speech._ctc_search import ctc_beam_search


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("blank", [0, 2])
def test_a_large_beam_finds_all_texts_with_their_probabilities(seed: int, blank: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    log_probs = torch.randn(4, 3, generator=generator).double().mul(2).log_softmax(-1)
    found = ctc_beam_search(log_probs, beam_size=100, blank=blank)
    tokens = [token for token in range(3) if token != blank]
    texts = [text for size in range(1, 5) for text in product(tokens, repeat=size)]
    expected = {
        text: Alignment.ctc(log_probs, torch.tensor(text), blank=blank).log_partition().item()
        for text in texts
    }
    expected[()] = log_probs[:, blank].sum().item()
    possible = {text: value for text, value in expected.items() if value > -1e9}
    assert {each.labels for each in found} == set(possible)
    for each in found:
        assert each.log_prob == pytest.approx(possible[each.labels], abs=1e-9)
    ranked = sorted(possible.values(), reverse=True)
    assert [each.log_prob for each in found] == pytest.approx(ranked, abs=1e-9)
    assert sum(torch.tensor(each.log_prob).exp().item() for each in found) == pytest.approx(1.0)


def test_the_best_text_may_differ_from_the_text_of_the_best_path() -> None:
    log_probs = torch.tensor([[0.6, 0.4], [0.6, 0.4]]).log()
    assert ctc_beam_search(log_probs)[0].labels == (1,)  # 0.64 in three paths; two blanks have 0.36


def test_a_beam_of_one_follows_the_best_prefix() -> None:
    log_probs = torch.tensor([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]).log()
    (best,) = ctc_beam_search(log_probs, beam_size=1)
    assert best.labels == (1, 1)


def test_a_beam_needs_room() -> None:
    with pytest.raises(ValueRangeError, match="beam_size must be at least 1, got 0"):
        ctc_beam_search(torch.zeros(2, 3), beam_size=0)
