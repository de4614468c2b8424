"""Ten thousand searches leak no memory, and one search takes memory in proportion to its sizes."""

import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from foveal.decoding import Hypotheses, beam_search, sample, stochastic_beam_search
from tests.decoding.toys import BEGIN, END, ToyStepper

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

# Run in a new process without the annotation checks, which have caches.
PROGRAM = """
import gc, resource
import torch
from foveal.decoding import beam_search, greedy, lexicon, sample, stochastic_beam_search
from tests.decoding.toys import BEGIN, END, ToyStepper

torch.set_num_threads(1)
stepper = ToyStepper(8)
words = lexicon([[2, 3], [4], [4, 5, 6]], num_tokens=8, end=END)
generator = torch.Generator().manual_seed(0)
how = {"begin": BEGIN, "end": END, "max_length": 2}
draws = {"num_samples": 2, "generator": generator}

def search(n):
    state = stepper.start(n)
    stepper.calls.clear()
    kind = n % 10
    if kind in (0, 5, 6, 7, 8, 9): greedy(stepper, state, with_weights=True, **how)
    if kind == 1: beam_search(stepper, state, beam_size=2, nbest=2, with_weights=True, **how)
    if kind == 2: beam_search(stepper, state, beam_size=2, constraints=[words], **how)
    if kind == 3: sample(stepper, state, **draws, **how)
    if kind == 4: stochastic_beam_search(stepper, state, **draws, **how)

def objects():
    gc.collect()
    return len(gc.get_objects())

for n in range(1_000):
    search(n)
before, peak = objects(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for n in range(10_000):
    search(n)
print(objects() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak)
"""


def test_ten_thousand_searches_leave_nothing_behind() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    objects, kibibytes = map(int, run.stdout.split())
    assert objects < 50
    assert kibibytes < 1024  # a leaked tensor of a few hundred bytes per search would be more


class Bytes(TorchDispatchMode):
    """Counts the bytes of the live tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.peak, self._sizes = 0, 0, dict[int, int]()

    def __torch_dispatch__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, Tensor):
                self._count(tensor.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self._sizes:
            self._sizes[key] = storage.nbytes()
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self.now -= self._sizes.pop(key, 0)


SEARCHES: list[Callable[..., Hypotheses]] = [
    lambda *args, beam_size, **how: beam_search(*args, beam_size=beam_size, nbest=beam_size, **how),
    lambda *args, beam_size, **how: sample(*args, num_samples=beam_size, **how),
    lambda *args, beam_size, **how: stochastic_beam_search(*args, num_samples=beam_size, **how),
]


def peak(
    search: Callable[..., Hypotheses], items: int, steps: int, beam_size: int, places: int
) -> int:
    stepper = ToyStepper(30, num_places=places)
    stepper.table[:, END] = -50.0  # no hypothesis ends early
    state = stepper.start(*range(items))
    with Bytes() as count:
        search(
            stepper,
            state,
            begin=BEGIN,
            end=END,
            max_length=steps,
            beam_size=beam_size,
            with_weights=True,
        )
    return count.peak


@pytest.mark.parametrize("search", SEARCHES, ids=["beam", "sample", "stochastic"])
def test_memory_is_linear(search: Callable[..., Hypotheses]) -> None:
    sizes = {"items": 8, "steps": 20, "beam_size": 4, "places": 20}
    once = peak(search, **sizes)
    for name, size in sizes.items():
        twice = peak(search, **(sizes | {name: 2 * size}))
        assert 1.3 * once < twice < 2.2 * once, name
