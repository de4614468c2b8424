"""A CUDA device that does not exist: tensors that report it, with values on the CPU.

    with pretending() as device:
        model.to("cuda")(batch.to("cuda")).sum().backward()
    device.waits          # where the program waited for the device

`FakeTensorMode` cannot run this library: searches and samplers branch on values, which fake tensors do not have, and
without a CUDA build autograd ends the process. So every operation runs on CPU values, and this module checks what a GPU
would refuse (`WrongDeviceError`) and counts what makes the host wait. Not covered: streams, the numerics of GPU
kernels, cuDNN, and several GPUs.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from typing_extensions import override

aten = torch.ops.aten
CUDA = torch.device("cuda", 0)

# Operations whose purpose is a tensor on the other device.
_MOVES = {aten.copy_.default, aten._to_copy.default, aten._copy_from.default}
_MOVES |= {aten._pack_padded_sequence.default}  # its lengths are on the CPU
_INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
_INDEXED |= {aten._index_put_impl_.default}
# Operations whose result, or the size of it, the host must know.
_WAITING = {
    aten._local_scalar_dense.default,
    aten._unique2.default,
    aten.bincount.default,
    aten.equal.default,
    aten.is_nonzero.default,
    aten.masked_select.default,
    aten.nonzero.default,
    aten.repeat_interleave.Tensor,
    aten.unique_consecutive.default,
    aten.unique_dim.default,
}


class WrongDeviceError(RuntimeError):
    """An operation that a GPU would refuse."""


class OnDevice(Tensor):
    """A tensor that reports the device; `held` has its values."""

    held: Tensor

    @staticmethod
    def __new__(cls: type, held: Tensor) -> "OnDevice":
        made = Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=CUDA,
        )
        made.held = held
        return made

    @classmethod
    @override
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {}, Counter())

    @override
    def __repr__(self, **kwargs: Any) -> str:
        values = repr(self.held.detach().requires_grad_(self.requires_grad))
        return f"Parameter containing:\n{values}" if isinstance(self, nn.Parameter) else values

    @override
    def tolist(self) -> Any:  # torch reads the memory of the tensor
        return self.cpu().tolist()


class Pretended(TorchDispatchMode):
    """While this mode is active, the device exists. `waits` counts the lines that wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    @classmethod
    @override
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip it, torch would import it, which takes seconds

    @override
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {}, self.waits)


def _run(func: Any, args: Any, kwargs: dict[str, Any], waits: Counter[str]) -> Any:
    """Run an operation on the values, and return its results on the device that a GPU would leave them on."""
    leaves = tree_leaves((args, kwargs))
    there = {id(one.held): one for one in leaves if isinstance(one, OnDevice)}
    here = [one for one in leaves if isinstance(one, Tensor) and not isinstance(one, OnDevice)]
    wanted = None if kwargs.get("device") is None else torch.device(kwargs["device"]).type
    _refuse(func, args, kwargs, bool(there) or wanted == "cuda", here)
    _count(func, args, wanted, waits, is_there=bool(there))
    if wanted == "cuda":
        kwargs = kwargs | {"device": torch.device("cpu")}
    operation = func
    if func in _CELLS:
        operation = _CELLS[func]
    found = operation(
        *tree_map_only(OnDevice, _held, args), **tree_map_only(OnDevice, _held, kwargs)
    )
    is_there = wanted == "cuda" or (bool(there) and wanted is None)
    if func in _MOVES and wanted is None:
        is_there = isinstance(args[0], OnDevice)
    if not is_there:
        return found
    return tree_map_only(
        Tensor, lambda one: there[id(one)] if id(one) in there else OnDevice(one), found
    )


def _held(tensor: OnDevice) -> Tensor:
    return tensor.held


def _refuse(
    func: Any, args: Any, kwargs: dict[str, Any], is_there: bool, here: list[Tensor]
) -> None:
    """Raise an error if a GPU would. A number on the CPU, and indices there, are allowed."""
    if func in _INDEXED:
        indices = [one for one in args[1] if one is not None]
        here = [one for one in here if all(one is not index for index in indices)]
        if not isinstance(args[0], OnDevice) and any(isinstance(i, OnDevice) for i in indices):
            raise WrongDeviceError(f"{func}: indices on the device, values on the CPU")
    shapes = [tuple(one.shape) for one in here if one.ndim > 0]
    has_device_tensor = any(isinstance(one, OnDevice) for one in tree_leaves((args, kwargs)))
    if has_device_tensor and shapes and func not in _MOVES:
        raise WrongDeviceError(f"{func}: tensors on the device, and on the CPU those of {shapes}")
    generator = kwargs.get("generator")
    if is_there and generator is not None:
        raise WrongDeviceError(f"{func}: a generator of the CPU for numbers on the device")


def _count(
    func: Any, args: Any, wanted: str | None, waits: Counter[str], *, is_there: bool
) -> None:
    """Count an operation after which the host waits for the device."""
    if not is_there:
        return
    if func in _WAITING or wanted == "cpu":
        waits[f"{func.overloadpacket.__name__} {_asker()}"] += 1
    elif func in _INDEXED and any(i is not None and i.dtype == torch.bool for i in args[1]):
        waits[f"mask as index {_asker()}"] += 1


def _asker() -> str:
    """Return the innermost line that is neither torch's nor ours."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if "/torch/" not in file and file != __file__:
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('/foveal/')[2]}:{frame.f_lineno}"


class DeviceGenerator(torch.Generator):
    """A generator of the device."""

    @override
    def manual_seed(self, seed: int) -> "DeviceGenerator":  # torch returns another Python object
        super().manual_seed(seed)
        return self


# On CUDA, torch calls fused cells, and converts half precision within a softmax. The CPU has no kernels for these.


def _lstm_cell(
    inputs: Tensor, hidden: Tensor, cx: Tensor, b: Tensor | None = None, c: Tensor | None = None
) -> Any:
    gates = inputs + hidden if b is None or c is None else inputs + hidden + b + c
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def _lstm_cell_backward(
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    cx: Tensor,
    cy: Tensor,
    workspace: Tensor,
    has_bias: bool,
) -> Any:
    i, f, g, o = workspace.chunk(4, 1)
    tanh = cy.tanh()
    grad_hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    grad_cy = torch.zeros_like(cy) if grad_cy is None else grad_cy
    cell = grad_hy * o * (1 - tanh * tanh) + grad_cy
    gates = torch.cat(
        [
            cell * g * i * (1 - i),
            cell * cx * f * (1 - f),
            cell * i * (1 - g * g),
            grad_hy * tanh * o * (1 - o),
        ],
        1,
    )
    return gates, cell * f, gates.sum(0) if has_bias else None


def _widened(func: Any) -> Callable[..., Any]:
    def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
        return func(x.float() if half_to_float else x, dim, False)

    return softmax


def _narrowed(func: Any) -> Callable[..., Any]:
    def backward(grad: Tensor, output: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
        return func(grad, output, dim, grad.dtype).to(dtype)

    return backward


_CELLS: dict[Any, Callable[..., Any]] = {
    aten._softmax.default: _widened(aten._softmax.default),
    aten._log_softmax.default: _widened(aten._log_softmax.default),
    aten._softmax_backward_data.default: _narrowed(aten._softmax_backward_data.default),
    aten._log_softmax_backward_data.default: _narrowed(aten._log_softmax_backward_data.default),
    aten._thnn_fused_lstm_cell.default: _lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_cell_backward,
}


def _no_grad(mode: bool = True) -> Any:
    return torch.no_grad() if mode else nullcontext()


@contextmanager
def pretending() -> Iterator[Pretended]:
    """Make the device exist inside the block. Its random numbers come from the generator of the CPU."""
    answers: dict[str, Callable[..., Any]] = {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "device": lambda device: nullcontext(),
        "set_device": lambda device: None,
        "manual_seed": lambda seed: None,
        "get_rng_state": lambda device: None,
        "set_rng_state": lambda state, device: None,
    }
    future = torch.__future__
    before = future.get_overwrite_module_params_on_conversion()
    with ExitStack() as stack:
        for name, answer in answers.items():
            stack.enter_context(patch.object(torch.cuda, name, answer))
        # Views of wrapped inference tensors have no version; without gradients, both modes compute the same.
        stack.enter_context(patch.object(torch, "inference_mode", _no_grad))
        stack.enter_context(
            patch.object(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
        )
        # Pinning asks a real driver for memory.
        stack.enter_context(patch.object(Tensor, "pin_memory", lambda tensor: tensor))
        stack.callback(torch._C._set_only_lift_cpu_tensors, False)
        stack.callback(future.set_overwrite_module_params_on_conversion, before)
        # torch.tensor(..., device="cuda") makes a CPU tensor and moves it; module.to() makes new parameters.
        torch._C._set_only_lift_cpu_tensors(True)
        future.set_overwrite_module_params_on_conversion(True)
        yield stack.enter_context(Pretended())
