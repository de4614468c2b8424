"""The predictor without a server, called with batches like the ones that formed in a server.

The server counts batches by the size class of their inputs and by ranges of batch sizes. Batches are drawn
from these counts; the distribution within a range reproduces the observed mean.
"""

import math
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, final

from benchmarks.serving.load import Batches
from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.serving import Predictor
from foveal.serving._answer import answer_json
from foveal.tasks.base._size_classes import size_class

_HALVINGS = 50  # bisection steps for the tilt


class Rate(NamedTuple):
    """Inputs per second, in wall-clock time and in CPU time."""

    on_the_clock: float
    of_the_core: float


@final
class Bare:
    """A predictor without a server."""

    def __init__(self, run: Path, texts: Sequence[str]) -> None:
        task = load_bundle(run)
        self.predictor = Predictor(task, task.spec)
        self.settings = self.predictor.settings()
        self._examples: dict[str, list[Example]] = {}
        for text in texts:
            example = Example(text)
            places = size_class(self.predictor.size(example))
            self._examples.setdefault(str(places), []).append(example)

    def answer(self, examples: Sequence[Example]) -> list[str]:
        """Return the answers as JSON, which a server has to produce too."""
        predictions = self.predictor.answer(examples, self.settings)
        return list(map(answer_json, examples, predictions))

    def rate(self, formed: Batches, *, seconds: float, generator: random.Random) -> Rate:
        """Measure the rate on batches drawn from this distribution."""
        kinds = drawn_from(formed)
        ways, weights = list(kinds), list(kinds.values())
        number, core, began = 0, time.process_time(), time.perf_counter()
        while time.perf_counter() - began < seconds:
            places, size = generator.choices(ways, weights)[0]
            number += len(self.answer(generator.choices(self._examples[places], k=size)))
        taken, used = time.perf_counter() - began, time.process_time() - core
        return Rate(number / taken, number / used)


def drawn_from(formed: Batches) -> dict[tuple[str, int], float]:
    """Return the weight of each kind of batch: a size class of inputs, and the number of inputs."""
    edges = sorted({edge for _, edge in formed.counts})
    lower = dict(zip(edges, [0.0, *edges], strict=False))
    found = dict[tuple[str, int], float]()
    for places, inputs in formed.inputs.items():
        counts = {edge: formed.counts[places, edge] for edge in edges}
        spans = {
            range(int(lower[edge]) + 1, int(edge) + 1): count
            for edge, count in counts.items()
            if count
        }
        for size, weight in _tilted(spans, inputs).items():
            found[places, size] = weight
    return found


def _tilted(spans: Mapping[range, int], total: int) -> dict[int, float]:
    """Return the weights of batch sizes: exp(tilt * size) distributes the count of each span over its sizes.

    The tilt is chosen to match the total number of inputs.
    """

    def spread(tilt: float) -> dict[int, float]:
        weights = dict[int, float]()
        for span, count in spans.items():
            shares = [math.exp(tilt * (size - span[0])) for size in span]
            weights |= {
                size: count * each / sum(shares) for size, each in zip(span, shares, strict=True)
            }
        return weights

    low, high = -5.0, 5.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_short = sum(size * weight for size, weight in spread(middle).items()) < total
        low, high = (middle, high) if is_short else (low, middle)
    return spread(low)
