"""Triton's interpreter with the faults made visible that only a GPU shows.

The interpreter runs programs one after the other on numpy arrays. `checking()` observes every load and
store of the launches inside it and raises `FaultError` for

    outside     an address that belongs to no tensor of the launch
    programs    an address that one program writes and another reads or writes
    threads     within a program: a load of a stored address; a store to an address that another place of a
                tile (another thread on a GPU) has loaded or stored
    twice       one store with two values for one address
    grid        a second or third axis longer than 65535

Masked lanes without `other` become NaN, and the programs run in a random order. `approximate()` gives
exp2, log, division and sums the errors that the PTX manual allows. `quick()` leaves out work that the
interpreter repeats in every call of a device function.

All of this patches private parts of Triton; `test_checked.py` plants every fault.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from triton.runtime import interpreter
from triton.runtime.interpreter import (
    GridExecutor,
    InterpretedFunction,
    InterpreterBuilder,
    ReduceOps,
    TensorHandle,
)

NOBODY, MANY = -1, -2
MOST_PROGRAMS = 65535  # on the second and third axis


class FaultError(AssertionError):
    """An error that a GPU makes, or may make."""


@dataclass
class Shadow:
    """The program and the place of a tile that last wrote and read each entry of a tensor."""

    start: int
    itemsize: int
    name: str
    size: int
    writer: NDArray[np.int64] = field(init=False)
    reader: NDArray[np.int64] = field(init=False)
    written_at: NDArray[np.int64] = field(init=False)
    read_at: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("writer", "reader", "written_at", "read_at"):
            setattr(self, name, np.full(self.size, NOBODY, np.int64))


class Watch:
    """Observes the loads and stores of a launch."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.shadows: list[Shadow] = []
        self.program = self.accesses = 0
        self.order: NDArray[np.int64] | None = None
        self.kernel = ""

    def begin(self, kernel: str, tensors: dict[str, Any]) -> None:
        self.kernel, self.order = kernel, None
        found: dict[tuple[int, int], Shadow] = {}
        for name, tensor in tensors.items():
            if hasattr(tensor, "data_ptr") and tensor.numel():
                shadow = Shadow(tensor.data_ptr(), tensor.element_size(), name, tensor.numel())
                found.setdefault((shadow.start, shadow.size * shadow.itemsize), shadow)
        self.shadows = list(found.values())

    def fault(self, kind: str, shadow: Shadow | None, what: str) -> None:
        where = f" of {shadow.name}" if shadow else ""
        raise FaultError(f"{self.kernel}, program {self.program}: {kind}{where}: {what}")

    def each(
        self, addresses: NDArray[Any], mask: NDArray[np.bool_]
    ) -> Iterator[tuple[Shadow, NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the active addresses as entries of tensors, with their places in the tile."""
        shape = np.broadcast_shapes(addresses.shape, mask.shape)
        flat, on = np.broadcast_to(addresses, shape).ravel(), np.broadcast_to(mask, shape).ravel()
        left = flat[on].astype(np.int64)
        self.accesses += len(left)
        # The same place of another shape may be in another thread.
        place = np.flatnonzero(on) * 4096 + hash(shape) % 4096
        for shadow in self.shadows:
            inside = (left >= shadow.start) & (left < shadow.start + shadow.size * shadow.itemsize)
            if inside.any():
                yield shadow, (left[inside] - shadow.start) // shadow.itemsize, place[inside]
                left, place = left[~inside], place[~inside]
        if len(left):
            self.fault("outside", None, f"{len(left)} addresses belong to no tensor")

    def load(self, addresses: NDArray[Any], mask: NDArray[np.bool_]) -> None:
        for shadow, at, place in self.each(addresses, mask):
            writer = shadow.writer[at]
            if ((writer != NOBODY) & (writer != self.program)).any():
                self.fault("programs", shadow, "a load after another program's store")
            if (writer == self.program).any():
                self.fault("threads", shadow, "a load after a store")
            reader = shadow.reader[at]
            same = (reader == NOBODY) | (reader == self.program)
            other_place = (reader == self.program) & (shadow.read_at[at] != place)
            shadow.reader[at] = np.where(same, self.program, MANY)
            shadow.read_at[at] = np.where(other_place, MANY, place)

    def store(self, addresses: NDArray[Any], values: NDArray[Any], mask: NDArray[np.bool_]) -> None:
        shape = np.broadcast_shapes(addresses.shape, mask.shape)
        on = np.broadcast_to(mask, shape)
        to = np.broadcast_to(addresses, shape)[on]
        what = np.broadcast_to(values, shape)[on]
        order = np.argsort(to, kind="stable")
        same = np.diff(to[order].astype(np.int64)) == 0
        if (same & (what[order][1:] != what[order][:-1])).any():
            self.fault("twice", None, "one store has two values for an address")
        for shadow, at, place in self.each(addresses, mask):
            for other in (shadow.writer[at], shadow.reader[at]):
                if ((other != NOBODY) & (other != self.program)).any():
                    self.fault("programs", shadow, "a store after another program's access")
            for other, places in (
                (shadow.reader[at], shadow.read_at[at]),
                (shadow.writer[at], shadow.written_at[at]),
            ):
                if ((other == self.program) & (places != place)).any():
                    self.fault("threads", shadow, "a store after an access of another place")
            shadow.writer[at], shadow.written_at[at] = self.program, place

    def next_program(self, at: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return the program to run in place of the one that the interpreter chose."""
        _, ny, nz = grid
        if self.order is None:
            if max(ny, nz) > MOST_PROGRAMS:
                self.fault("grid", None, f"{grid} programs")
            self.order = self.random.permutation(grid[0] * ny * nz)
        self.program = int(self.order[at])
        return self.program // (ny * nz), self.program // nz % ny, self.program % nz


@contextmanager
def checking(seed: int = 0) -> Iterator[Watch]:
    """Observe the launches inside; the seed gives the order of the programs."""
    watch = Watch(seed)
    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store
    set_index, arguments = InterpreterBuilder.set_grid_idx, GridExecutor._init_args_hst

    def observed_load(self: Any, pointers: Any, mask: Any, other: Any, *rest: Any) -> Any:
        watch.load(pointers.data, mask.data.astype(bool))
        # In a tile of one number, the interpreter takes `other=0` for None.
        if other is None and mask.data.size > 1 and not mask.data.all():
            kind = pointers.get_element_ty()
            dtype = interpreter._get_np_dtype(kind)
            junk = np.nan if dtype.kind == "f" else np.iinfo(dtype).max if dtype.kind in "iu" else 1
            other = TensorHandle(np.full(pointers.data.shape, junk, dtype), kind)
        return load(self, pointers, mask, other, *rest)

    def observed_store(self: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        watch.store(pointers.data, value.data, mask.data.astype(bool))
        return store(self, pointers, value, mask, *rest)

    def observed_index(self: Any, x: int, y: int, z: int) -> None:
        _, ny, nz = self.grid_dim
        set_index(self, *watch.next_program((x * ny + y) * nz + z, self.grid_dim))

    def observed_arguments(self: Any, args: Any, kwargs: Any) -> Any:
        host, more = arguments(self, args, kwargs)
        watch.begin(self.fn.__name__, {**dict(zip(self.arg_names, host, strict=False)), **more})
        return host, more

    with ExitStack() as stack:
        for owner, name, value in (
            (InterpreterBuilder, "create_masked_load", observed_load),
            (InterpreterBuilder, "create_masked_store", observed_store),
            (InterpreterBuilder, "set_grid_idx", observed_index),
            (GridExecutor, "_init_args_hst", observed_arguments),
        ):
            stack.enter_context(patch.object(owner, name, value))
        yield watch


@contextmanager
def approximate(seed: int = 0) -> Iterator[None]:
    """Compute float32 as a GPU may: ex2.approx and lg2.approx with an error of 2^-22, division with an
    error of 2 ulp, sums of randomly placed lanes, and subnormal results as 0.
    """
    random = np.random.default_rng(seed)
    exp2, log = InterpreterBuilder.create_exp2, InterpreterBuilder.create_log
    div, total = InterpreterBuilder.create_fdiv, ReduceOps.sum

    def error(shape: tuple[int, ...]) -> NDArray[np.float64]:
        return random.choice([-1.0, 1.0], shape) * 2.0**-22  # always the largest allowed error

    def flushed(x: NDArray[np.float64]) -> NDArray[np.float32]:
        narrow = x.astype(np.float32)
        return np.where(np.abs(narrow) < np.finfo(np.float32).tiny, np.float32(0), narrow)

    def rough_exp2(self: Any, x: Any) -> Any:
        if x.data.dtype != np.float32:
            return exp2(self, x)
        power = np.exp2(x.data.astype(np.float64))
        return TensorHandle(flushed(power * (1 + error(power.shape))), x.dtype.scalar)

    def rough_log(self: Any, x: Any) -> Any:
        if x.data.dtype != np.float32:
            return log(self, x)
        found = np.log2(x.data.astype(np.float64))
        near = (x.data > 0.5) & (x.data < 2) & (x.data != 1)
        scale = np.where(near, 1.0, np.where(np.isfinite(found), found, 0.0))
        found = found + scale * error(found.shape)
        return TensorHandle((found * np.log(2.0)).astype(np.float32), x.dtype.scalar)

    def rough_div(self: Any, a: Any, b: Any) -> Any:
        if a.data.dtype != np.float32:
            return div(self, a, b)
        found = a.data.astype(np.float64) / b.data
        return TensorHandle(flushed(found * (1 + error(found.shape))), a.dtype.scalar)

    def butterfly(self: Any, given: Any) -> Any:
        data = given.handle.data
        if data.dtype != np.float32 or self.axis is None:
            return total(self, given)
        data = np.moveaxis(data, self.axis, 0)
        data = data[random.permutation(len(data))]
        while len(data) > 1:
            half = len(data) // 2
            data = data[:half] + data[half:]
        data = np.moveaxis(data, 0, self.axis) if self.keep_dims else data[0]
        return self.to_tensor(data if data.shape else data[()], given.dtype)

    with (
        patch.object(InterpreterBuilder, "create_exp2", rough_exp2),
        patch.object(InterpreterBuilder, "create_log", rough_log),
        patch.object(InterpreterBuilder, "create_fdiv", rough_div),
        patch.object(ReduceOps, "sum", butterfly),
    ):
        yield


@contextmanager
def quick() -> Iterator[None]:
    """Prepare the language once in a launch for each module, not in every call of a device function; and
    do not check every integer for overflow. Both together take half of the time.
    """
    prepared: set[int] = set()
    run, launch = InterpretedFunction.__call__, GridExecutor.__call__

    def launched(self: Any, *args: Any, **kwargs: Any) -> None:
        prepared.clear()
        launch(self, *args, **kwargs)

    def device(self: Any, *args: Any, **kwargs: Any) -> Any:
        module = id(self.fn.__globals__)
        if module in prepared:
            return self.rewrite()(*args, **kwargs)
        prepared.add(module)
        return run(self, *args, **kwargs)

    options = interpreter.InterpreterOptions(sanitize_overflow=False)
    with (
        patch.object(GridExecutor, "__call__", launched),
        patch.object(InterpretedFunction, "__call__", device),
        patch.object(interpreter.interpreter_builder, "options", options),
    ):
        yield
