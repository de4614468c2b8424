"""Every error message names the argument, the value, the expected value, and the remedy."""

import re
from collections.abc import Callable

import pytest
import torch

from foveal.distributions import (
    PCFG,
    Alignment,
    Categorical,
    KSubset,
    LinearChain,
    SemiMarkov,
    SiblingTree,
    Subset,
)
from foveal.errors import FovealError, ImpossibleError, NonFiniteError, ShapeError, ValueRangeError

CASES: list[tuple[type[FovealError], Callable[[], object], str]] = [
    (
        ShapeError,
        lambda: LinearChain(torch.zeros(5, 2), torch.zeros(3, 3)),
        r"LinearChain: transitions must end in sizes \(2, 2\).*got \(3, 3\).*See",
    ),
    (
        ShapeError,
        lambda: LinearChain(torch.zeros(5, 2), torch.zeros(5, 2, 2)),
        r"must end in sizes \(4, 2, 2\).*got \(5, 2, 2\)",
    ),
    (
        ShapeError,
        lambda: LinearChain(torch.zeros(5, 2), torch.zeros(2, 2), torch.ones(4).bool()),
        r"mask must end in sizes \(5,\).*got \(4,\)",
    ),
    (
        ShapeError,
        lambda: LinearChain(torch.zeros(5, 2), torch.zeros(2, 2), end=torch.zeros(4, 3)),
        r"LinearChain: end must end in sizes \(2,\).*got \(3,\).*See",
    ),
    (
        ShapeError,
        lambda: PCFG(torch.zeros(4, 4, 2), torch.zeros(3, 3, 3), torch.zeros(3)),
        r"PCFG: rules must end in sizes \(2, 2, 2\).*got \(3, 3, 3\).*See",
    ),
    (
        ShapeError,
        lambda: SiblingTree(torch.zeros(4, 4), torch.zeros(3, 3, 3)),
        r"SiblingTree: siblings must end in sizes \(4, 4, 4\).*got \(3, 3, 3\)",
    ),
    (
        ShapeError,
        lambda: Categorical(torch.zeros(3), mask=torch.ones(3)),
        r"mask must be boolean.*got torch.float32.*mask.bool\(\)",
    ),
    (
        ShapeError,
        lambda: Subset(torch.zeros(2, 0)),
        r"Subset: scores must have shape \(\.\.\., n\).*got \(2, 0\).*mask",
    ),
    (
        ShapeError,
        lambda: Categorical(torch.zeros(3, dtype=torch.long)),
        r"floating-point log-potentials, got torch.int64.*\.float\(\)",
    ),
    (
        ShapeError,
        lambda: Categorical(torch.zeros(2, 3), mask=torch.ones(4, 3).bool()).marginals(),
        r"leading \(batch\) shapes must broadcast, got scores \(2,\), mask \(4,\)",
    ),
    (
        ShapeError,
        lambda: Categorical(torch.zeros(2)).kl(Subset(torch.zeros(2))),
        r"expected another Categorical, got Subset",
    ),
    (
        ValueRangeError,
        lambda: KSubset(torch.zeros(2), 1.5),  # pyright: ignore[reportArgumentType]
        r"KSubset: k.*must be an integer.*got 1\.5.*int\(k\)",
    ),
    (
        ShapeError,
        lambda: LinearChain(torch.zeros(3, 2), torch.zeros(2, 2)).log_prob(torch.tensor([1, 1])),
        r"LinearChain.score: a value must have shape \(\.\.\., 3\).*got \(2,\).*mask",
    ),
    (
        NonFiniteError,
        lambda: Categorical(torch.full((3,), torch.nan)).argmax(),
        r"Categorical.argmax: expected scores that are finite or -inf, got NaN.*division by 0",
    ),
    (
        ValueRangeError,
        lambda: Categorical(torch.zeros(2)).topk(0),
        r"k must be at least 1, got 0.*k=1",
    ),
    (
        ValueRangeError,
        lambda: LinearChain(torch.zeros(3, 2), torch.zeros(2, 2)).log_prob(torch.tensor([0, 2, 1])),
        r"must be in 0\.\.1, got 2 at index \[1\].*mask",
    ),
    (
        ShapeError,
        lambda: Alignment(torch.zeros(2, 3, 2)),
        r"Alignment: moves must have shape.*got \(2, 3, 2\).*-inf",
    ),
    (
        ShapeError,
        lambda: Alignment(torch.zeros(2, 3, 3), source_mask=torch.ones(2).bool()),
        r"Alignment.source_mask: mask must end in sizes \(1,\).*got \(2,\)",
    ),
    (
        ShapeError,
        lambda: SemiMarkov(torch.zeros(5, 2, 2), torch.zeros(5, 2, 2)),
        r"SemiMarkov: transitions must end in sizes \(4, 2, 2\).*got \(5, 2, 2\)",
    ),
    (
        ImpossibleError,
        lambda: Categorical(torch.full((2, 3), -torch.inf)).argmax(),
        r"got none in 2 of 2, the first at index \[0\].*log_partition\(\) == -inf",
    ),
]


@pytest.mark.parametrize(("kind", "cause", "text"), CASES)
def test_the_text_of_an_error(
    kind: type[FovealError], cause: Callable[[], object], text: str
) -> None:
    with pytest.raises(kind) as caught:
        cause()
    assert re.search(text, str(caught.value), re.DOTALL), str(caught.value)
