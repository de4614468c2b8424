"""What a caller can get wrong in the tensors of a model, said in words."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from ..errors import ShapeError, ValueRangeError


def check_mask(owner: str, name: str, tokens: Tensor, mask: Tensor | None) -> None:
    """A mask has the shape of its tokens."""
    if mask is not None and mask.shape != tokens.shape:
        raise ShapeError(
            f"{owner}: the mask of {name} must have its shape {tuple(tokens.shape)}, got "
            f"{tuple(mask.shape)}. Make it with mask_from_lengths(lengths, {tokens.shape[-1]})."
        )


def check_sizes(owner: str, **sizes: int) -> None:
    """The numbers of tokens, tags and the like that a model is built for are at least 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueRangeError(
                f"{owner}: {name} must be at least 1, got {size}. Pass the length of the vocabulary that "
                f"the model is for."
            )


def check_batch(owner: str, **batches: torch.Size) -> None:
    """Parts have one leading shape."""
    if len(set(batches.values())) > 1:
        listed = ", ".join(f"{name} {tuple(shape)}" for name, shape in batches.items())
        raise ShapeError(
            f"{owner}: the leading (batch) shapes must be equal, got {listed}. "
            f"Give one row of each for every item of the batch."
        )


@contextmanager
def tokens_below(owner: str, size: int, mask: Tensor | None, **parts: Tensor) -> Iterator[None]:
    """Where a look-up fails, say which token is none of the vocabulary's. Costs nothing where none
    fails; what stands on padding is looked up by nobody.
    """
    try:
        yield
    except (IndexError, RuntimeError) as error:
        for name, tokens in parts.items():
            real = tokens if mask is None else torch.where(mask, tokens, 0)
            outside = real[(real < 0) | (real >= size)]
            if len(outside):
                raise ValueRangeError(
                    f"{owner}: {name} must hold tokens 0 to {size - 1}, got {outside[0].item()}. "
                    f"Encode with the vocabulary that the model was built for, or build it for "
                    f"a larger one."
                ) from error
        raise
