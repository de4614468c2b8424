"""Categorical, Subset and LinearChain against the laws, on random sizes and masks."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from foveal.distributions import Categorical, LinearChain, Subset
from foveal.testing import check_distribution

pytestmark = pytest.mark.slow


def choices(scores: Tensor, mask: Tensor | None) -> Iterator[tuple[Tensor, Tensor]]:
    for i in range(len(scores)):
        if mask is None or mask[i]:
            yield torch.tensor(i), scores[i]


def subsets(scores: Tensor, mask: Tensor | None) -> Iterator[tuple[Tensor, Tensor]]:
    for chosen in product([False, True], repeat=len(scores)):
        value = torch.tensor(chosen)
        if mask is None or not (value & ~mask).any():
            yield value, scores[value].sum()


def labelings(
    unary: Tensor, transitions: Tensor, mask: Tensor | None
) -> Iterator[tuple[Tensor, Tensor]]:
    length, num_states = unary.shape
    real = [t for t in range(length) if mask is None or mask[t]]
    for states in product(range(num_states), repeat=len(real)):
        labels = torch.full((length,), -1)
        score = unary.new_zeros(())
        for place, (t, state) in enumerate(zip(real, states, strict=True)):
            labels[t] = state
            score = score + unary[t, state]
            if place > 0:
                score = score + transitions[t - 1, states[place - 1], state]
        yield labels, score


@st.composite
def masks(draw: st.DrawFn, batch: int, size: int) -> Tensor | None:
    """None, or any pattern: right padding, left padding, holes, only padding."""
    if draw(st.booleans()):
        return None
    bits = draw(st.lists(st.booleans(), min_size=batch * size, max_size=batch * size))
    return torch.tensor(bits).reshape(batch, size)


laws = settings(max_examples=12, deadline=None, derandomize=True)


@laws
@given(st.data(), st.integers(1, 3), st.integers(1, 5), st.integers(0, 99))
def test_categorical(data: st.DataObject, batch: int, size: int, seed: int) -> None:
    mask = data.draw(masks(batch, size))
    if mask is not None:
        mask = mask | (torch.arange(size) == 0)  # keep one choice: otherwise there is no structure
    torch.manual_seed(seed)
    scores = torch.randn(batch, size, dtype=torch.float64)
    check_distribution(Categorical, [scores], mask, structures=choices)


@laws
@given(st.data(), st.integers(1, 3), st.integers(1, 4), st.integers(0, 99))
def test_subset(data: st.DataObject, batch: int, size: int, seed: int) -> None:
    mask = data.draw(masks(batch, size))
    torch.manual_seed(seed)
    scores = torch.randn(batch, size, dtype=torch.float64)
    check_distribution(Subset, [scores], mask, structures=subsets)


@laws
@given(st.data(), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
def test_linear_chain(
    data: st.DataObject, batch: int, length: int, num_states: int, seed: int
) -> None:
    mask = data.draw(masks(batch, length))
    torch.manual_seed(seed)
    unary = torch.randn(batch, length, num_states, dtype=torch.float64)
    transitions = torch.randn(batch, length - 1, num_states, num_states, dtype=torch.float64)
    check_distribution(LinearChain, [unary, transitions], mask, structures=labelings)


def bounded(
    unary: Tensor, transitions: Tensor, start: Tensor, end: Tensor, mask: Tensor | None
) -> Iterator[tuple[Tensor, Tensor]]:
    for labels, score in labelings(unary, transitions, mask):
        real = labels[labels >= 0]
        yield labels, score + start[real[:1]].sum() + end[real[-1:]].sum()


@settings(laws, max_examples=6)
@given(st.data(), st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
def test_linear_chain_with_start_and_end(
    data: st.DataObject, batch: int, length: int, num_states: int, seed: int
) -> None:
    mask = data.draw(masks(batch, length))
    torch.manual_seed(seed)
    sizes = ((length,), (length - 1, num_states), (), ())
    parts = [torch.randn(batch, *size, num_states, dtype=torch.float64) for size in sizes]

    def build(unary: Tensor, transitions: Tensor, start: Tensor, end: Tensor, mask: Any) -> Any:
        return LinearChain(unary, transitions, mask, start, end)

    check_distribution(build, parts, mask, structures=bounded)
