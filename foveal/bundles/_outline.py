"""The outline of a model: its modules with names, shapes and dtypes, without values.

A spec of one kilobyte can request terabytes of weights, and loading a bundle must not cost more than its size
justifies. Therefore the model is built on torch's meta device, which allocates nothing, and building stops after
more steps than a model with this number of tensors needs.
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

# Calls that only fill a tensor. On the meta device there is nothing to fill, and torch's implementation of these
# calls for that device is written in Python and takes seconds to import.
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
# Limits of calls to torch while building: our models need 5 to 9 for each tensor, backbones of transformers about
# 20. The first number is for modules without tensors.
_CALLS, _CALLS_PER_TENSOR = 2_000, 50


def num_weights(spec: AbstractTextSpec[Any], examples: Iterable[Example]) -> int:
    """Return the number of weights of the model of a task for these examples, without allocating memory for the
    weights.
    """
    with torch.random.fork_rng(devices=[]):
        built = outline(lambda: spec.build_from(examples))
    return sum(each.numel() for each in built.model.parameters())


def outline(build: Callable[[], Built], num_tensors: int | None = None) -> Built:
    """Build a model without values, on the meta device.

    Args:
        build: Creates the model, or an object that contains one.
        num_tensors: Expected number of tensors of the model; None for any.

    Returns:
        The result of `build`; its tensors have shapes but no values.

    Raises:
        ValueRangeError: The model has far more modules than this number of tensors needs.
    """
    with torch.device("meta"), _Outlining(num_tensors):
        return build()


@final
class _Outlining(TorchFunctionMode):
    """Counts calls to torch, and skips calls that fill tensors."""

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
