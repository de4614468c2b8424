"""Laws of whole models, which map tensors and their masks to tensors.

Axes: B items of a batch, T positions.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from ._module_laws import assert_near, check_reach, check_undisturbed, junk_in, masks, total


def check_model(
    model: nn.Module,
    *inputs: Tensor,
    result: Callable[[Any], Tensor] = lambda output: output.log_probs,
    aligned: int | None = None,
    empty: bool = True,
) -> None:
    """Check the laws of a model.

    An item gives the same result in any batch and with more padding, for every mask pattern. Arbitrary values in
    padding do not change the result, bit for bit. Gradients reach every parameter, and requests are independent.

    Args:
        model: The model, called as `model(input, mask, input, mask, ...)`.
        *inputs: Batches of at least three items. Tokens `(B, T)` or `(B, n, w)` get every mask pattern; other inputs,
            such as images, are passed without a mask.
        result: A function from the output of the model to a tensor `(B, ...)`.
        aligned: The index of the input whose positions are axis 1 of the result, if there is one. The result is
            undefined where this input is padding.
        empty: Whether an input may be all padding.

    Examples:
        >>> from foveal.models import ClassifierSpec
        >>> classifier = ClassifierSpec().build(vocabulary=9, num_classes=3)
        >>> check_model(classifier, torch.randint(9, (4, 5)))
    """
    model.eval()

    def run(parts: Sequence[Tensor], part_masks: Sequence[Tensor | None]) -> Tensor:
        pairs = zip(parts, part_masks, strict=True)
        return result(model(*chain.from_iterable(pairs)))

    no_masks: list[Tensor | None] = [None] * len(inputs)
    whole = run(inputs, no_masks)
    assert whole.isfinite().all(), "a result is not finite"
    for item in range(len(inputs[0])):
        alone = run([part[item : item + 1] for part in inputs], no_masks)
        assert_near(alone[0], whole[item], "one item alone and in a batch")
    full = run(inputs, [None if _free(part) else torch.ones_like(part) == 1 for part in inputs])
    assert_near(full, whole, "no mask, and one that is all True")
    for number, part in enumerate(inputs):
        for pattern, mask in {} if _free(part) else masks(part.shape).items():
            mask[-1] |= not empty
            one_mask = [mask if other == number else None for other in range(len(inputs))]
            where = aligned == number
            _check_junk(run, inputs, one_mask, mask if where else None, pattern)
            _check_cut(run, inputs, one_mask, number, pattern, aligned=where)
    check_reach(model, total(run(inputs, no_masks)))
    check_undisturbed(
        model,
        lambda: run(inputs, no_masks),
        lambda: run([part.flip(0) for part in inputs], no_masks),
    )


Run = Callable[[Sequence[Tensor], Sequence[Tensor | None]], Tensor]


def _check_junk(
    run: Run,
    inputs: Sequence[Tensor],
    part_masks: Sequence[Tensor | None],
    real: Tensor | None,
    pattern: str,
) -> None:
    """Check that the values of padding do not change real results, bit for bit."""
    clean = run(inputs, part_masks)
    for number, mask in enumerate(part_masks):
        for dirty in [] if mask is None else junk_in(inputs[number], mask):
            found = run([*inputs[:number], dirty, *inputs[number + 1 :]], part_masks)
            if real is not None:
                found, expected = found[real], clean[real]
            else:
                expected = clean
            assert torch.equal(found, expected), f"{pattern}: junk in input {number} is read"


def _check_cut(
    run: Run,
    inputs: Sequence[Tensor],
    part_masks: Sequence[Tensor | None],
    number: int,
    pattern: str,
    *,
    aligned: bool,
) -> None:
    """Check that an item gives the same result with and without its padding."""
    whole, mask = run(inputs, part_masks), part_masks[number]
    assert mask is not None
    for item, real in enumerate(mask):
        rows = real if real.ndim == 1 else real.any(-1)
        if rows.any():
            parts = [part[item : item + 1] for part in inputs]
            parts[number] = parts[number][:, rows]
            cut: list[Tensor | None] = [None] * len(inputs)
            cut[number] = real[rows].unsqueeze(0)
            expected = whole[item][rows] if aligned else whole[item]
            assert_near(run(parts, cut)[0], expected, f"{pattern}: without padding")


def _free(part: Tensor) -> bool:
    """Whether an input has no mask."""
    return part.is_floating_point()
