"""Subsets of k items with the kernels: ops, samples, export."""

from itertools import combinations

import pytest
import torch
from torch import Tensor

from foveal.distributions import KSubset

pytest.importorskip("foveal_native", reason="foveal-native is not installed")

OPS = torch.ops.foveal_native
CHECKS = ("test_schema", "test_faketensor")


@pytest.mark.parametrize("with_mask", [True, False])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_the_ops_are_what_their_schemas_say(with_mask: bool, k: int) -> None:
    torch.manual_seed(0)
    scores, mask = torch.randn(19, 7), torch.rand(19, 7) > 0.3 if with_mask else None
    for op in (OPS.k_subset_log_partition, OPS.k_subset_marginals):
        torch.library.opcheck(op, (scores, mask, k), test_utils=CHECKS)
    uniforms = torch.rand(2, 19, 7, dtype=torch.float64)
    torch.library.opcheck(OPS.k_subset_sample, (scores, mask, k, uniforms), test_utils=CHECKS)
    _, found, kept = OPS.k_subset_marginals(scores, mask, k)
    saved = (found, kept, mask, torch.randn_like(scores))
    torch.library.opcheck(OPS.k_subset_tangent, saved, test_utils=CHECKS)


def test_samples_have_their_frequencies() -> None:
    torch.manual_seed(1)
    subset = KSubset(torch.randn(5, dtype=torch.float64), 2)
    values = torch.zeros(10, 5, dtype=torch.bool)
    for row, chosen in zip(values, combinations(range(5), 2), strict=True):
        row[list(chosen)] = True
    count = 20_000
    drawn = subset.sample((count,))
    frequencies = (drawn[:, None] == values).all(-1).double().mean(0)
    expected = subset.log_prob(values).exp()
    assert frequencies.sum() == pytest.approx(1)
    assert ((frequencies - expected).abs() < 5 * (expected / count).sqrt()).all()


def test_an_exported_program_runs_the_kernels() -> None:
    class Step(torch.nn.Module):
        def forward(self, scores: Tensor) -> Tensor:
            return KSubset(scores, 2).marginals()

    scores = torch.randn(3, 4)
    program = torch.export.export(Step(), (scores,))
    assert any("k_subset_marginals" in str(node.target) for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(scores), Step()(scores))
