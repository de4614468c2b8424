"""Dropout equals torch's dropout, except for the random number generator."""

import pytest
import torch

from foveal.errors import ValueRangeError
from foveal.networks._dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_so_many_are_zero_and_the_rest_is_scaled(p: float) -> None:
    torch.manual_seed(0)
    number = 400_001  # not a multiple of the size of one draw
    found = Dropout(p)(torch.ones(number))
    share = (found == 0).double().mean().item()
    error = (p * (1 - p) / number) ** 0.5
    assert abs(share - p) < 4 * error + 1 / 65536
    assert torch.allclose(found[found != 0], torch.tensor(1 / (1 - p)))


def test_neighbors_are_independent() -> None:
    torch.manual_seed(1)
    dropped = (Dropout(0.5)(torch.ones(400_000)) == 0).double() - 0.5
    for distance in (1, 2, 3, 4, 5, 64):
        together = (dropped[distance:] * dropped[:-distance]).mean().item() / 0.25
        assert abs(together) < 4 / 400_000**0.5, distance


def test_the_gradient_is_that_of_what_was_kept() -> None:
    values = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    found = Dropout(0.4)(values)
    found.sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(values.grad, torch.where(found == 0, 0.0, found / values).detach())


def test_the_seed_decides_and_shapes_and_kinds_stay() -> None:
    layer = Dropout(0.3)
    for kind in (torch.float32, torch.float64, torch.bfloat16):
        for shape in ((), (0,), (3,), (2, 3, 5)):
            drawn = []
            for _ in range(2):
                torch.manual_seed(2)
                drawn.append(layer(torch.ones(shape, dtype=kind)))
            assert torch.equal(drawn[0], drawn[1])
            assert (drawn[0].shape, drawn[0].dtype) == (shape, kind)


def test_nothing_is_dropped_when_nothing_should_be() -> None:
    values = torch.randn(100)
    assert Dropout(0.5).eval()(values) is values
    assert Dropout(0.0)(values) is values
    assert not Dropout(1.0)(values).any()
    with pytest.raises(ValueRangeError, match=r"p must be a probability, got 1\.5"):
        Dropout(1.5)
