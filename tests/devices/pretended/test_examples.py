"""The examples of every docstring run with their tensors and modules on the device, and give the same results.

A tensor that an example makes is on the device; a tensor that the library makes is where the library puts it, by default
on the CPU. The library therefore has to ask its inputs for their device. Parameters and buffers are on the device, as
after `module.to("cuda")`.
"""

import doctest
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from typing_extensions import override

import foveal
from tests.devices.pretend import CUDA, DeviceGenerator, OnDevice, pretending

# Packages whose functions take or return tensors.
PACKAGES = (
    "attention",
    "batch_invariant",
    "decoding",
    "distributions",
    "estimators",
    "inference",
    "masking",
    "models",
    "networks",
    "shapes",
    "tasks",
)
LIBRARY = str(Path(foveal.__file__).parent)
# `no_memory` takes sizes only and makes its memory on the CPU; the state of `to` names its device.
EXEMPT = (
    "foveal.networks.decoders._decoder.PlainDecoder",
    "foveal.distributions._fields.AbstractFields.to",
)
FACTORIES = {
    torch.arange,
    torch.empty,
    torch.eye,
    torch.full,
    torch.linspace,
    torch.ones,
    torch.rand,
    torch.randint,
    torch.randn,
    torch.tensor,
    torch.zeros,
}


def modules() -> list[str]:
    found = walk_packages(foveal.__path__, "foveal.")
    return [one.name for one in found if one.name.split(".")[1] in PACKAGES]


class OfExamples(TorchFunctionMode):
    """Puts the tensors that an example makes on the device."""

    @override
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if isinstance(kwargs.get("generator"), DeviceGenerator):
            del kwargs["generator"]  # the device has no numbers of its own: they come from the CPU
        if func in FACTORIES and "device" not in kwargs and _is_example(sys._getframe(1)):
            made = func(*args, **kwargs)
            return made.detach().to(CUDA).requires_grad_(made.requires_grad)
        return func(*args, **kwargs)


def _is_example(frame: Any) -> bool:
    while frame is not None and "/torch/" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith("<doctest")


def _parameter(module: nn.Module, name: str, value: nn.Parameter | None) -> None:
    if value is not None and not isinstance(value, OnDevice):
        value = nn.Parameter(value.detach().to(CUDA), value.requires_grad)
    _REGISTER_PARAMETER(module, name, value)


def _buffer(module: nn.Module, name: str, value: Tensor | None, persistent: bool = True) -> None:
    _REGISTER_BUFFER(module, name, None if value is None else value.to(CUDA), persistent)


_REGISTER_PARAMETER, _REGISTER_BUFFER = nn.Module.register_parameter, nn.Module.register_buffer


def _show(value: Any) -> None:
    """Print a result, which must be on the device, as it would be printed on the CPU."""
    elsewhere = [
        one for one in tree_leaves(value) if type(one) is Tensor and one.ndim > 0 and one.numel()
    ]
    assert not elsewhere, f"{len(elsewhere)} tensors of the result are on the CPU"
    if value is not None:
        print(repr(value))  # noqa: T201 - doctest compares what is printed


@contextmanager
def examples_on_device() -> Iterator[None]:
    with (
        pretending(),
        patch.object(nn.Module, "register_parameter", _parameter),
        patch.object(nn.Module, "register_buffer", _buffer),
        patch.object(torch, "Generator", DeviceGenerator),
        patch.object(sys, "__displayhook__", _show),
        OfExamples(),
    ):
        yield


@pytest.mark.parametrize("name", modules())
def test_examples_run_on_the_device(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    module = import_module(name)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        if test.name not in EXEMPT:
            torch.manual_seed(0)
            with examples_on_device():
                runner.run(test)
    assert runner.summarize(verbose=False).failed == 0, capsys.readouterr().out
