"""K-step attention over facts."""

from itertools import pairwise

import pytest

from foveal.attention import AttentionTrace, Layout
from foveal.views import chain
from tests.inspection.drawings import elements, random_weights, titles, value

FACTS = ("Mary took the ball.", "John went home.", "Mary is in the garden.", "It rains.")
BEST = ((True, False, False, False), (False, False, True, False), (False, True, False, False))


def _trace(best: tuple[tuple[bool, ...], ...] | None) -> AttentionTrace:
    return AttentionTrace(
        kind="k-step",
        sources=FACTS,
        targets=("step 1", "step 2", "step 3"),
        weights=random_weights(3, 4),
        layout=Layout("facts"),
        best=best,
    )


def test_every_weight_can_be_read_back() -> None:
    steps = _trace(None)
    read = [value(text) for text in titles(chain(steps)) if " reads " in text]
    assert read == pytest.approx([weight for row in steps.weights for weight in row], abs=5e-4)


def test_the_best_chain_is_linked_in_order() -> None:
    drawing = chain(_trace(BEST))
    rings = elements(drawing, "circle", "best")
    assert [float(ring.get("cx", 0)) for ring in rings] == sorted(
        float(ring.get("cx", 0)) for ring in rings
    )
    discs = elements(drawing, "circle", "disc")
    heights = sorted({float(disc.get("cy", 0)) for disc in discs})
    assert [heights.index(float(ring.get("cy", 0))) for ring in rings] == [0, 2, 1]
    links = elements(drawing, "g", "link")
    assert len(links) == 2
    for link, (here, there) in zip(links, pairwise(rings), strict=True):
        path = link[0].get("d", "")
        assert f" {here.get('cy')}C" in path
        assert path.endswith(f" {there.get('cy')}")
    assert not elements(chain(_trace(None)), "g", "link")


def test_no_facts_and_no_steps() -> None:
    none = AttentionTrace(kind="k-step", sources=(), targets=("1",), weights=((),))
    assert "no facts" in chain(none)
    assert "no steps" in chain(AttentionTrace(kind="k", sources=FACTS, targets=(), weights=()))
    assert not elements(chain(none), "circle", "disc")
