"""A pyramidal encoder joins neighbors, ignores padding, and treats every item alone."""

import pytest
import torch
from torch import nn

from foveal.errors import ShapeError, ValueRangeError
from foveal.models import PyramidalEncoderSpec
from foveal.networks import PyramidalEncoder, recurrent_stack


def small(**settings: object) -> PyramidalEncoder:
    torch.manual_seed(0)
    spec = PyramidalEncoderSpec(hidden_size=3, factors=(2, 3), **settings)  # type: ignore[arg-type]
    return spec.build(4).eval()


@pytest.mark.parametrize(("frames", "positions"), [(1, 1), (6, 1), (7, 2), (12, 2), (13, 3)])
def test_positions_are_frames_by_the_product_of_factors(frames: int, positions: int) -> None:
    memory = small()(torch.randn(2, frames, 4))
    assert memory.values.shape == (2, positions, 6)
    assert memory.summary is not None
    assert memory.summary.shape == (2, 6)


def test_the_first_level_reads_neighbors_joined() -> None:
    layer = recurrent_stack(2 * 4, 3)
    frames = torch.randn(2, 6, 4)
    memory = PyramidalEncoder([layer], factors=(2,))(frames)
    joined = torch.cat([frames[:, 0::2], frames[:, 1::2]], -1)
    assert torch.equal(memory.values, layer(joined).outputs)


def test_padding_changes_nothing_even_if_it_is_not_a_number() -> None:
    encoder, frames = small(), torch.randn(1, 8, 4)
    alone = encoder(frames, torch.ones(1, 8, dtype=torch.bool))
    padded = torch.cat([frames, torch.full((1, 10, 4), torch.nan)], 1)
    mask = torch.arange(18)[None] < 8
    memory = encoder(padded, mask)
    assert memory.mask is not None
    assert memory.mask.tolist() == [[True, True, False]]
    assert torch.allclose(memory.values[:, :2], alone.values, atol=1e-6)
    assert (memory.values[:, 2] == 0).all()


def test_gradients_reach_every_weight() -> None:
    encoder = small().train()
    encoder(torch.randn(2, 12, 4)).values.square().sum().backward()
    assert all(weight.grad is not None for weight in encoder.parameters())


def test_widths_and_factors_must_fit() -> None:
    layers = [recurrent_stack(8, 3), recurrent_stack(7, 3)]
    with pytest.raises(ShapeError, match="layer 1 must have input_size 6, got 7"):
        PyramidalEncoder(layers, factors=(2, 2))
    with pytest.raises(ShapeError, match="positive factor for each layer"):
        PyramidalEncoder(layers, factors=(2,))
    with pytest.raises(ValueRangeError, match="factors must name at least one level"):
        PyramidalEncoderSpec(factors=()).build(4)
    assert isinstance(small(), nn.Module)
