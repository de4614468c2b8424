"""Helpers that the laws of attention and networks share: arbitrary padding, masks, gradients, and independent requests."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.testing import assert_close

JUNK_NUMBERS = (torch.nan, torch.inf, -torch.inf, 1e30)
JUNK_TOKENS = (-1, 10**6)


def assert_near(found: Tensor, expected: Tensor, what: str) -> None:
    """Assert equality to 1e-5, the accuracy of two summation orders in float32."""
    assert_close(found, expected, rtol=1e-5, atol=1e-5, msg=lambda text: f"{what}: {text}")


def masks(shape: Sequence[int]) -> dict[str, Tensor]:
    """Return masks of every pattern over `(B, ...)`.

    The first item is all real and the last one is all padding. The items in between have padding at the end, at the
    beginning, or at random positions.
    """
    size = torch.Size(shape[1:]).numel()
    place = torch.arange(size)
    share = torch.linspace(1, 0, shape[0]).unsqueeze(-1) * size
    holes = torch.rand(shape[0], size, generator=torch.Generator().manual_seed(3)) < 0.6
    holes[0], holes[-1] = True, False
    if shape[0] > 2:
        holes[1, 0], holes[1, -1], holes[1, size // 2] = True, True, False
    patterns = {"right": place < share, "left": place >= size - share, "holes": holes}
    return {name: mask.reshape(*shape) for name, mask in patterns.items()}


def junk_in(values: Tensor, mask: Tensor) -> list[Tensor]:
    """Return the values with arbitrary numbers in padding. The mask must broadcast to the values."""
    numbers = JUNK_NUMBERS if values.is_floating_point() else JUNK_TOKENS
    real = mask.expand(values.shape)
    return [torch.where(real, values, torch.tensor(junk, dtype=values.dtype)) for junk in numbers]


def total(values: Tensor) -> Tensor:
    """Return a scalar that depends on every entry with a different weight."""
    return (values * torch.linspace(-1, 2, values.numel()).reshape(values.shape).sin()).sum()


def gradients(module: nn.Module, loss: Tensor, inputs: Tensor | None = None) -> dict[str, Tensor]:
    """Return the gradients of the parameters that the loss depends on, by name, and of "inputs"."""
    wanted = dict[str, Tensor](module.named_parameters())
    if inputs is not None and inputs.requires_grad:
        wanted["inputs"] = inputs
    if not loss.requires_grad:
        return {}
    found = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    return {name: g for name, g in zip(wanted, found, strict=True) if g is not None}


def assert_same_gradients(
    found: Mapping[str, Tensor], expected: Mapping[str, Tensor], what: str
) -> None:
    """Assert that gradients are bit-identical."""
    assert found.keys() == expected.keys(), f"{what} changes what has a gradient"
    for name, gradient in expected.items():
        assert torch.equal(found[name], gradient), f"{what} changes the gradient of {name}"


def check_reach(module: nn.Module, loss: Tensor) -> None:
    """Check that the gradient of a loss reaches every parameter and is finite."""
    named = dict(module.named_parameters())
    if not named:
        return
    gradients = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    for name, gradient in zip(named, gradients, strict=True):
        assert gradient is not None, f"no gradient reaches {name}"
        assert gradient.isfinite().all(), f"the gradient of {name} is not finite"
        assert gradient.any(), f"the gradient of {name} is 0"


def check_undisturbed(
    module: nn.Module, first: Callable[[], Tensor], second: Callable[[], Tensor]
) -> None:
    """Check that a request gives the same result before and after another one, and that the module keeps no state."""
    before, held, values = first(), _held(module), _values(module)
    second()
    assert torch.equal(first(), before), "another request has changed the answer to this one"
    after = _held(module)
    same = held.keys() == after.keys() and all(after[key] is held[key] for key in held)
    assert same, "a request has left something on the module"
    assert _values(module) == values, "a request has changed what the module holds"


def _held(module: nn.Module) -> dict[tuple[str, str], Any]:
    """Return the attributes of every submodule. It returns the objects themselves, because Python may reuse the id of a
    deleted object.
    """
    return {
        (name, key): value
        for name, part in module.named_modules()
        for key, value in vars(part).items()
    }


def _values(module: nn.Module) -> dict[str, Any]:
    return {key: value.tolist() for key, value in module.state_dict().items()}
