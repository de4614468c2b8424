"""Structures over the cells of a grid, against enumeration of every structure."""

from collections.abc import Callable
from itertools import pairwise, product

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from foveal.attention import (
    Attention,
    Layout,
    Memory,
    grid_memory,
    path_attention,
    segment_attention,
)
from foveal.attention._grids import PathScorer
from foveal.attention._structured_scorers import SelectionScorer

ROWS, COLUMNS = 3, 4


def assert_near(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-5)


def scored(attention: Attention, memory: Memory) -> tuple[Float[Tensor, "h w"], Tensor]:
    """Return the scores of the cells for one query, and the resulting weights."""
    query = torch.randn(1, 5, generator=torch.Generator().manual_seed(7))
    remembered = attention.remember(memory)
    assert isinstance(attention.scorer, SelectionScorer | PathScorer)
    (scores,) = attention.scorer.inner(query, remembered.keys)
    return scores.view(ROWS, -1), attention(query, remembered).weights.view(ROWS, -1)


@pytest.fixture
def memory() -> Memory:
    return grid_memory(torch.randn(ROWS, COLUMNS, 6, generator=torch.Generator().manual_seed(3)))


def test_a_path_has_the_marginals_of_all_paths(memory: Memory) -> None:
    torch.manual_seed(0)
    attention = path_attention(5, 6, total=None)
    scores, weights = scored(attention, memory)
    assert isinstance(attention.scorer, PathScorer)
    skip_on, enter, leave, *apart = attention.scorer.steps.tolist()
    total, expected = 0.0, torch.zeros(ROWS, COLUMNS)
    for states in product(range(-1, ROWS), repeat=COLUMNS):  # -1 skips a column
        score = sum(scores[r, c].item() for c, r in enumerate(states) if r >= 0)
        for one, other in pairwise(states):
            if one < 0 or other < 0:
                score += skip_on if one == other else enter if one < 0 else leave
            else:
                score += apart[min(abs(one - other), 2)]
        mass = torch.tensor(score).exp().item()
        total += mass
        for c, r in enumerate(states):
            if r >= 0:
                expected[r, c] += mass
    assert_near(weights, expected / total)


def test_a_run_ends_with_its_row(memory: Memory) -> None:
    """A row of the grid has the same marginals as a memory with only this row."""
    torch.manual_seed(1)
    attention = segment_attention(5, 6)
    _, weights = scored(attention, memory)
    for number, row in enumerate(memory.values.view(ROWS, COLUMNS, -1)):
        query = torch.randn(1, 5, generator=torch.Generator().manual_seed(7))
        alone = attention(query, attention.remember(Memory(row))).weights[0]
        assert_near(weights[number], alone)
    flat = attention.remember(memory._replace(layout=Layout()))
    query = torch.randn(1, 5, generator=torch.Generator().manual_seed(7))
    assert (attention(query, flat).weights.view(ROWS, -1) - weights).abs().max() > 1e-4


def test_a_run_ends_with_its_row_wherever_the_row_begins(memory: Memory) -> None:
    """Rows may begin with padding, contain a hole, or have no real cell."""
    torch.manual_seed(1)
    attention = segment_attention(5, 6)
    mask = torch.tensor([[1, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]]).bool()
    masks = torch.stack([mask, mask.flip(0), mask.clone().index_fill(0, torch.tensor(1), False)])
    query = torch.randn(3, 2, 5)
    values = memory.values.expand(3, -1, -1)
    grids = memory._replace(values=values, mask=masks.flatten(1))
    weights = attention(query, attention.remember(grids)).weights.view(3, 2, ROWS, COLUMNS)
    for item in range(3):
        for number, row in enumerate(memory.values.view(ROWS, COLUMNS, -1)):
            alone = attention.remember(Memory(row, masks[item, number]))
            assert_near(weights[item, :, number], attention(query[item], alone).weights)


@pytest.mark.parametrize("make", [path_attention, segment_attention])
def test_padding_around_an_image_changes_nothing(
    make: Callable[..., Attention], memory: Memory
) -> None:
    torch.manual_seed(2)
    attention = make(5, 6, total=1.0)
    query = torch.randn(2, 5)
    alone = attention(query, attention.remember(memory))
    wide = torch.full((ROWS + 1, COLUMNS + 2, 6), torch.nan)
    mask = torch.zeros(ROWS + 1, COLUMNS + 2, dtype=torch.bool)
    wide[:ROWS, :COLUMNS], mask[:ROWS, :COLUMNS] = memory.values.view(ROWS, COLUMNS, -1), True
    padded = attention(query, attention.remember(grid_memory(wide)._replace(mask=mask.flatten())))
    assert_near(padded.context, alone.context)
    cells = padded.weights.view(2, ROWS + 1, COLUMNS + 2)
    assert_near(cells[:, :ROWS, :COLUMNS].flatten(1), alone.weights)
    assert not cells[:, ~mask].any()
    assert_near(alone.weights.sum(-1), torch.ones(2))
