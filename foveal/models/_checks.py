"""Checks of the tensors that callers pass to models, with clear error messages."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from ..errors import ShapeError, ValueRangeError


def check_mask(owner: str, name: str, tokens: Tensor, mask: Tensor | None) -> None:
    """Check that a mask has the shape of its tokens."""
    if mask is not None and mask.shape != tokens.shape:
        raise ShapeError(
            f"{owner}: the mask of {name} must have its shape {tuple(tokens.shape)}, got "
            f"{tuple(mask.shape)}. Make it with mask_from_lengths(lengths, {tokens.shape[-1]})."
        )


def check_axes(owner: str, name: str, tokens: Tensor, *, documents: bool) -> None:
    """Check that the tokens are `(B, S)`, or `(B, n, w)` for an encoder of documents."""
    axes = "(B, n, w)" if documents else "(B, S)"
    if tokens.ndim != axes.count(",") + 1:
        raise ShapeError(
            f"{owner}: {name} must have shape {axes}, got {tuple(tokens.shape)}. An encoder of documents reads "
            f"sentences of words, any other one text for each row."
        )


def check_sizes(owner: str, **sizes: int) -> None:
    """Check that the numbers of tokens, tags and similar sizes of a model are at least 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueRangeError(
                f"{owner}: {name} must be at least 1, got {size}. Pass the length of the vocabulary that "
                f"the model is for."
            )


def check_batch(owner: str, **batches: torch.Size) -> None:
    """Check that all parts have the same leading shape."""
    if len(set(batches.values())) > 1:
        listed = ", ".join(f"{name} {tuple(shape)}" for name, shape in batches.items())
        raise ShapeError(
            f"{owner}: the leading (batch) shapes must be equal, got {listed}. "
            f"Give one row of each for every item of the batch."
        )


@contextmanager
def checked_tokens(owner: str, size: int, mask: Tensor | None, **parts: Tensor) -> Iterator[None]:
    """Report invalid tokens and masks to the caller of a model; wrap the embedding in this context.

    It first compares the mask with the shape of the tokens. If the block fails, it searches the tokens for
    one outside the vocabulary; a block that succeeds has no overhead.

    Args:
        owner: Name of the model, used at the start of error messages.
        size: Number of tokens in the vocabulary.
        mask: True on real tokens; padding may hold any number. None if all tokens are real.
        **parts: Tokens by the names used in error messages.

    Yields:
        Nothing, once the mask is checked.

    Raises:
        ShapeError: If the mask does not have the shape of the tokens.
        ValueRangeError: If a real token is negative, or `size` or more.

    Examples:
        >>> embedding, tokens = torch.nn.Embedding(9, 4), torch.tensor([[3, 9]])
        >>> with checked_tokens("Mine", 9, None, tokens=tokens):
        ...     embedding(tokens)
        Traceback (most recent call last):
        foveal.errors.ValueRangeError: Mine: tokens must hold tokens 0 to 8, got 9. Encode with ...
    """
    for name, tokens in parts.items():
        check_mask(owner, name, tokens, mask)
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
