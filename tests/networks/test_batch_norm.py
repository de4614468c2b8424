"""Batch norm equals torch's without a mask; with a mask it uses the statistics of real positions
only.
"""

import torch
from torch import nn

from foveal.networks import FramesEncoder, ImageEncoder, recurrent_stack
from foveal.networks.encoders._batch_norm import BatchNorm

assert_near = torch.testing.assert_close


def test_without_a_mask_it_is_torchs() -> None:
    torch.manual_seed(0)
    ours, theirs = BatchNorm(3), nn.BatchNorm2d(3)
    batches = 2 + torch.randn(3, 4, 3, 5, 6)
    for features in batches:
        assert_near(ours(features), theirs(features))
    assert_near(ours.mean, theirs.running_mean)
    assert_near(ours.variance, theirs.running_var)
    ours.eval()
    theirs.eval()
    assert_near(ours(batches[0]), theirs(batches[0]))


def test_with_a_mask_it_is_that_of_the_real_places() -> None:
    torch.manual_seed(1)
    features, real = torch.randn(4, 3, 5, 6), torch.rand(4, 5, 6) < 0.6
    features[~real.unsqueeze(1).expand_as(features)] = 1e3
    masked, packed = BatchNorm(3), nn.BatchNorm1d(3)
    features.requires_grad_()
    found = masked(features, real).movedim(1, -1)[real]
    among_real = features.detach().movedim(1, -1)[real].requires_grad_()
    expected = packed(among_real)
    assert_near(found, expected)
    assert_near(masked.mean, packed.running_mean)
    assert_near(masked.variance, packed.running_var)
    weights = torch.randn_like(expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert features.grad is not None
    assert_near(features.grad.movedim(1, -1)[real], among_real.grad)
    assert not features.grad.movedim(1, -1)[~real].any()
    assert_near(masked.weight.grad, packed.weight.grad)


def test_an_empty_mask_leaves_the_running_means_as_they_are() -> None:
    torch.manual_seed(5)
    norm = BatchNorm(3)
    norm(torch.randn(4, 3, 5, 6))
    mean, variance = norm.mean.clone(), norm.variance.clone()
    features = torch.randn(4, 3, 5, 6, requires_grad=True)
    normed = norm(features, torch.zeros(4, 5, 6, dtype=torch.bool))
    assert normed.isfinite().all()
    (gradient,) = torch.autograd.grad(normed.sum(), features)
    assert gradient.isfinite().all()
    assert torch.equal(norm.mean, mean)
    assert torch.equal(norm.variance, variance)


def test_an_image_whose_real_pixels_the_strides_skip_can_be_learned_from() -> None:
    encoder = ImageEncoder(1, sizes=(3, 4), norm="batch")
    mask = torch.zeros(1, 8, 8, dtype=torch.bool)
    mask[0, 1, 1] = True
    encoder(torch.randn(1, 1, 8, 8), mask)
    assert all(buffer.isfinite().all() for buffer in encoder.buffers())


def test_frames_that_are_padding_are_not_counted() -> None:
    torch.manual_seed(4)
    clip = torch.randn(1, 3, 1, 8, 8)
    padded = torch.cat([clip, torch.full((1, 2, 1, 8, 8), 1e3)], 1)
    images = ImageEncoder(1, sizes=(3, 4), norm="batch")
    encoder = FramesEncoder(images, recurrent_stack(4, 5))
    (norm,) = images.norms
    assert isinstance(norm, BatchNorm)
    means = list[torch.Tensor]()
    for frames, mask in ((clip, None), (padded, torch.arange(5)[None] < 3)):
        norm.mean.zero_()
        encoder(frames, mask)
        means.append(norm.mean.clone())
    assert_near(means[1], means[0])


def test_an_answer_does_not_depend_on_the_batch_to_the_last_bit() -> None:
    torch.manual_seed(2)
    norm = BatchNorm(4)
    norm(torch.randn(8, 4, 3, 3))
    norm.eval()
    features = torch.randn(5, 4, 3, 3)
    assert torch.equal(norm(features)[:1], norm(features[:1]))


def test_half_precision_comes_back_as_it_was_given() -> None:
    torch.manual_seed(3)
    norm = BatchNorm(4)
    norm(torch.randn(8, 4, 3, 3))
    features = torch.randn(2, 4, 3, 3)
    expected = norm.eval()(features)
    found = norm.bfloat16()(features.bfloat16())
    assert found.dtype == torch.bfloat16
    assert_near(found.float(), expected, rtol=0.02, atol=0.02)
