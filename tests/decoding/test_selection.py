"""The k largest entries of rows of any length, with the fastest method for each size."""

import pytest
import torch

from foveal.decoding._selection import largest


@pytest.mark.parametrize("size", [1, 3, 60, 300, 319, 320, 4095, 4096, 5001, 40_000])
@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_the_largest_are_those_of_a_sort(size: int, k: int) -> None:
    generator = torch.Generator().manual_seed(size)
    # All numbers are distinct, and some rows have few possible entries.
    rows = torch.stack([torch.randperm(size, generator=generator).double() for _ in range(4)])
    rows[0, : size // 2] = -torch.inf
    expected = rows.sort(1, descending=True)
    found = largest(rows, k)
    assert torch.equal(found.values, expected.values[:, :k])
    possible = found.values > -torch.inf
    assert torch.equal(found.places[possible], expected.indices[:, :k][possible])
    assert found.places.max() < size


def test_padding_is_never_chosen() -> None:
    """In a row with fewer possible entries than k, all returned positions are inside the row."""
    rows = torch.full((2, 300), -torch.inf)
    rows[:, 7] = 1.0
    found = largest(rows, 5)
    assert found.places[:, 0].tolist() == [7, 7]
    assert found.places.max() < 300


@pytest.mark.parametrize("size", [3, 60, 100, 150, 191, 300, 4096])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_equal_entries_are_chosen_alike_in_any_batch(size: int, k: int) -> None:
    generator = torch.Generator().manual_seed(size)
    rows = torch.randint(3, (20, size), generator=generator).float()
    together = largest(rows, k)
    for number in (1, 7, 8):
        part = largest(rows[:number], k)
        assert torch.equal(part.places, together.places[:number])
