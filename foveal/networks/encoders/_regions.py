"""Regions of a grid: one vector of an image that keeps the location of its features.

    v = [v_11; ...; v_nn],   v_ij = the largest of each feature over the cells of region i, j of n x n

The mean over a whole grid mixes features of different positions, and small objects contribute little to it
(He et al. 2014, spatial pyramid pooling, with one level). Regions divide the real part of an image, so they
do not depend on padding.

Axes: *batch any leading shape, S = h * w cells, V width of a cell, RV of all n * n regions.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...attention import Memory


def region_maxima(memory: Memory, across: int) -> Float[Tensor, "*batch RV"]:
    """Compute the maximum of each feature in `across` x `across` regions, concatenated.

    The maximum of a region without a cell is 0.

    Args:
        memory: Memory with a grid layout.
        across: Number of regions in each direction.

    Returns:
        The maxima of all regions, row by row.

    Examples:
        >>> from foveal.attention import grid_memory
        >>> region_maxima(grid_memory(torch.arange(8.0).reshape(1, 2, 4, 1)), 2)
        tensor([[1., 3., 5., 7.]])
    """
    values, mask = memory.values, memory.mask
    if mask is None:
        mask = values.new_ones(values.shape[:-1], dtype=torch.bool)
    real = mask.unflatten(-1, (-1, memory.layout.columns or 1))
    row = _parts(real.any(-1), across)
    column = _parts(real.any(-2), across)
    region = (row.unsqueeze(-1) * across + column.unsqueeze(-2)).flatten(-2)
    wide = region.unsqueeze(-1).expand(values.shape)
    least = values.new_full((*values.shape[:-2], across * across, values.shape[-1]), -torch.inf)
    seen = values.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    largest = least.scatter_reduce(-2, wide, seen, "amax")
    return largest.masked_fill(largest == -torch.inf, 0.0).flatten(-2)


def _parts(real: Bool[Tensor, "*batch N"], number: int) -> Int[Tensor, "*batch N"]:
    """Assign each position to one of `number` equal parts of the real positions; 0 on padding."""
    before = real.cumsum(-1) - 1
    return torch.where(real, before * number // real.sum(-1, keepdim=True).clamp(min=1), 0)
