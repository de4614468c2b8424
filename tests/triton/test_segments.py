"""Semi-Markov models by the Triton kernels, compared with the reference passes where a ring has unused slots.

A ring has a power of two of slots. The lengths of `test_laws` are powers of two; here, they are not, and some are longer than the
rows.
"""

import pytest
import torch

from foveal.inference import semi_markov_best, semi_markov_log_partition, semi_markov_marginals
from foveal.inference.semi_markov import _functions
from tests.triton.structures import exact, served, weights
from tests.triton.test_accuracy import reference

NUM_SAMPLES = 300


@pytest.mark.parametrize("size", [(20, 9, 3, 3), (4, 2, 5, 1)], ids=str)
@pytest.mark.parametrize("shared", [False, True], ids=["own steps", "shared steps"])
def test_rings_with_unused_slots(size: tuple[int, ...], shared: bool) -> None:
    batch, length, _, labels = size
    generator = torch.Generator().manual_seed(0)
    steps = (1, 1) if shared else (batch, length - 1)
    segments = torch.randn(size, generator=generator, dtype=torch.float64)
    transitions = torch.randn(*steps, labels, labels, generator=generator, dtype=torch.float64)
    mask = torch.rand(batch, length, generator=generator) < 0.7
    leaves = segments.requires_grad_(), transitions.requires_grad_()

    def results() -> list[torch.Tensor]:
        marginals = semi_markov_marginals(*leaves, mask)
        total = sum(((part * weights(part)).sum() for part in marginals), torch.zeros(()))
        found = [semi_markov_log_partition(*leaves, mask), *marginals]
        best = semi_markov_best(*leaves, mask)
        return [*found, *torch.autograd.grad(total, leaves), best.labels.double(), best.scores]

    with served():
        mine = results()
        drawn = _functions.semi_markov_sample(
            *leaves, mask, num_samples=NUM_SAMPLES, generator=generator
        )
    with reference():
        for found, expected in zip(mine, results(), strict=True):
            exact(found, expected, "a result")
    counts = torch.stack([(drawn.labels == label).double().mean(0) for label in range(labels)], -1)
    # Five standard deviations of a frequency.
    torch.testing.assert_close(counts, mine[1].sum(2), rtol=0, atol=5 * (0.25 / NUM_SAMPLES) ** 0.5)
    assert drawn.possible.all()
