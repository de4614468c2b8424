"""Argument checks that all distributions share."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack

from ..errors import ImpossibleError, NonFiniteError, ShapeError, TransformError, ValueRangeError
from ..shapes import join_batch_shapes

_CHECKS_VALUES: ContextVar[bool] = ContextVar("checks_values", default=True)


def check_scores(owner: str, name: str, scores: Tensor, axes: str) -> None:
    """Check log-potentials: a floating-point tensor with at least the named axes, none of size 0."""
    names = axes.split()
    if not scores.is_floating_point():
        raise ShapeError(
            f"{owner}: {name} must hold floating-point log-potentials, got {scores.dtype}. "
            f"Convert with {name}.float()."
        )
    event = scores.shape[scores.ndim - len(names) :] if scores.ndim >= len(names) else None
    if event is None or 0 in event:
        raise ShapeError(
            f"{owner}: {name} must have shape (..., {', '.join(names)}) with sizes of at least 1, "
            f"got {tuple(scores.shape)}. Missing items are given by mask, not by size 0."
        )


def check_sizes(owner: str, name: str, got: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Check the trailing sizes of one argument against the sizes that the other arguments imply."""
    if tuple(got) != expected:
        raise ShapeError(
            f"{owner}: {name} must end in sizes {expected} to fit the other arguments, "
            f"got {tuple(got)}. See the shapes in help({owner})."
        )


def check_mask(owner: str, mask: Tensor | None, *event: int) -> None:
    """Check that the mask is boolean, True on real items, and has the same items as the scores."""
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ShapeError(
            f"{owner}: mask must be boolean, True on real items, got {mask.dtype}. "
            f"Convert with mask.bool(), or make one with masking.mask_from_lengths."
        )
    check_sizes(owner, "mask", tuple(mask.shape[mask.ndim - len(event) :]), event)


def masked_batch_shape(owner: str, scores: Tensor, mask: Tensor | None) -> torch.Size:
    """Broadcast the leading shapes of scores and mask, which both have a last axis of items."""
    shapes = {"scores": scores.shape[:-1]}
    if mask is not None:
        shapes["mask"] = mask.shape[:-1]
    return join_batch_shapes(owner, **shapes)


def check_value(
    owner: str,
    value: Tensor,
    event: tuple[int, ...],
    batch: torch.Size,
    *,
    is_boolean: bool,
) -> Tensor:
    """Check the dtype and shape of structures that the user passes, and convert indices to int64."""
    if is_boolean and value.dtype != torch.bool:
        raise ShapeError(
            f"{owner}: a value must be boolean, True on the parts of the structure, got "
            f"{value.dtype}. Convert with value.bool()."
        )
    is_integer = not value.is_floating_point() and value.dtype != torch.bool
    if not is_boolean and not is_integer:
        raise ShapeError(
            f"{owner}: a value must hold integers (indices), got {value.dtype}. Convert with "
            f"value.long()."
        )
    sizes = tuple(value.shape)
    leading, last = sizes[: max(0, len(sizes) - len(event))], sizes[len(sizes) - len(event) :]
    pairs = zip(reversed(leading), reversed(batch), strict=False)
    if len(sizes) < len(event) or last != event or not all(a == b or 1 in (a, b) for a, b in pairs):
        shape = ", ".join(["...", *map(str, event)])
        raise ShapeError(
            f"{owner}: a value must have shape ({shape}), with leading axes that broadcast to the "
            f"batch shape {tuple(batch)}, got {sizes}. Fill short values up to the full size: "
            f"positions that the mask leaves out may hold anything."
        )
    return value if is_boolean else value.long()


def reads_values() -> bool:
    """Return whether Python can read the entries of a tensor.

    It cannot while compiling or under the transforms of `torch.func`.
    """
    return not torch.compiler.is_compiling() and not torch._C._are_functorch_transforms_active()


def checks_values() -> bool:
    """Return whether to check entries: Python can read them, and the caller is not in `without_checks`."""
    return reads_values() and _CHECKS_VALUES.get()


@contextmanager
def without_checks() -> Iterator[None]:
    """Skip checks that read the entries of tensors, within the block and in this thread.

    On a GPU, the host waits for each of these checks. Skip them for arguments that your code makes itself:
    for a value that is not a structure, the result is arbitrary, and an index out of range can end the
    process. If no structure is possible or a score in use is NaN, `argmax` and `sample` return an arbitrary
    value instead of raising an error. Shapes and dtypes are still checked.

    Yields:
        Nothing.

    Examples:
        >>> from foveal.distributions import Categorical
        >>> choice = Categorical(torch.tensor([0.0, 1.0]))
        >>> with without_checks():
        ...     choice.indicators(choice.argmax())
        tensor([0., 1.])
    """
    token = _CHECKS_VALUES.set(False)
    try:
        yield
    finally:
        _CHECKS_VALUES.reset(token)


def refuse_vmap(owner: str) -> None:
    """Raise inside `torch.vmap`, which does not support search and sampling."""
    if torch.compiler.is_compiling():
        return
    levels = get_interpreter_stack() or ()
    if any(level.key() == TransformType.Vmap for level in levels):
        raise TransformError(
            f"{owner}: expected a call outside of torch.vmap, got one inside. Make one distribution "
            f"of the whole batch, which may have any leading shape, and call {owner} on that."
        )


def check_rank(owner: str, k: int) -> None:
    """Check the number of structures that `topk` returns."""
    if k < 1:
        raise ValueRangeError(
            f"{owner}.topk: k must be at least 1, got {k}. Pass k=1 for the best."
        )


def require_numbers(owner: str, log_partition: Tensor) -> None:
    """Raise if log Z is NaN or +inf because of NaN or infinite scores."""
    broken = log_partition.isnan() | (log_partition == torch.inf)
    if not bool(broken.any()):
        return
    raise NonFiniteError(
        f"{owner}: expected scores that are finite or -inf, got NaN or +inf in {int(broken.sum())} "
        f"of {broken.numel()} batch items, the first at index {broken.nonzero()[0].tolist()}. Look "
        f"for a division by 0 or an overflow in what computes the scores; to forbid a part, set "
        f"its score to -inf."
    )


def require_possible(owner: str, possible: Tensor) -> None:
    """Raise if `argmax` or `sample` has no structure to return (not checked while compiling)."""
    if not checks_values() or bool(possible.all()):
        return
    first = (~possible).nonzero()[0].tolist()
    raise ImpossibleError(
        f"{owner}: expected at least one structure of finite score in every batch item, got none "
        f"in {int((~possible).sum())} of {possible.numel()}, the first at index {first}. Find "
        f"them with log_partition() == -inf; a row of -inf, or a mask that leaves nothing, "
        f"is the usual cause."
    )


def require_labels(owner: str, labels: Tensor, real: Tensor | None, num_states: int) -> None:
    """Raise if the label of a real position is not a state (not checked while compiling)."""
    if not checks_values():
        return
    outside = (labels < 0) | (labels >= num_states)
    if real is not None:
        outside = outside & real
    if bool(outside.any()):
        raise ValueRangeError(
            f"{owner}: labels of real positions must be in 0..{num_states - 1}, got "
            f"{labels[outside][0].item()} at index {outside.nonzero()[0].tolist()}. "
            f"Padding may hold anything; mask out positions without a label."
        )
