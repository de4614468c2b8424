"""The outline of a model: its parts with names, shapes and dtypes, but without any numbers.

Building a model from a bundle's spec must cost nothing that the bundle does not pay for: a spec of
one kilobyte can ask for terabytes. So the model is built on torch's meta device, which allocates
nothing, and building stops when it has taken more steps than a model with that many tensors needs.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, final

import torch
from torch.overrides import TorchFunctionMode
from typing_extensions import override

from ..data import Example
from ..errors import ValueRangeError
from ..tasks.base._text_spec import AbstractTextSpec

Built = TypeVar("Built")

# Calls that only fill a tensor. On the meta device there is nothing to fill, and torch's own
# version of them for that device is written in Python and takes seconds to import.
_FILLS = frozenset(
    {
        "__setitem__",
        "constant_",
        "copy_",
        "fill_",
        "kaiming_normal_",
        "kaiming_uniform_",
        "normal_",
        "uniform_",
        "zero_",
    }
)
# Calls to torch that building takes: our own models need 5 to 9 for each tensor, backbones of
# transformers about 20. The first number is for parts without tensors.
_CALLS, _CALLS_PER_TENSOR = 2_000, 50


def num_weights(spec: AbstractTextSpec[Any], examples: Iterable[Example]) -> int:
    """Return how many weights the model of a task has for these examples. It is built without any memory for
    them.
    """
    with torch.random.fork_rng(devices=[]):
        built = outline(lambda: spec.build_from(examples))
    return sum(each.numel() for each in built.model.parameters())


def outline(build: Callable[[], Built], num_tensors: int | None = None) -> Built:
    """Build a model without numbers, on the meta device.

    Args:
        build: makes the model, or an object that has one.
        num_tensors: number of tensors that the model is expected to have; None for any.

    Raises:
        ValueRangeError: the model has far more parts than that.
    """
    with torch.device("meta"), _Outlining(num_tensors):
        return build()


@final
class _Outlining(TorchFunctionMode):
    """Counts calls to torch, and leaves out those that fill tensors."""

    def __init__(self, num_tensors: int | None) -> None:
        super().__init__()
        self._num_tensors = num_tensors
        self._left = math.inf if num_tensors is None else _CALLS + _CALLS_PER_TENSOR * num_tensors

    @override
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ValueRangeError(
                f"the spec describes a model with many more parts than the weights, which are "
                f"{self._num_tensors} tensors. Use the spec and the weights of one bundle."
            )
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _FILLS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
