"""The names of tensor axes, and functions that broadcast and flatten leading batch shapes.

    *batch   any leading shape         B   the leading shape flattened to one axis
    T        positions                 K   states of a position
    S        samples                   k   ranks of an n-best list

Functions of `inference` take exactly one leading axis B; distributions take any leading
shape and flatten it on the way in with the functions below.
"""

import torch
from torch import Tensor

from .errors import ShapeError


def join_batch_shapes(owner: str, **parts: torch.Size) -> torch.Size:
    """Broadcast named leading shapes to one.

    Args:
        owner: Name that the error message starts with.
        **parts: Leading shape of each argument, by its name.

    Returns:
        The joint shape.

    Raises:
        ShapeError: The shapes do not broadcast.

    Examples:
        >>> join_batch_shapes("LinearChain", unary=torch.Size([4, 1]), mask=torch.Size([3]))
        torch.Size([4, 3])
    """
    shapes = set(parts.values())
    if len(shapes) == 1:
        return shapes.pop()
    try:
        return torch.broadcast_shapes(*shapes)
    except RuntimeError:
        listed = ", ".join(f"{name} {tuple(shape)}" for name, shape in parts.items())
        raise ShapeError(
            f"{owner}: leading (batch) shapes must broadcast, got {listed}. "
            f"Expected equal sizes or 1 on every leading axis; insert axes with unsqueeze."
        ) from None


def flatten_batch(tensor: Tensor, batch: torch.Size, num_event_axes: int) -> Tensor:
    """Broadcast the leading shape to `batch` and flatten it: (*batch, *event) -> (B, *event).

    Args:
        tensor: Tensor whose leading shape broadcasts to `batch`.
        batch: Batch shape.
        num_event_axes: Number of last axes that are not batch axes.

    Returns:
        Tensor with one batch axis.
    """
    if len(batch) == 1 and tensor.shape[: tensor.ndim - num_event_axes] == batch:
        return tensor  # most calls end here, and even a view that changes nothing costs time
    event = tensor.shape[tensor.ndim - num_event_axes :]
    return tensor.expand(*batch, *event).reshape(batch.numel(), *event)


def restore_batch(tensor: Tensor, batch: torch.Size) -> Tensor:
    """Undo `flatten_batch`: (B, *event) -> (*batch, *event).

    Args:
        tensor: Tensor with one batch axis.
        batch: Batch shape.

    Returns:
        Tensor with the axes of `batch` instead of the first axis.
    """
    return tensor if len(batch) == 1 else tensor.reshape((*batch, *tensor.shape[1:]))
