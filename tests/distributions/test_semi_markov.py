"""SemiMarkov against the laws, against the linear chain, and against float64."""

from collections.abc import Iterator
from itertools import product

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor
from torch.testing import assert_close

from foveal.distributions import LinearChain, SemiMarkov
from foveal.errors import ShapeError, ValueRangeError
from foveal.testing import check_distribution

pytestmark = pytest.mark.slow


def compositions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Enumerate every way to write `total` as a sum of parts of at most `largest`."""
    if total == 0:
        yield ()
    for part in range(1, min(total, largest) + 1):
        for rest in compositions(total - part, largest):
            yield (part, *rest)


def segmentations(
    segments: Tensor, transitions: Tensor, mask: Tensor | None
) -> Iterator[tuple[Tensor, Tensor]]:
    length, num_lengths, num_labels = segments.shape
    real = [t for t in range(length) if mask is None or mask[t]]
    for sizes in compositions(len(real), num_lengths):
        for labels in product(range(num_labels), repeat=len(sizes)):
            value = torch.full((length,), -1)
            score = segments.new_zeros(())
            place = 0
            for i, (size, label) in enumerate(zip(sizes, labels, strict=True)):
                t = real[place]
                value[t] = label
                score = score + segments[t, size - 1, label]
                if i > 0:
                    score = score + transitions[t - 1, labels[i - 1], label]
                place += size
            yield value, score


@st.composite
def masks(draw: st.DrawFn, batch: int, size: int) -> Tensor | None:
    """None, or any pattern: right padding, left padding, holes, only padding."""
    if draw(st.booleans()):
        return None
    bits = draw(st.lists(st.booleans(), min_size=batch * size, max_size=batch * size))
    return torch.tensor(bits).reshape(batch, size)


def random_model(batch: int, length: int, num_lengths: int, num_labels: int) -> list[Tensor]:
    return [
        torch.randn(batch, length, num_lengths, num_labels, dtype=torch.float64),
        torch.randn(batch, length - 1, num_labels, num_labels, dtype=torch.float64),
    ]


@settings(max_examples=5, deadline=None, derandomize=True)
@given(
    st.data(),
    st.integers(1, 2),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(0, 99),
)
def test_the_laws(
    data: st.DataObject, batch: int, length: int, num_lengths: int, num_labels: int, seed: int
) -> None:
    mask = data.draw(masks(batch, length))
    torch.manual_seed(seed)
    potentials = random_model(batch, length, num_lengths, num_labels)
    check_distribution(SemiMarkov, potentials, mask, structures=segmentations)


def test_the_laws_with_a_hole_an_empty_row_and_lengths_beyond_the_row() -> None:
    torch.manual_seed(1)
    mask = torch.tensor([[True, False, True, True], [False] * 4, [False, True, True, False]])
    check_distribution(SemiMarkov, random_model(3, 4, 2, 1), mask, structures=segmentations)
    check_distribution(SemiMarkov, random_model(1, 2, 3, 2), structures=segmentations)
    check_distribution(SemiMarkov, random_model(1, 1, 2, 3), structures=segmentations)


def test_segments_of_one_position_are_a_linear_chain() -> None:
    torch.manual_seed(0)
    segments, transitions = random_model(3, 5, 1, 3)
    mask = torch.tensor([[True] * 5, [True, True, False, True, False], [False] * 5])
    model = SemiMarkov(segments, transitions, mask)
    chain = LinearChain(segments[:, :, 0], transitions, mask)
    assert_close(model.log_partition(), chain.log_partition())
    assert_close(model.marginals()[:, :, 0], chain.marginals())
    assert_close(model.pair_marginals(), chain.pair_marginals())
    assert_close(model.entropy(), chain.entropy())
    assert torch.equal(model.argmax(), chain.argmax())
    assert torch.equal(model.topk(3).values, chain.topk(3).values)


def test_shared_transitions_equal_their_copies_for_each_position() -> None:
    torch.manual_seed(0)
    segments = random_model(2, 5, 3, 2)[0].requires_grad_()
    shared = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 5, [False, True, True, False, True]])
    direction = torch.randn(segments.shape, dtype=torch.float64)
    one = SemiMarkov(segments, shared, mask)
    other = SemiMarkov(segments, shared.expand(2, 4, 2, 2), mask)
    assert_close(one.log_partition(), other.log_partition())
    assert_close(one.marginals(), other.marginals())
    assert_close(one.log_prob(one.argmax()), other.log_prob(one.argmax()))
    losses = [(model.marginals() * direction).sum() for model in (one, other)]
    grads = [torch.autograd.grad(loss, (segments, shared)) for loss in losses]
    assert_close(*grads)


def test_float32_is_within_1e_5_of_float64_on_long_rows_of_wide_scores() -> None:
    generator = torch.Generator().manual_seed(0)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator) * 100 - 50

    segments, transitions = uniform(2, 300, 5, 4), uniform(2, 299, 4, 4)
    direction = torch.randn(segments.shape, generator=generator)
    found = []
    for dtype in (torch.float32, torch.float64):
        leaves = [part.to(dtype).requires_grad_() for part in (segments, transitions)]
        marginals = SemiMarkov(*leaves).marginals()
        grads = torch.autograd.grad((marginals * direction.to(dtype)).sum(), leaves)
        found.append([part.detach().double() for part in (marginals, *grads)])
    narrow, wide = found
    assert (narrow[0] - wide[0]).abs().max() < 1e-5
    for one, other in zip(narrow[1:], wide[1:], strict=True):
        assert (one - other).abs().max() < 3e-5


def test_mild_scores_over_a_long_row_stay_accurate() -> None:
    generator = torch.Generator().manual_seed(0)
    segments = torch.randn(2, 300, 5, 4, generator=generator)
    direction = 1 + torch.rand(segments.shape, generator=generator)  # not centered
    grads = []
    for dtype in (torch.float32, torch.float64):
        leaf = segments.to(dtype).requires_grad_()
        marginals = SemiMarkov(leaf, torch.zeros(4, 4, dtype=dtype)).marginals()
        grads.append(torch.autograd.grad((marginals * direction.to(dtype)).sum(), leaf)[0].double())
    assert (grads[0] - grads[1]).abs().max() < 1e-5


def test_vmap_agrees_with_one_call_after_another() -> None:
    torch.manual_seed(0)
    segments, transitions = random_model(3, 4, 2, 2)
    mask = torch.tensor([[True] * 4, [True, False, True, True], [False] * 4])

    def loss(one: Tensor, two: Tensor, real: Tensor) -> Tensor:
        return SemiMarkov(one, two, real).marginals().square().sum()

    expected = [
        torch.func.grad(loss)(*item) for item in zip(segments, transitions, mask, strict=True)
    ]
    found = torch.vmap(torch.func.grad(loss))(segments, transitions, mask)
    assert_close(found, torch.stack(expected))


def test_values_that_are_no_segmentation_are_refused() -> None:
    model = SemiMarkov(torch.zeros(3, 2, 2), torch.zeros(2, 2))
    with pytest.raises(ValueRangeError, match="first real position"):
        model.score(torch.tensor([-1, 0, 0]))
    with pytest.raises(ValueRangeError, match="at most 2 positions"):
        model.score(torch.tensor([0, -1, -1]))
    with pytest.raises(ValueRangeError, match=r"in 0\.\.1"):
        model.score(torch.tensor([0, 2, 0]))
    with pytest.raises(ShapeError, match="transitions"):
        SemiMarkov(torch.zeros(3, 2, 2), torch.zeros(1, 2, 2))
