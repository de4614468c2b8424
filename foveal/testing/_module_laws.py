"""What the laws of attention and of networks share: junk, masks, gradients, and requests that
leave each other alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.testing import assert_close

JUNK_NUMBERS = (torch.nan, torch.inf, -torch.inf, 1e30)
JUNK_TOKENS = (-1, 10**6)


def assert_near(found: Tensor, expected: Tensor, what: str) -> None:
    """Equal to 1e-5, the accuracy that two orders of the same float32 sums have."""
    assert_close(found, expected, rtol=1e-5, atol=1e-5, msg=lambda text: f"{what}: {text}")


def masks(shape: Sequence[int]) -> dict[str, Tensor]:
    """Masks of every pattern over `(B, ...)`: the first item is all real, the last is all padding,
    and those between have padding at the end, at the beginning, or anywhere.
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
    """The values with padding that holds anything. The mask broadcasts to them."""
    numbers = JUNK_NUMBERS if values.is_floating_point() else JUNK_TOKENS
    real = mask.expand(values.shape)
    return [torch.where(real, values, torch.tensor(junk, dtype=values.dtype)) for junk in numbers]


def total(values: Tensor) -> Tensor:
    """A number that depends on every entry, on each in its own way."""
    return (values * torch.linspace(-1, 2, values.numel()).reshape(values.shape).sin()).sum()


def gradients(module: nn.Module, loss: Tensor, inputs: Tensor | None = None) -> dict[str, Tensor]:
    """The gradients of the parameters that the loss depends on, by name, and of "inputs"."""
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
    """Equal to the bit."""
    assert found.keys() == expected.keys(), f"{what} changes what has a gradient"
    for name, gradient in expected.items():
        assert torch.equal(found[name], gradient), f"{what} changes the gradient of {name}"


def check_reach(module: nn.Module, loss: Tensor) -> None:
    """The gradient of a loss reaches every parameter, and is finite."""
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
    """A request gives the same before and after another, and neither leaves anything behind."""
    before, held, values = first(), _held(module), _values(module)
    second()
    assert torch.equal(first(), before), "another request has changed the answer to this one"
    after = _held(module)
    same = held.keys() == after.keys() and all(after[key] is held[key] for key in held)
    assert same, "a request has left something on the module"
    assert _values(module) == values, "a request has changed what the module holds"


def _held(module: nn.Module) -> dict[tuple[str, str], Any]:
    """The attributes of every submodule: the objects, since a number of one that is gone may be
    given to another.
    """
    return {
        (name, key): value
        for name, part in module.named_modules()
        for key, value in vars(part).items()
    }


def _values(module: nn.Module) -> dict[str, Any]:
    return {key: value.tolist() for key, value in module.state_dict().items()}
