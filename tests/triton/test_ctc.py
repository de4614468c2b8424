"""CTC by the Triton kernels in the interpreter, compared with enumeration and with torch.

`Alignment.ctc` uses the kernels of alignments; the functions of `foveal.inference` have separate ones.
"""

import pytest
import torch
from torch.nn.functional import ctc_loss

from foveal.inference import ctc_log_partition, ctc_marginals
from tests.triton.structures import ctc_batch, enumerated_ctc, exact, served


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("blank", [0, 3])
def test_it_is_the_sum_over_all_sequences_that_spell_the_labels(
    dtype: torch.dtype, blank: int
) -> None:
    log_probs, targets, masks = ctc_batch(dtype)
    leaf = log_probs.clone().requires_grad_()
    with served() as launched:
        log_partition = ctc_log_partition(leaf, targets, *masks, blank=blank)
        marginals = ctc_marginals(log_probs, targets, *masks, blank=blank)
        alone = ctc_log_partition(log_probs, targets, *masks, blank=blank)
        (gradient,) = torch.autograd.grad(log_partition.sum(), leaf)
    assert {name.rpartition(".")[2] for name in launched} == {"inside", "outside", "join"}
    expected, true_marginals = enumerated_ctc(log_probs, targets, masks, blank)
    for found in (log_partition, alone):
        exact(found, expected, "log_partition")
    for found in (marginals, gradient):
        exact(found, true_marginals, "marginals")
    assert (expected == -torch.inf).any()


def test_loss_and_gradient_are_those_of_torch() -> None:
    torch.manual_seed(0)
    logits = (torch.rand(2, 60, 6) * 2 - 1) * 50
    targets, lengths = torch.randint(1, 6, (2, 20)), torch.tensor([20, 7])
    wide = logits.double().requires_grad_()
    frames = torch.tensor([60, 60])
    theirs = ctc_loss(
        wide.log_softmax(-1).transpose(0, 1), targets, frames, lengths, reduction="sum"
    )
    leaf = logits.requires_grad_()
    mask = torch.arange(20) < lengths[:, None]
    with served():
        ours = -ctc_log_partition(leaf.double().log_softmax(-1).float(), targets, None, mask).sum()
        (found,) = torch.autograd.grad(ours, leaf)
    (expected,) = torch.autograd.grad(theirs, wide)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-6, atol=0)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)


def test_nan_spoils_only_its_item_and_only_where_it_is_read() -> None:
    log_probs, targets = torch.randn(3, 6, 5), torch.tensor([[1, 2], [1, 2], [1, 2]])
    spoiled = log_probs.clone()
    spoiled[0, 3, 4] = torch.nan  # no label is 4
    spoiled[1, 3, 1] = torch.nan
    with served():
        expected, found = ctc_marginals(log_probs, targets), ctc_marginals(spoiled, targets)
    assert torch.equal(found[::2], expected[::2])
    assert found[1, :, :3].isnan().all()


def test_no_frames_spell_only_the_empty_text() -> None:
    log_probs, targets = torch.zeros(2, 0, 3), torch.tensor([[1], [1]])
    with served():
        found = ctc_log_partition(log_probs, targets, None, torch.tensor([[True], [False]]))
    assert found.tolist() == [-torch.inf, 0.0]
