"""The law suite detects errors: each distribution in this file breaks one law."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError

from foveal.distributions import Categorical
from foveal.testing import check_distribution


def choices(scores: Tensor, mask: Tensor | None) -> Iterator[tuple[Tensor, Tensor]]:
    for i in range(len(scores)):
        if mask is None or mask[i]:
            yield torch.tensor(i), scores[i]


def broken(**verbs: Callable[..., Any]) -> type[Categorical]:
    """Return a Categorical with one verb replaced."""
    return type("Broken", (Categorical,), verbs)


def biased(
    self: Categorical,
    sample_shape: tuple[int, ...] = (),
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    return Categorical(1.3 * self.scores, self.mask).sample(sample_shape, generator=generator)


BROKEN = {
    "a biased sampler": broken(sample=biased),
    "marginals without a gradient": broken(marginals=lambda self: self.scores.softmax(-1).detach()),
    "a sentinel for -inf": broken(log_partition=lambda self: self.scores.clamp(-1e4).logsumexp(-1)),
    "the worst for the best": broken(argmax=lambda self: self.scores.argmin(-1)),
    "entropy in bits": broken(entropy=lambda self: self.cross_entropy(self) / 0.6931),
}


@pytest.mark.parametrize("build", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_verb_is_caught(build: type[Categorical]) -> None:
    scores = torch.randn(2, 4, generator=torch.Generator().manual_seed(0)).double()
    with pytest.raises((AssertionError, GradcheckError)):
        check_distribution(build, [scores], structures=choices)


def test_an_ignored_mask_is_caught() -> None:
    def build(scores: Tensor, mask: Tensor | None = None) -> Categorical:
        return Categorical(scores, None if mask is None else torch.ones_like(mask))

    mask = torch.tensor([[True, True, False], [True, True, True]])
    with pytest.raises(AssertionError):
        check_distribution(build, [torch.zeros(2, 3).double()], mask, structures=choices)


def test_padding_that_is_read_is_caught() -> None:
    def build(scores: Tensor, mask: Tensor | None = None) -> Categorical:
        assert mask is not None
        return Categorical(scores - 1e9 * (~mask))

    mask = torch.tensor([[True, True, False], [True, True, True]])
    with pytest.raises(AssertionError):
        check_distribution(build, [torch.zeros(2, 3).double()], mask, structures=choices)
