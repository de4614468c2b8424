"""Max pooling over the regions of a grid."""

import pytest
import torch

from foveal.attention import grid_memory
from foveal.errors import ValueRangeError
from foveal.models import FramesEncoderSpec
from foveal.models.parts._vision_specs import VectorFrameSpec
from foveal.networks import ImageEncoder
from foveal.networks.encoders._regions import region_maxima


def test_regions_are_read_apart() -> None:
    grid = torch.randn(2, 4, 6, 3)
    expected = torch.stack(
        [grid[:, r : r + 2, c : c + 3].amax((1, 2)) for r in (0, 2) for c in (0, 3)], dim=1
    )
    torch.testing.assert_close(region_maxima(grid_memory(grid), 2), expected.flatten(1))


def test_what_surrounds_an_image_changes_no_bit() -> None:
    torch.manual_seed(1)
    encoder, image = ImageEncoder(1, sizes=(4,)), torch.randn(1, 1, 10, 14)
    alone = region_maxima(encoder(image, torch.ones(1, 10, 14, dtype=torch.bool)), 3)
    wide, mask = torch.full((2, 1, 16, 22), 9.0), torch.zeros(2, 16, 22, dtype=torch.bool)
    wide[:1, :, :10, :14], mask[:1, :10, :14], mask[1] = image, True, True
    assert region_maxima(encoder(wide, mask), 3)[:1].equal(alone)


def test_more_regions_than_cells_leave_some_empty() -> None:
    means = region_maxima(grid_memory(torch.ones(1, 1, 2, 1)), 2)
    assert means.tolist() == [[1.0, 1.0, 0.0, 0.0]]


def test_vectors_have_no_regions() -> None:
    spec = FramesEncoderSpec(frame=VectorFrameSpec(input_size=3), regions=2)
    with pytest.raises(ValueRangeError, match="regions are parts of an image, got 2"):
        spec.build()
