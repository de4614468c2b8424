"""`checked` finds every planted fault, and none in the kernels of `foveal_triton`."""

# Triton is not installed where pyright runs.
# pyright: reportIndexIssue=false

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
import torch
from foveal_triton import (
    _alignment_ops,
    _chain_ops,
    _ctc_ops,
    _projective_ops,
    _segment_ops,
    _span_ops,
)
from torch import Tensor
from triton.runtime.errors import InterpreterError

from foveal.inference import ctc_log_partition, ctc_marginals
from tests.structures.inputs import Case
from tests.triton import planted
from tests.triton.checked import MOST_PROGRAMS, approximate, checking
from tests.triton.structures import (
    ctc_batch,
    enumerated_ctc,
    exact,
    joined,
    served,
    weights,
)

SIZE = 8
INPUTS = ("masked", "forbidden")


def tensors(count: int) -> list[Tensor]:
    """Return tensors between other numbers, so a kernel that leaves them harms nothing."""
    return [torch.arange(-SIZE, 2.0 * SIZE)[SIZE + 1 : -SIZE + 1] for _ in range(count)]


@pytest.mark.parametrize("kernel", [planted.doubled, planted.doubled_in_place])
def test_a_sound_kernel_passes(kernel: Any) -> None:
    given = tensors(len(kernel.arg_names) - 2)
    with checking() as watch:
        kernel[(2,)](*given, 7, SIZE=4)
    assert given[-1].tolist() == [2, 4, 6, 8, 10, 12, 14, 8]
    assert watch.accesses == 14  # seven loads and seven stores


@pytest.mark.parametrize(
    ("kernel", "programs", "fault"),
    [
        (planted.reads_beyond, 1, "outside: 1 addresses"),
        (planted.writes_beyond, 1, "outside: 1 addresses"),
        (planted.writes_together, 2, "programs of out: a store after another program's access"),
        (planted.reads_a_neighbor, 4, "programs of out"),
        (planted.reads_what_it_wrote, 1, "threads of out: a load after a store"),
        (planted.reverses_in_place, 1, "threads of x: a store after an access of another place"),
        (planted.overwrites, 1, "threads of out: a store after an access of another place"),
        (planted.stores_twice, 1, "twice: one store has two values"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_planted_fault_is_found(kernel: Any, programs: int, fault: str) -> None:
    given = tensors(len(kernel.arg_names) - 1)
    kernel[(programs,)](*given, SIZE=SIZE)  # the interpreter finds none of them
    with checking(), pytest.raises(InterpreterError, match=fault):
        kernel[(programs,)](*given, SIZE=SIZE)


def test_a_grid_that_no_gpu_runs_is_found() -> None:
    out = torch.zeros(MOST_PROGRAMS + 1)
    with checking(), pytest.raises(InterpreterError, match="grid: "):
        planted.counts_programs[(1, MOST_PROGRAMS + 1)](out)
    with checking():
        planted.counts_programs[(2, 3)](out)
    assert out.sum() == 6


def test_masked_lanes_without_a_value_are_nan() -> None:
    x, out = tensors(2)
    planted.forgets_other[(1,)](x, out, 5, SIZE=SIZE)
    assert out[0] == 15
    with checking():
        planted.forgets_other[(1,)](x, out, 5, SIZE=SIZE)
    assert out[0].isnan()


def test_the_seed_gives_the_order_of_the_programs() -> None:
    orders = []
    for seed in (0, 0, 1):
        with checking(seed) as watch:
            planted.counts_programs[(4, 5)](torch.zeros(20))
        assert watch.order is not None
        orders.append(watch.order.tolist())
    assert orders[0] == orders[1] != orders[2]
    assert all(sorted(order) == list(range(20)) for order in orders)


def test_approximate_numbers_have_the_errors_of_a_gpu() -> None:
    x = torch.tensor([1.1, -126.5, 3.3, 7.7])
    outs = [torch.zeros(4) for _ in range(3)]
    total = torch.zeros(1)
    with approximate():
        planted.numbers_of[(1,)](x, *outs, total, SIZE=4)
    powers, logarithms, quotients = outs
    ratio = powers.double() / x.double().exp2()
    assert ratio[1] == 0  # subnormal
    error = (ratio[[0, 2, 3]] - 1).abs()
    assert (error > 2.0**-23).all()
    assert (error < 2.0**-21).all()
    error = logarithms.double() / x.double().log() - 1
    assert (error[[0, 2, 3]].abs() > 2.0**-24).all()
    assert (quotients.double() * x.double() - 1).abs().max() > 2.0**-24
    sums = set()
    for seed in range(20):
        with approximate(seed):
            planted.numbers_of[(1,)](torch.tensor([1e8, 1.0, -1e8, 1.0]), *outs, total, SIZE=4)
        sums.add(total.item())
    assert sums == {0.0, 2.0}


@contextmanager
def in_chunks(chosen: bool) -> Iterator[None]:
    """Split chains of the length of the tests as if they were long, into chunks of two steps."""
    with (
        patch.object(_chain_ops, "LONG", 4 if chosen else _chain_ops.LONG),
        patch.object(_chain_ops, "CHUNK", 2),
    ):
        yield


def results(of: Case) -> dict[str, Tensor]:
    """Run all kernels of a structure."""
    leaves = [part.clone().requires_grad_() for part in of.potentials]
    distribution, fixed = of.make(leaves), of.make(of.potentials)
    marginals = distribution.marginals()
    gradients = torch.autograd.grad((marginals * weights(marginals)).sum(), leaves)
    torch.manual_seed(0)
    found = {
        "marginals": marginals,
        "marginals alone": fixed.marginals(),
        "log_partition": distribution.log_partition(),
        "log_partition alone": fixed.log_partition(),
        "argmax": fixed.argmax(),
        "sample": fixed.sample((3,)),
    }
    return found | {f"gradient {n}": gradient for n, gradient in enumerate(gradients)}


def truths_of(of: Case) -> dict[str, Tensor]:
    """Return the results of enumeration."""
    leaves = [part.double().requires_grad_() for part in of.potentials]
    truths = of.truths(leaves)
    marginals = torch.stack([truth.marginals() for truth in truths])
    log_partition = torch.stack([truth.log_partition for truth in truths])
    gradients = torch.autograd.grad((marginals * weights(marginals)).sum(), leaves)
    found = {"marginals": marginals, "log_partition": log_partition}
    found |= {f"{name} alone": value for name, value in found.items()}
    return found | {f"gradient {n}": gradient for n, gradient in enumerate(gradients)}


def kernels_in(ops: ModuleType) -> set[str]:
    """Return the modules and names of the kernels that a module launches."""
    found = re.findall(r"\b(kernels|sweeps|tables|tangents|search)\.(\w+)", inspect.getsource(ops))
    return {f"{vars(ops)[module].__name__}.{name}" for module, name in found}


def run_ctc() -> dict[str, Tensor]:
    """Run all kernels of CTC."""
    log_probs, targets, masks = ctc_batch(torch.float32)
    log_partition = ctc_log_partition(log_probs, targets, *masks)
    return {"log_partition": log_partition, "marginals": ctc_marginals(log_probs, targets, *masks)}


def true_ctc() -> dict[str, Tensor]:
    """Return the results of enumeration."""
    log_partition, marginals = enumerated_ctc(*ctc_batch(torch.float32), blank=0)
    return {"log_partition": log_partition, "marginals": marginals}


IN_CHUNKS = "LinearChain, in chunks"
CHAINS = ("LinearChain", "LinearChain, shared", "LinearChain, many states", IN_CHUNKS)
SEGMENTS = ("SemiMarkov", "SemiMarkov, many labels")
TREES = ("ProjectiveTree", "ProjectiveTree, any roots", "SpanTree")
FAMILIES = {
    _chain_ops: CHAINS,
    _alignment_ops: ("Alignment",),
    _ctc_ops: ("CTC",),
    _projective_ops: TREES[:2],
    _segment_ops: SEGMENTS,
    _span_ops: TREES[2:],
}


def run(name: str) -> dict[str, Tensor]:
    """Run all kernels of a structure."""
    if name == "CTC":
        return run_ctc()
    with in_chunks(name == IN_CHUNKS):
        return results(joined(CHAINS[0] if name == IN_CHUNKS else name, INPUTS))


def check(name: str, found: dict[str, Tensor]) -> None:
    """Compare the results of a structure with enumeration."""
    chain = CHAINS[0] if name == IN_CHUNKS else name
    for verb, truth in (true_ctc() if name == "CTC" else truths_of(joined(chain, INPUTS))).items():
        exact(found[verb], truth, f"{verb} of {name}", scale=3 if "gradient" in verb else 1)


@pytest.mark.parametrize("ops", FAMILIES, ids=lambda ops: ops.__name__)
def test_no_kernel_has_a_fault_in_any_order(ops: ModuleType) -> None:
    every = set[str]()
    for name in FAMILIES[ops]:
        found = []
        for seed in range(2):
            with served() as launched, checking(seed) as watch:
                found.append(run(name))
            assert watch.accesses > 1000
            every.update(launched)
        for verb, first in found[0].items():
            assert torch.equal(first, found[1][verb]), f"{verb} of {name} depends on the order"
        check(name, found[0])
    assert kernels_in(ops) == every


@pytest.mark.parametrize("name", [*CHAINS, *SEGMENTS, "Alignment", "CTC", *TREES])
def test_the_errors_of_a_gpu_keep_the_accuracy(name: str) -> None:
    with served(), approximate():
        found = run(name)
    check(name, found)
