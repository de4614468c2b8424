"""Inference functions check that their arguments fit together, and raise clear errors."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from foveal import inference
from foveal.errors import ShapeError, ValueRangeError
from foveal.inference.chain._functions import chain_node_marginals, chain_sample

PAIRS, SHARED_MASK = torch.zeros(1, 1, 3, 3), torch.ones(1, 4, dtype=torch.bool)
LABELS = torch.ones(2, 4, dtype=torch.long)
# Each function with scores of four positions for two items; the mask is the last argument.
TAKE_A_MASK: dict[str, Callable[[Tensor], object]] = {
    "chain": lambda m: inference.chain_log_partition(torch.zeros(2, 4, 3), PAIRS, m),
    "chain nodes": lambda m: chain_node_marginals(torch.zeros(2, 4, 3), PAIRS, m),
    "chain best": lambda m: inference.chain_best(torch.zeros(2, 4, 3), PAIRS, m),
    "chain sample": lambda m: chain_sample(torch.zeros(2, 4, 3), PAIRS, m, num_samples=1),
    "semi-Markov": lambda m: inference.semi_markov_marginals(torch.zeros(2, 4, 2, 3), PAIRS, m),
    "subset": lambda m: inference.k_subset_log_partition(torch.zeros(2, 4), 2, m),
    "projective": lambda m: inference.projective_marginals(torch.zeros(2, 5, 5), m),
    "spanning": lambda m: inference.spanning_best(torch.zeros(2, 5, 5), m),
    "span": lambda m: inference.span_log_partition(torch.zeros(2, 4, 4, 1), m),
    "source": lambda m: inference.alignment_marginals(torch.zeros(2, 5, 3, 3), m),
    "target": lambda m: inference.alignment_best(torch.zeros(2, 3, 5, 3), None, m),
    "frames": lambda m: inference.ctc_marginals(torch.zeros(2, 4, 3), LABELS, m),
    "labels": lambda m: inference.ctc_log_partition(torch.zeros(2, 4, 3), LABELS, None, m),
}


@pytest.mark.parametrize("name", TAKE_A_MASK)
def test_a_mask_of_another_shape_is_refused_with_the_way_to_expand_it(name: str) -> None:
    with pytest.raises(ShapeError, match=r"got \(1, 4\).*mask\.expand\(2, 4\)"):
        TAKE_A_MASK[name](SHARED_MASK)
    TAKE_A_MASK[name](SHARED_MASK.expand(2, 4))


@pytest.mark.parametrize("name", TAKE_A_MASK)
def test_a_mask_of_numbers_is_refused(name: str) -> None:
    with pytest.raises(ValueRangeError, match=r"got torch\.float32 on cpu.*\.bool\(\)"):
        TAKE_A_MASK[name](torch.ones(2, 4))


@pytest.mark.parametrize("shape", [(1, 1, 2, 2), (3, 1, 3, 3), (1, 2, 3, 3), (3, 3)], ids=str)
def test_transitions_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="transitions must have the shape"):
        inference.chain_log_partition(torch.zeros(2, 4, 3), torch.zeros(shape))
    with pytest.raises(ShapeError, match="transitions must have the shape"):
        inference.semi_markov_log_partition(torch.zeros(2, 4, 2, 3), torch.zeros(shape))


def test_scores_of_another_shape_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"unary must have the shape \(B, T, K\)"):
        inference.chain_log_partition(torch.zeros(2, 3, 0), torch.zeros(1, 1, 0, 0))
    with pytest.raises(ShapeError, match=r"arcs must have the shape \(B, n\+1, n\+1\)"):
        inference.spanning_log_partition(torch.zeros(2, 3, 4))
    with pytest.raises(ShapeError, match=r"unsqueeze\(0\)"):
        inference.k_subset_log_partition(torch.zeros(4), 2)
    with pytest.raises(ValueRangeError, match="k must be at least 0, got -1"):
        inference.k_subset_log_partition(torch.zeros(2, 4), -1)
