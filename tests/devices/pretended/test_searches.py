"""Every search waits for the device at most once in a step."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch

from foveal.decoding import (
    Stepper,
    allowed_tokens,
    beam_search,
    greedy,
    sample,
    stochastic_beam_search,
)
from foveal.models import LanguageModelSpec
from tests.devices.pretend import Pretended, pretending

MAKING_TABLES = 3  # waits of the first step with an automaton


def rules() -> dict[str, Any]:
    allowed = allowed_tokens([3, 4, 5, 6], num_tokens=9, end=2).to("cuda")
    return {"no_repeat_ngram": 2, "min_length": 3, "constraints": [allowed]}


SEARCHES: dict[str, tuple[Any, Callable[[], dict[str, Any]]]] = {
    "greedy": (greedy, dict),
    "greedy with rules": (greedy, rules),
    "beam": (beam_search, lambda: {"beam_size": 3}),
    "beam with rules": (beam_search, lambda: {"beam_size": 3, **rules()}),
    "sample": (sample, lambda: {"num_samples": 3, "top_p": 0.9}),
    "stochastic beam": (stochastic_beam_search, lambda: {"num_samples": 3}),
}


class Counted:
    """A stepper that notes the number of waits before each step."""

    def __init__(self, stepper: Stepper, device: Pretended) -> None:
        self._stepper, self._device = stepper, device
        self.num_tokens = stepper.num_tokens
        self.at: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stepper, name)

    def step(self, state: Any, tokens: Any) -> Any:
        self.at.append(self._device.waits.total())
        return self._stepper.step(state, tokens)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_step_of_a_search_waits_at_most_once(name: str) -> None:
    torch.manual_seed(0)
    model = LanguageModelSpec(embedding_size=8, hidden_size=8).build(vocabulary=9).eval()
    search, options = SEARCHES[name]
    with pretending() as device:
        model.to("cuda")
        given = {"begin": 1, "end": 2, "max_length": 8, **options()}
        stepper = Counted(model.stepper(), device)
        found = search(stepper, model.start(4), **given)
    assert found.tokens.device.type == "cuda"
    assert len(stepper.at) > 3
    first, *waits = [after - before for before, after in pairwise(stepper.at)]
    assert max(waits) <= 1, device.waits
    assert first <= (MAKING_TABLES if "rules" in name else 1)
