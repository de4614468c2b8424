"""Distortion of images in training: no ink is lost, all frames of a clip get the same distortion, and
prediction applies none.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from foveal.data import InMemory
from foveal.tasks import DistortionSpec
from foveal.tasks.pictures._distortion import _origins, distorted
from foveal.tasks.pictures._pictures import Seen
from tests.tasks.pictures import BARS, bars

NOTHING = DistortionSpec(turn=0.0, slant=0.0, stretch=0.0, shrink=0.0, waves=0.0)


def page(height: int, width: int, *, frames: tuple[int, ...] = ()) -> Seen:
    """Place a filled frame of a given size in a larger batch, a hundred times."""
    mask = torch.zeros(100, *frames, 40, 120, dtype=torch.bool)
    mask[..., :height, :width] = True
    return Seen(mask.unsqueeze(-3).float(), mask)


def test_by_nothing_it_is_the_same() -> None:
    torch.manual_seed(0)
    pictures = torch.rand(3, 1, 40, 120)
    mask = torch.zeros(3, 40, 120, dtype=torch.bool)
    mask[0], mask[1, :30, :50], mask[2, :7, :120] = True, True, True
    seen = Seen(pictures * mask.unsqueeze(1), mask)
    torch.testing.assert_close(distorted(seen, NOTHING).pictures, seen.pictures)


@pytest.mark.parametrize("name", ["turn", "slant", "stretch", "shrink", "waves"])
def test_each_of_them_bends(name: str) -> None:
    torch.manual_seed(0)
    seen = Seen(torch.rand(1, 1, 40, 120), torch.ones(1, 40, 120, dtype=torch.bool))
    bent = distorted(seen, replace(NOTHING, **{name: 0.5}))
    assert not torch.allclose(bent.pictures, seen.pictures, atol=1e-3)
    assert torch.equal(bent.mask, seen.mask)


@pytest.mark.parametrize("spec", [DistortionSpec(), DistortionSpec(turn=30.0)])
@pytest.mark.parametrize("size", [(40, 120), (12, 110), (40, 9)])
def test_the_corners_stay_in_the_frame(spec: DistortionSpec, size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    height, width = size
    real = torch.tensor([[width, height]] * 100, dtype=torch.float64)
    origins = _origins(real, (40, 120), spec, torch.ones(100, dtype=torch.float64))
    first, right, below = origins[:, 0, 0], origins[:, 0, 1], origins[:, 1, 0]
    back = torch.stack([right - first, below - first], -1)
    corners = torch.tensor([[0, 0], [width, 0], [0, height], [width, height]]).double() - 0.5
    moved = torch.linalg.solve(back, (corners - first.unsqueeze(1)).mT).mT  # (100, 4, 2)
    sides = torch.tensor([width, height]) - 0.5
    assert moved.min() > -0.5 - 1e-9
    assert (moved < sides + 1e-9).all()
    assert (moved.amax(1) - moved.amin(1)).amin(0).max() > 2  # and it does not collapse


def test_what_fills_a_batch_stays_empty() -> None:
    torch.manual_seed(0)
    seen = page(20, 60)
    assert not distorted(seen, DistortionSpec(waves=4.0)).pictures[~seen.mask.unsqueeze(1)].any()


def test_frames_of_a_clip_are_bent_alike() -> None:
    torch.manual_seed(0)
    seen = page(30, 90, frames=(3,))
    bent = distorted(seen, DistortionSpec()).pictures
    assert torch.equal(bent[:, 0], bent[:, 2])
    assert not torch.equal(bent[0], bent[1])


def test_only_what_is_learnt_from_is_bent(tmp_path: Path) -> None:
    examples = bars(tmp_path, 6)
    task = replace(BARS, distortion=DistortionSpec()).build_from(examples)
    (batch,) = task.batches(InMemory(tuple(examples)), batch_size=6)
    task.model.train()
    torch.manual_seed(0)
    first, second = task.loss(batch).total, task.loss(batch).total
    torch.manual_seed(0)
    again = task.loss(batch).total
    assert first != second
    assert first == again  # a resumed run draws the same
    task.model.eval()
    assert task.loss(batch).total == task.loss(batch).total
