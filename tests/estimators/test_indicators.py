"""`indicators` and `tilt`, which the estimators use. The law suite tests their laws."""

import torch

from foveal.distributions import Categorical, LinearChain, Subset


def test_indicators_show_the_parts() -> None:
    mask = torch.tensor([[True, False, True], [True, True, True]])
    chain = LinearChain(torch.zeros(2, 3, 2), torch.zeros(2, 2), mask)
    parts = chain.indicators(torch.tensor([[1, -1, 0], [0, 0, 1]]))
    assert parts[0].tolist() == [[0, 1], [0, 0], [1, 0]]
    assert parts[1].tolist() == [[1, 0], [1, 0], [0, 1]]


def test_sample_axes_are_kept_and_fields_may_have_fewer_axes() -> None:
    mask = torch.ones(4, 3, dtype=torch.bool)
    chain = LinearChain(torch.zeros(3, 2), torch.zeros(2, 2), mask)
    samples = chain.sample((5, 6), generator=torch.Generator().manual_seed(0))
    parts = chain.indicators(samples)
    assert parts.shape == (5, 6, 4, 3, 2)
    assert torch.equal(parts.argmax(-1), samples)
    assert chain.tilt(parts).batch_shape == (5, 6, 4)


def test_what_is_forbidden_or_junk_does_not_matter() -> None:
    mask = torch.tensor([True, True, False])
    choice = Categorical(torch.tensor([-torch.inf, 1.0, torch.nan]), mask)
    assert choice.indicators(torch.tensor([0, 1])).tolist() == [[1, 0, 0], [0, 1, 0]]
    chosen = Subset(torch.tensor([-torch.inf, 1.0, torch.nan]), mask)
    assert chosen.indicators(torch.tensor([True, False, True])).tolist() == [1, 0, 0]


def test_they_work_in_inference_mode_and_carry_no_gradient() -> None:
    scores = torch.zeros(2, 3, requires_grad=True)
    assert not Categorical(scores).indicators(torch.tensor([0, 1])).requires_grad
    with torch.inference_mode():
        choice = Categorical(torch.zeros(2, 3), torch.ones(3, dtype=torch.bool))
        value = choice.sample(generator=torch.Generator().manual_seed(0))
        assert torch.equal(choice.indicators(value).argmax(-1), value)
