"""The log-likelihood of labels by CTC, with the kernel and with PyTorch operations."""

from itertools import groupby, product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import ctc_loss
from torch.testing import assert_close

from foveal.distributions import Alignment
from foveal.errors import DerivativeError, ValueRangeError
from foveal.inference import _native, ctc_log_partition, ctc_marginals
from foveal.masking import mask_from_lengths


@pytest.fixture(params=["kernel", "reference"], autouse=True)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "reference":
        monkeypatch.setattr(_native, "_IN_USE", False)
    elif not _native._IN_USE:
        pytest.skip("foveal-native is not in use")
    return request.param


def gradient(total: Tensor, leaf: Tensor) -> Tensor:
    return torch.autograd.grad(total, leaf)[0]


def enumerated(log_probs: Tensor, targets: list[int], blank: int) -> tuple[Tensor, Tensor]:
    """Return log Z and the marginals (T, V) of one item, from all sequences of symbols."""
    frames, symbols = log_probs.shape
    marginals, total = torch.zeros_like(log_probs), log_probs.new_zeros(())
    for path in product(range(symbols), repeat=frames):
        if [symbol for symbol, _ in groupby(path) if symbol != blank] == targets:
            mass = sum((log_probs[t, v] for t, v in enumerate(path)), log_probs.new_zeros(())).exp()
            total = total + mass
            for t, v in enumerate(path):
                marginals[t, v] += mass
    return total.log(), marginals / total if total > 0 else marginals


@pytest.mark.parametrize(
    "targets", [[], [1], [1, 2], [1, 1], [2, 1, 2], [1, 1, 2], [1, 2, 2, 1], [1] * 4]
)
@pytest.mark.parametrize("blank", [0, 3])
def test_it_is_the_sum_over_all_sequences_that_spell_the_labels(
    targets: list[int], blank: int
) -> None:
    torch.manual_seed(0)
    log_probs = torch.randn(5, 4, dtype=torch.float64)
    log_probs[2, 1], log_probs[4, 0] = -torch.inf, -torch.inf
    expected, marginals = enumerated(log_probs, targets, blank)
    given = log_probs[None], torch.tensor([targets], dtype=torch.long)
    assert_close(ctc_log_partition(*given, blank=blank)[0], expected)
    assert_close(ctc_marginals(*given, blank=blank)[0], marginals)
    leaf = given[0].clone().requires_grad_()
    found = gradient(ctc_log_partition(leaf, given[1], blank=blank).sum(), leaf)
    assert_close(found[0], marginals)
    assert not found[leaf == -torch.inf].any()


@pytest.mark.parametrize("size", [(50, 10, 8, 40), (500, 60, 4, 30), (80, 33, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_loss_and_gradient_are_those_of_torch(
    size: tuple[int, int, int, int], dtype: torch.dtype
) -> None:
    """Torch computes in float64: its gradient in float32 is off by more than 1e-5 at 500 frames."""
    frames, labels, batch, symbols = size
    torch.manual_seed(0)
    logits = torch.randn(batch, frames, symbols, dtype=torch.float64)
    targets = torch.randint(1, symbols, (batch, labels))
    num_frames = torch.randint(labels, frames + 1, (batch,))
    num_labels = torch.randint(0, labels // 2, (batch,))
    num_frames[0], num_labels[0] = frames, min(labels, frames // 2)
    wide = logits.requires_grad_()
    theirs = ctc_loss(
        wide.log_softmax(-1).transpose(0, 1), targets, num_frames, num_labels, reduction="sum"
    )
    leaf = logits.detach().to(dtype).requires_grad_()
    masks = mask_from_lengths(num_frames, frames), mask_from_lengths(num_labels, labels)
    ours = -ctc_log_partition(leaf.log_softmax(-1), targets, *masks).sum()
    assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
    found, expected = gradient(ours, leaf).double(), gradient(theirs, wide)
    assert_close(found, expected, rtol=0, atol=1e-5)


def test_labels_that_do_not_fit_are_impossible_and_have_no_gradient() -> None:
    leaf = torch.randn(4, 3, 4).requires_grad_()
    targets = torch.tensor([[1, 2, 3, 1], [1, 1, 2, 0], [1, 2, 0, 0], [0, 0, 0, 0]])
    masks = torch.ones(4, 3, dtype=torch.bool), mask_from_lengths(torch.tensor([4, 3, 2, 0]), 4)
    found = ctc_log_partition(leaf, targets, *masks)
    assert found.isfinite().tolist() == [False, False, True, True]
    assert found[:2].tolist() == [-torch.inf, -torch.inf]
    grad = gradient(found.sum(), leaf)
    assert not grad[:2].any()
    assert_close(grad[2:].sum(-1), torch.ones(2, 3))
    forbidden = leaf.detach().clone()
    forbidden[2, 1] = -torch.inf
    assert ctc_log_partition(forbidden, targets, *masks)[2] == -torch.inf
    assert not ctc_marginals(forbidden, targets, *masks)[2].any()


def test_no_frames_spell_only_the_empty_text() -> None:
    log_probs, targets = torch.zeros(2, 0, 3), torch.tensor([[1], [1]])
    mask = torch.tensor([[True], [False]])
    assert ctc_log_partition(log_probs, targets, None, mask).tolist() == [-torch.inf, 0.0]
    hidden = torch.zeros(2, 2, dtype=torch.bool)
    found = ctc_log_partition(torch.randn(2, 2, 3), targets, hidden, mask)
    assert found.tolist() == [-torch.inf, 0.0]


def padded_case() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Log-probabilities, labels, and masks with holes."""
    torch.manual_seed(1)
    log_probs = torch.randn(3, 40, 6).log_softmax(-1)
    return log_probs, torch.randint(1, 6, (3, 18)), torch.rand(3, 40) < 0.9, torch.rand(3, 18) < 0.6


def test_padding_changes_nothing_to_the_bit(implementation: str) -> None:
    log_probs, targets, frame_mask, target_mask = padded_case()
    spoiled = log_probs.masked_fill(~frame_mask[..., None], torch.nan)
    odd = targets.masked_fill(~target_mask, -7)
    for function in (ctc_log_partition, ctc_marginals):
        expected = function(log_probs, targets, frame_mask, target_mask)
        assert torch.equal(function(spoiled, odd, frame_mask, target_mask), expected)
        if implementation == "kernel":
            for item in range(3):
                frames, labels = frame_mask[item], target_mask[item]
                alone = function(log_probs[item, frames][None], targets[item, labels][None])
                found = expected[item][frames] if expected.ndim > 1 else expected[item]
                assert torch.equal(alone[0], found)


def test_an_item_does_not_depend_on_its_batch(implementation: str) -> None:
    """The kernel computes items one by one; operations of PyTorch may round differently."""
    tolerance = 0.0 if implementation == "kernel" else 1e-6
    log_probs, targets, frame_mask, target_mask = padded_case()
    together = ctc_marginals(log_probs, targets, frame_mask, target_mask)
    for item in range(3):
        one = slice(item, item + 1)
        alone = ctc_marginals(log_probs[one], targets[one], frame_mask[one], target_mask[one])
        assert_close(alone[0], together[item], rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", ["wide", "far", "forbidden", "even"])
def test_no_range_of_scores_costs_accuracy(kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    log_probs = (torch.rand(2, 150, 8, generator=generator) * 2 - 1) * 50
    if kind == "far":
        log_probs = log_probs * 100 - 5000
    if kind == "forbidden":
        chosen = torch.rand(log_probs.shape, generator=generator) < 0.2
        log_probs = log_probs.masked_fill(chosen, -torch.inf)
    if kind == "even":
        log_probs = torch.zeros_like(log_probs)
    targets = torch.randint(1, 8, (2, 40), generator=generator)
    wide = Alignment.ctc(log_probs.double(), targets)
    expected = wide.marginals()[..., 1:, :-1, 1] + wide.marginals()[..., 1:, 1:, 0]
    found = ctc_marginals(log_probs, targets)
    assert_close(found[..., 0].double(), expected[..., ::2].sum(-1), rtol=0, atol=1e-5)
    assert_close(
        ctc_log_partition(log_probs, targets).double(), wide.log_partition(), rtol=1e-6, atol=1e-4
    )


def test_second_derivatives_are_exact_and_third_ones_an_error() -> None:
    torch.manual_seed(0)
    leaf = torch.randn(2, 5, 4, dtype=torch.float64).requires_grad_()
    targets, mask = torch.tensor([[1, 1], [3, 2]]), torch.tensor([[True, False], [True, True]])
    assert torch.autograd.gradcheck(lambda x: ctc_log_partition(x, targets, None, mask), leaf)
    assert torch.autograd.gradgradcheck(lambda x: ctc_log_partition(x, targets, None, mask), leaf)
    assert torch.autograd.gradcheck(lambda x: ctc_marginals(x, targets, None, mask), leaf)
    total = ctc_log_partition(leaf, targets, None, mask).sum()
    (first,) = torch.autograd.grad(total, leaf, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), leaf, create_graph=True)
    with pytest.raises(DerivativeError):
        torch.autograd.grad(second.sum(), leaf)


def test_nan_spoils_only_its_item_and_only_where_it_is_read() -> None:
    log_probs, targets = torch.randn(3, 6, 5), torch.tensor([[1, 2], [1, 2], [1, 2]])
    expected = ctc_marginals(log_probs, targets)
    spoiled = log_probs.clone()
    spoiled[0, 3, 4] = torch.nan  # no label is 4
    spoiled[1, 3, 1] = torch.nan
    found = ctc_marginals(spoiled, targets)
    assert torch.equal(found[::2], expected[::2])
    assert found[1, :, :3].isnan().all()
    assert ctc_log_partition(spoiled, targets).isnan().tolist() == [False, True, False]


def test_half_precision_gives_float32_and_other_transforms_work() -> None:
    log_probs, targets = torch.randn(2, 6, 5).bfloat16(), torch.tensor([[1, 2], [3, 3]])
    found = ctc_log_partition(log_probs, targets)
    assert_close(found, ctc_log_partition(log_probs.float(), targets))
    function = lambda x: ctc_log_partition(x, targets).sum()  # noqa: E731
    assert_close(torch.func.grad(function)(log_probs.float()), ctc_marginals(log_probs, targets))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"targets": torch.tensor([[1, 5]])}, ValueRangeError, "got 5"),
        ({"targets": torch.tensor([[1, 0]])}, ValueRangeError, "other than the blank 0"),
        ({"blank": 5}, ValueRangeError, "blank must be a symbol"),
    ],
)
def test_the_messages(change: dict[str, Any], error: type[Exception], words: str) -> None:
    given: dict[str, Any] = {
        "log_probs": torch.zeros(1, 4, 5),
        "targets": torch.tensor([[1, 2]]),
        **change,
    }
    with pytest.raises(error, match=words):
        ctc_log_partition(**given)
