"""Gradients over distance and the flow of states, against networks whose answer is known."""

import math

import pytest
import torch
from torch import Tensor

from foveal.errors import ShapeError
from foveal.inspection import gradient_profile, phase_portrait
from foveal.networks import AbstractCell, CellState, ElmanCell, GRUCell, LSTMCell
from foveal.views import vector_field


def rotation(angle: float, scale: float) -> Tensor:
    cosine, sine = scale * math.cos(angle), scale * math.sin(angle)
    return torch.tensor([[cosine, -sine], [sine, cosine]])


@pytest.mark.parametrize("weight", [0.9, 1.0, 1.1])
def test_one_linear_unit_multiplies_by_its_weight(weight: float) -> None:
    cell = ElmanCell(1, 1).double()
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.fill_(0.0)
        cell.weights.hidden.fill_(weight)
    profile = gradient_profile(cell, torch.zeros(2, 50, 1, dtype=torch.float64))
    assert profile.rate == pytest.approx(weight)
    assert profile.norms[50] == pytest.approx(weight**50)


@pytest.mark.parametrize("kind", [ElmanCell, GRUCell, LSTMCell])
def test_norms_are_those_of_autograd(kind: type[AbstractCell]) -> None:
    torch.manual_seed(0)
    cell = kind(3, 5).double()
    inputs = torch.randn(1, 6, 3, dtype=torch.float64)
    profile = gradient_profile(cell, inputs)
    middle = cell.run(inputs[:, :2], cell.start([1])).state
    parts = [part.detach().requires_grad_() for part in middle if part is not None]
    last = cell.run(inputs[:, 2:], CellState(*parts)).state.hidden
    gradients = torch.autograd.grad(last, parts, torch.full_like(last, 1 / math.sqrt(5)))
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    assert profile.norms[4] == pytest.approx(float(norm))


def test_a_short_sequence_has_no_rate() -> None:
    with pytest.raises(ShapeError, match="at least four positions, got 2 of 3"):
        gradient_profile(ElmanCell(1, 1), torch.zeros(2, 3, 1))


def test_states_shrink_to_the_one_attractor_of_a_contraction() -> None:
    weights = rotation(0.3, 0.8)
    portrait = phase_portrait(lambda states: states @ weights, num_steps=10)
    torch.testing.assert_close(portrait.attractors, torch.zeros(1, 2), atol=1e-3, rtol=0)
    torch.testing.assert_close(portrait.gradient, torch.full_like(portrait.gradient, 0.8**10))


def test_the_middle_of_two_basins_is_no_attractor() -> None:
    portrait = phase_portrait(lambda states: torch.tanh(1.5 * states), side=5)
    assert len(portrait.attractors) == 4
    assert portrait.attractors.abs().min() > 0.5
    middle, corner = portrait.gradient[12], portrait.gradient[0]
    assert middle > 1e4 > 1 > corner


def test_a_cycle_has_no_attractor() -> None:
    weights = rotation(0.5, 1.5)
    portrait = phase_portrait(lambda states: torch.tanh(states @ weights))
    assert portrait.attractors.shape == (0, 2)
    assert "0 marked points" in portrait._repr_svg_()


def test_a_network_of_three_units_has_no_portrait() -> None:
    with pytest.raises(ShapeError, match=r"got \[9, 3\]. Use a network with two units"):
        phase_portrait(lambda states: torch.zeros(len(states), 3), side=3)


def test_points_must_form_a_square() -> None:
    with pytest.raises(ShapeError, match="got 3 points, 3 targets and 3 shades"):
        vector_field([(0.0, 0.0)] * 3, [(0.0, 0.0)] * 3, shades=[0.0] * 3, title="", shade_label="")
