"""Batch normalization over the real positions of a batch.

    training    y = ( x - mean ) / sqrt( var + e ) * a + b         over all positions of all images
    inference   the same formula, with running averages of mean and var

Most of a page is blank. Layer normalization gives a blank position the same scale as a position with ink;
batch normalization keeps blank positions near 0, so even a mean over the grid shows the ink. Training
depends on the batch; inference is bit-identical for every batch.

Axes: B images, C channels, h and w height and width.
Reference: Ioffe and Szegedy 2015.
"""

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import batch_norm

_EPSILON = 1e-5
_MOMENTUM = 0.1  # weight of the newest batch in the running averages


@final
class BatchNorm(nn.Module):
    """Batch normalization that ignores masked positions.

    Args:
        size: Number of channels.

    Examples:
        >>> norm = BatchNorm(3)
        >>> y = norm(5 + torch.randn(4, 3, 8, 8))
        >>> bool((y.mean((0, 2, 3)).abs() < 1e-4).all()), norm.training
        (True, True)
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))

    def forward(
        self, features: Float[Tensor, "B C h w"], real: Bool[Tensor, "B h w"] | None = None
    ) -> Float[Tensor, "B C h w"]:
        """Normalize the features in float32, for any input dtype.

        Args:
            features: Values of all positions.
            real: True on real positions; None if all positions are real.

        Returns:
            The normalized features, in their dtype.
        """
        if not self.training:
            normed = self._at_rest(features.float())
        elif real is not None:
            normed = self._of_real(features.float(), real.unsqueeze(1).float())
        else:
            normed = batch_norm(
                features.float(),
                self.mean,
                self.variance,
                self.weight,
                self.bias,
                training=True,
                momentum=_MOMENTUM,
                eps=_EPSILON,
            )
        return normed.to(features.dtype)

    def _at_rest(self, features: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        scale = self.weight.float() * torch.rsqrt(self.variance.float() + _EPSILON)
        shift = self.bias.float() - self.mean.float() * scale
        return features * scale[:, None, None] + shift[:, None, None]

    def _of_real(
        self, features: Float[Tensor, "B C h w"], real: Float[Tensor, "B 1 h w"]
    ) -> Float[Tensor, "B C h w"]:
        # An empty mask has nothing to average: the running averages do not change.
        momentum = _MOMENTUM * real.amax()
        count = real.sum().clamp(min=1)
        mean = (features * real).sum((0, 2, 3)) / count
        centered = features - mean[:, None, None]
        variance = (centered.square() * real).sum((0, 2, 3)) / count
        with torch.no_grad():
            unbiased = variance * count / (count - 1).clamp(min=1)  # as batch_norm stores it
            self.mean.lerp_(mean, momentum)
            self.variance.lerp_(unbiased, momentum)
        scale = self.weight * torch.rsqrt(variance + _EPSILON)
        return centered * scale[:, None, None] + self.bias[:, None, None]
