"""The ops refuse arguments that would cause reads out of bounds, and name the wrong argument."""

from typing import Any

import pytest
import torch

pytest.importorskip("foveal_native", reason="foveal-native is not installed")

OPS = torch.ops.foveal_native
UNARY, TABLE, MASK = torch.zeros(2, 4, 3), torch.zeros(1, 1, 3, 3), torch.ones(2, 4) > 0
ARCS = torch.zeros(2, 5, 5)


def refused(op: str, *arguments: Any) -> str:
    with pytest.raises(RuntimeError) as found:
        getattr(OPS, op)(*arguments)
    return str(found.value)


@pytest.mark.parametrize(
    "mask", [MASK[:1], MASK[:, :3], MASK.float(), MASK[None], MASK.to("meta")], ids=str
)
def test_a_mask_must_have_an_entry_for_every_place(mask: torch.Tensor) -> None:
    for op, *scores in (
        ("chain_log_partition", UNARY, TABLE),
        ("semi_markov_best", UNARY.unsqueeze(2), TABLE),
        ("span_log_partition", torch.zeros(2, 4, 4)),
        ("alignment_marginals", torch.zeros(2, 3, 3, 3)),
    ):
        assert "mask must be" in refused(op, *scores, mask) or mask.is_meta
    assert "mask must be" in refused("projective_best", ARCS, mask, True) or mask.is_meta
    assert "mask must be" in refused("spanning_best", ARCS, mask, True) or mask.is_meta
    assert "mask must be" in refused("k_subset_marginals", UNARY[..., 0], mask, 2) or mask.is_meta


def test_all_else_must_fit_the_scores() -> None:
    uniforms = torch.rand(3, 2, 4)  # float32
    assert "uniforms must be Double" in refused("chain_sample", UNARY, TABLE, None, uniforms)
    assert "uniforms must be" in refused("span_sample", ARCS, None, torch.rand(3, 2, 4).double())
    assert "seeds must be Long (3, 2)" in refused(
        "spanning_sample", ARCS, None, torch.zeros(3, 1).long(), True
    )
    assert "transitions must be Float (1, 1, 3, 3)" in refused(
        "chain_best", UNARY, torch.zeros(1, 1, 2, 2), None
    )
    assert "transitions must be Float (1, 3, 3, 3)" in refused(
        "chain_best", UNARY, torch.zeros(1, 2, 3, 3), None
    )
    _, found, kept = OPS.projective_marginals(ARCS, None, True, True)
    for wrong in (kept[:1], kept.double(), kept[0]):
        assert "kept must be" in refused("projective_tangent", found, wrong, None, ARCS, True)
    assert "direction must be" in refused("projective_tangent", found, kept, None, ARCS[:1], True)
    _, _, kept, safe = OPS.chain_nodes(UNARY, TABLE, None)
    assert "one table" in refused(
        "chain_nodes_tangent", UNARY, torch.zeros(2, 1, 3, 3), None, kept, safe, UNARY
    )
    assert "k, must be at least 0" in refused("k_subset_marginals", UNARY[..., 0], None, -1)


def test_no_states_and_no_words() -> None:
    assert "a state" in refused("chain_best", torch.zeros(2, 3, 0), torch.zeros(1, 1, 0, 0), None)
    assert OPS.spanning_log_partition(torch.zeros(2, 1, 1), None, True).tolist() == [0.0, 0.0]
    assert OPS.chain_log_partition(UNARY[:0], TABLE, MASK[:0]).shape == (0,)


def test_more_items_than_there_are_take_no_memory() -> None:
    """Any k > n is as impossible as n + 1, even if its tables would fill the memory."""
    log_partition, found, kept = OPS.k_subset_marginals(torch.zeros(2, 3), None, 10**15)
    assert log_partition.tolist() == [-torch.inf, -torch.inf]
    assert found.sum() == 0
    assert kept.shape == (16, 3, 4)
