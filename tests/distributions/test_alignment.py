"""Alignment against the laws, edit distance, CTC, and float64."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor
from torch.nn.functional import ctc_loss
from torch.testing import assert_close

from foveal.distributions import Alignment
from foveal.errors import ValueRangeError
from foveal.masking import mask_from_lengths
from foveal.testing import check_distribution

pytestmark = pytest.mark.slow


def paths(moves: Tensor, mask: Tensor | None) -> Iterator[tuple[Tensor, Tensor]]:
    """Enumerate every path; the mask holds the source items, then the target items."""
    num_rows, num_columns, _ = moves.shape
    num_source = num_rows - 1
    bits = [True] * (num_source + num_columns - 1) if mask is None else mask.tolist()
    rows = [0, *(i + 1 for i, real in enumerate(bits[:num_source]) if real)]
    columns = [0, *(j + 1 for j, real in enumerate(bits[num_source:]) if real)]

    def to(i: int, j: int) -> Iterator[list[tuple[int, int, int]]]:
        if i == j == 0:
            yield []
        for move, (up, left) in enumerate([(1, 1), (1, 0), (0, 1)]):
            if i >= up and j >= left:
                for path in to(i - up, j - left):
                    yield [*path, (rows[i], columns[j], move)]

    for path in to(len(rows) - 1, len(columns) - 1):
        value = torch.zeros(moves.shape, dtype=torch.bool)
        score = moves.new_zeros(())
        for i, j, move in path:
            value[i, j, move] = True
            score = score + moves[i, j, move]
        yield value, score


def build(moves: Tensor, mask: Tensor | None) -> Alignment:
    if mask is None:
        return Alignment(moves)
    num_source = moves.shape[-3] - 1
    return Alignment(moves, mask[..., :num_source], mask[..., num_source:])


def random_moves(*shape: int) -> Tensor:
    return torch.randn(*shape, 3, dtype=torch.float64)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.data(), st.integers(1, 2), st.integers(0, 3), st.integers(0, 3), st.integers(0, 99))
def test_the_laws(
    data: st.DataObject, batch: int, num_source: int, num_target: int, seed: int
) -> None:
    size = num_source + num_target
    bits = data.draw(st.lists(st.booleans(), min_size=batch * size, max_size=batch * size))
    mask = torch.tensor(bits, dtype=torch.bool).reshape(batch, size)
    torch.manual_seed(seed)
    moves = random_moves(batch, num_source + 1, num_target + 1)
    check_distribution(build, [moves], data.draw(st.sampled_from([None, mask])), structures=paths)


def test_the_laws_on_a_square_with_masks_on_both_sides() -> None:
    torch.manual_seed(0)
    mask = torch.tensor([[True, False, True, False, True, True], [False] * 3 + [True, True, False]])
    check_distribution(build, [random_moves(2, 4, 4)], mask, structures=paths)


def edit_distance(one: str, other: str) -> int:
    before = list(range(len(other) + 1))
    for i, a in enumerate(one):
        row = [i + 1]
        for j, b in enumerate(other):
            row.append(min(before[j] + (a != b), before[j + 1] + 1, row[j] + 1))
        before = row
    return before[-1]


@pytest.mark.parametrize(
    ("one", "other"), [("kitten", "sitting"), ("abc", "abc"), ("a", "bcdef"), ("flaw", "lawn")]
)
def test_the_best_score_of_unit_costs_is_the_edit_distance(one: str, other: str) -> None:
    moves = torch.full((len(one) + 1, len(other) + 1, 3), -1.0)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            moves[i + 1, j + 1, 0] = -float(a != b)
    costs = Alignment(moves)
    assert costs.score(costs.argmax()) == -edit_distance(one, other)


def test_ctc_is_the_ctc_loss_of_torch() -> None:
    torch.manual_seed(0)
    frames, labels, symbols = 9, 4, 5
    log_probs = (
        torch.randn(6, frames, symbols, dtype=torch.float64).log_softmax(-1).requires_grad_()
    )
    targets = torch.tensor(
        [[1, 2, 3, 4], [1, 1, 2, 2], [3, 3, 3, -1], [2, 7, 7, 7], [1, 1, 1, 1], [0, 0, 0, 0]]
    )
    num_frames, num_labels = torch.tensor([9, 8, 9, 4, 6, 5]), torch.tensor([4, 4, 3, 1, 4, 0])
    model = Alignment.ctc(
        log_probs,
        targets,
        frame_mask=mask_from_lengths(num_frames, frames),
        target_mask=mask_from_lengths(num_labels, labels),
    )
    inner = torch.where(mask_from_lengths(num_labels, labels), targets, 1)
    losses = ctc_loss(log_probs.transpose(0, 1), inner, num_frames, num_labels, reduction="none")
    assert_close(model.log_partition(), -losses)
    assert losses[4] == torch.inf  # four equal labels need seven frames

    # torch's gradient includes the softmax's normalization, so the reference is the marginals.
    (grad,) = torch.autograd.grad(model.log_partition()[:4].sum(), log_probs)
    assert_close(
        grad.sum(-1),
        mask_from_lengths(num_frames, frames).double() * (torch.arange(6) < 4)[:, None],
    )


def test_ctc_with_holes_reads_what_is_left_and_another_blank() -> None:
    torch.manual_seed(0)
    log_probs = torch.randn(6, 4, dtype=torch.float64).log_softmax(-1)
    frame_mask = torch.tensor([True, False, True, True, False, True])
    target_mask = torch.tensor([False, True, False, True])
    targets = torch.tensor([3, 1, 0, 1])
    holes = Alignment.ctc(
        log_probs, targets, frame_mask=frame_mask, target_mask=target_mask, blank=3
    )
    dense = Alignment.ctc(log_probs[frame_mask], targets[target_mask], blank=3)
    assert_close(holes.log_partition(), dense.log_partition())
    sizes = torch.tensor([4]), torch.tensor([2])
    frames = log_probs[frame_mask].unsqueeze(1)
    loss = ctc_loss(frames, torch.tensor([[1, 1]]), *sizes, blank=3, reduction="sum")
    assert_close(dense.log_partition(), -loss)


def test_ctc_emits_every_frame_once() -> None:
    log_probs = torch.randn(7, 5).log_softmax(-1)
    marginals = Alignment.ctc(log_probs, torch.tensor([2, 2, 4])).marginals()
    emitted = marginals[1:, :-1, 1] + marginals[1:, 1:, 0]
    assert_close(emitted.sum(-1), torch.ones(7))


def monotone_maps(num_source: int, num_target: int) -> Iterator[list[int]]:
    if num_target == 0:
        yield []
        return
    for rest in monotone_maps(num_source, num_target - 1):
        for source in range(rest[-1] if rest else 0, num_source):
            yield [*rest, source]


def test_one_to_many_sums_over_monotone_maps() -> None:
    torch.manual_seed(0)
    scores = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    total = torch.stack(
        [scores[chosen, torch.arange(4)].sum() for chosen in monotone_maps(3, 4)]
    ).logsumexp(0)
    model = Alignment.one_to_many(scores)
    assert_close(model.log_partition(), total)
    (attention,) = torch.autograd.grad(total, scores)
    assert_close(model.marginals()[1:, 1:, 2], attention)
    assert_close(attention.sum(0), torch.ones(4, dtype=torch.float64))


def test_one_to_many_skips_padding_on_both_sides() -> None:
    torch.manual_seed(0)
    scores = torch.randn(4, 5, dtype=torch.float64)
    source_mask = torch.tensor([True, False, True, True])
    target_mask = torch.tensor([True, True, False, True, False])
    holes = Alignment.one_to_many(scores, source_mask=source_mask, target_mask=target_mask)
    dense = Alignment.one_to_many(scores[source_mask][:, target_mask])
    assert_close(holes.log_partition(), dense.log_partition())


@pytest.mark.parametrize("offset", [0.0, 3.0])
@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_float32_is_within_1e_5_of_float64(scale: float, offset: float) -> None:
    generator = torch.Generator().manual_seed(0)
    moves = (torch.rand(2, 61, 61, 3, generator=generator) * 2 - 1) * scale
    direction = offset + torch.randn(moves.shape, generator=generator)
    found = []
    for dtype in (torch.float32, torch.float64):
        leaf = moves.to(dtype).requires_grad_()
        marginals = Alignment(leaf).marginals()
        (grad,) = torch.autograd.grad((marginals * direction.to(dtype)).sum(), leaf)
        found.append((marginals.detach().double(), grad.double()))
    assert (found[0][0] - found[1][0]).abs().max() < 1e-5
    assert (found[0][1] - found[1][1]).abs().max() < 3e-5


def test_a_tall_grid_equals_the_wide_one_turned() -> None:
    torch.manual_seed(0)
    moves = random_moves(2, 6, 3)
    mask = torch.tensor([[True, False, True, True, True], [True, True, True, False, False]])
    turned = moves.transpose(1, 2)[..., [0, 2, 1]]
    tall, wide = Alignment(moves, source_mask=mask), Alignment(turned, target_mask=mask)
    assert_close(tall.log_partition(), wide.log_partition())
    assert_close(tall.marginals(), wide.marginals().transpose(1, 2)[..., [0, 2, 1]])
    assert torch.equal(tall.argmax(), wide.argmax().transpose(1, 2)[..., [0, 2, 1]])


def test_vmap_agrees_with_one_call_after_another() -> None:
    torch.manual_seed(0)
    moves = random_moves(3, 3, 4)
    mask = torch.tensor([[True, True], [True, False], [False, False]])

    def loss(one: Tensor, real: Tensor) -> Tensor:
        return Alignment(one, real).marginals().square().sum()

    expected = [torch.func.grad(loss)(*item) for item in zip(moves, mask, strict=True)]
    assert_close(torch.vmap(torch.func.grad(loss))(moves, mask), torch.stack(expected))


def test_values_that_are_no_path_are_refused() -> None:
    model = Alignment(torch.zeros(2, 3, 3))
    broken = model.argmax()
    broken[1, 2] = False
    with pytest.raises(ValueRangeError, match="one path"):
        model.score(broken)
    with pytest.raises(ValueRangeError, match="blank"):
        Alignment.ctc(torch.zeros(3, 2), torch.tensor([1, 0]))
    with pytest.raises(ValueRangeError, match=r"in 0\.\.1"):
        Alignment.ctc(torch.zeros(3, 2), torch.tensor([2]))
