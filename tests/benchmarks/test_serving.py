"""The bare predictor is called with batches of the sizes that formed on the server."""

from collections import Counter

import pytest

from benchmarks.serving.bare import drawn_from
from benchmarks.serving.load import Batches


def test_drawn_batches_have_the_sizes_that_formed() -> None:
    formed = Batches(
        counts=Counter({("8", 1.0): 5, ("8", 4.0): 10, ("8", 8.0): 5, ("16", 4.0): 2}),
        inputs=Counter({"8": 5 + 28 + 35, "16": 7}),
    )
    weights = drawn_from(formed)
    for places, inputs in formed.inputs.items():
        sizes = {size: weight for (name, size), weight in weights.items() if name == places}
        assert sum(size * weight for size, weight in sizes.items()) == pytest.approx(inputs)
    eights = {size: weight for (name, size), weight in weights.items() if name == "8"}
    assert set(eights) == set(range(1, 9))
    assert eights[1] == pytest.approx(5)
    assert sum(eights[size] for size in (2, 3, 4)) == pytest.approx(10)
    assert sum(eights[size] for size in (5, 6, 7, 8)) == pytest.approx(5)
