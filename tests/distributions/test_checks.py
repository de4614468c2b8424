"""Checks of entries are skipped inside `without_checks`, and only there."""

from collections.abc import Callable
from threading import Thread

import pytest
import torch
from torch import Tensor

from foveal.distributions import Categorical, ProjectiveTree, Subset, without_checks
from foveal.distributions._checks import checks_values
from foveal.errors import (
    FovealError,
    ImpossibleError,
    NonFiniteError,
    ShapeError,
    ValueRangeError,
)

INVALID: dict[str, tuple[Callable[[], Tensor], type[FovealError]]] = {
    "no structure": (Categorical(torch.full((2,), -torch.inf)).argmax, ImpossibleError),
    "NaN": (Categorical(torch.tensor([0.0, torch.nan])).sample, NonFiniteError),
    "a cycle": (
        lambda: ProjectiveTree(torch.zeros(3, 3)).log_prob(torch.tensor([2, 1])),
        ValueRangeError,
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_entries_are_not_checked_within_the_block_only(name: str) -> None:
    call, error = INVALID[name]
    with without_checks():
        with without_checks():
            call()
        call()  # the inner block does not end the outer one
    with pytest.raises(error):
        call()


def test_shapes_and_dtypes_are_always_checked() -> None:
    with without_checks(), pytest.raises(ShapeError, match="must be boolean"):
        Subset(torch.zeros(2)).score(torch.zeros(2))


def test_an_error_in_the_block_ends_it() -> None:
    with pytest.raises(ZeroDivisionError), without_checks():
        raise ZeroDivisionError
    assert checks_values()


def test_other_threads_check() -> None:
    found = list[bool]()
    with without_checks():
        assert not checks_values()
        thread = Thread(target=lambda: found.append(checks_values()))
        thread.start()
        thread.join()
    assert found == [True]
