"""Laws of a distribution over structures, checked against enumeration.

`check_distribution` checks one batch against all laws. Each law is also a separate function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.testing import assert_close

from ..distributions import AbstractDistribution
from ..errors import ImpossibleError
from ._oracle import Enumerate, Listed, list_structures, truth, unread

_NUM_SAMPLES = 4000
# A fair sampler fails a law at this level once in 100,000 seeds; the seeds here are fixed.
_SIGNIFICANCE = 1e-5


@dataclass(frozen=True, eq=False)
class _Case:
    """One batch under test: `build(*potentials, mask=mask)`, and a function that lists its structures."""

    build: Callable[..., AbstractDistribution]
    potentials: tuple[Tensor, ...]
    mask: Tensor | None
    structures: Enumerate

    def distribution(self) -> AbstractDistribution:
        return self.build(*self.potentials, mask=self.mask)

    def listed(self) -> list[Listed]:
        return list_structures(self.structures, self.potentials, self.mask)

    def alone(self, item: int) -> "_Case":
        """Return one item as a batch of one, because items may have different sets of valid structures."""
        mask = None if self.mask is None else self.mask[item : item + 1]
        parts = tuple(part[item : item + 1] for part in self.potentials)
        return replace(self, potentials=parts, mask=mask)

    def noise(self, like: Tensor, seed: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(like.shape, generator=generator, dtype=like.dtype)


def check_distribution(
    build: Callable[..., AbstractDistribution],
    potentials: Sequence[Tensor],
    mask: Tensor | None = None,
    *,
    structures: Enumerate,
) -> None:
    """Check a distribution against every law; an AssertionError names the first law that fails.

    Args:
        build: A function that makes the distribution, called as `build(*potentials, mask=mask)`.
        potentials: Finite float64 log-potentials, each with one leading batch axis.
        mask: A boolean mask, True on real items, with the same leading axis; or None.
        structures: A function that is called as `structures(*item_potentials, item_mask)` without the batch axis. It
            yields every structure as `(value, score)`: the value as `argmax` would return it, the score as a sum of
            entries of the potentials.

    Examples:
        >>> from foveal.distributions import Categorical
        >>> def choices(scores, mask):
        ...     for i in range(len(scores)):
        ...         if mask is None or mask[i]:
        ...             yield torch.tensor(i), scores[i]
        >>> check_distribution(Categorical, [torch.randn(2, 3).double()], structures=choices)
    """
    case = _Case(build, tuple(part.detach().clone() for part in potentials), mask, structures)
    before = [part.clone() for part in case.potentials]
    for law in (check_sums, check_gradients, check_best, check_information, check_samples):
        law(case)
    check_parts(case)
    for law in (check_unread_entries, check_batching, check_dtypes, check_extreme_scores):
        law(case)
    for forbidden in _forbidding(case):
        for law in (check_sums, check_best, check_parts, check_information, check_unread_entries):
            law(forbidden)
    for part, was in zip(case.potentials, before, strict=True):
        assert torch.equal(part, was), "a verb has changed the potentials it was given"


def check_sums(case: _Case) -> None:
    """Check log Z, log-probabilities, marginals, and the gradient through the marginals."""
    leaves = tuple(part.clone().requires_grad_() for part in case.potentials)
    live = replace(case, potentials=leaves).distribution()
    marginals = live.marginals()
    direction = case.noise(marginals)
    true = truth(case.structures, case.potentials, case.mask, direction)
    _assert_equal(live.log_partition(), true.log_partition)
    _assert_equal(marginals.detach(), true.marginals)
    forbidden = case.potentials[0] == -torch.inf
    assert not marginals[forbidden].any(), "a forbidden part has probability above 0"

    grads = _gradients((marginals * direction).sum(), leaves)
    for grad, expected, part in zip(grads, true.through, leaves, strict=True):
        _assert_equal(grad, expected)
        assert not grad[part == -torch.inf].any(), "a forbidden part has a gradient"
    for grad in _gradients(live.log_partition().sum(), leaves):
        assert grad.isfinite().all(), "the gradient of log Z is not finite"

    for item, listed in enumerate(case.listed()):
        if listed.values:
            log_probs = case.alone(item).distribution().log_prob(listed.stacked())
            _assert_equal(log_probs.squeeze(1), listed.scores - listed.log_partition())


def check_gradients(case: _Case) -> None:
    """Check first and second derivatives by finite differences (`gradcheck`, `gradgradcheck`)."""
    leaves = tuple(part.clone().requires_grad_() for part in case.potentials)

    def log_partition(*parts: Tensor) -> Tensor:
        return case.build(*parts, mask=case.mask).log_partition()

    def marginals(*parts: Tensor) -> Tensor:
        return case.build(*parts, mask=case.mask).marginals()

    def entropy(*parts: Tensor) -> Tensor:
        return case.build(*parts, mask=case.mask).entropy()

    for function in (log_partition, marginals, entropy):
        torch.autograd.gradcheck(function, leaves)
    torch.autograd.gradgradcheck(log_partition, leaves)


def check_best(case: _Case) -> None:
    """Check that argmax is the best structure and that topk is sorted, distinct and complete."""
    distribution = case.distribution()
    every = case.listed()
    if all(listed.values for listed in every):
        best = distribution.argmax()
        for item, listed in enumerate(every):
            _assert_equal(listed.scores[listed.place(best[item])], listed.scores.max())
    else:
        _expect_impossible(distribution)
    for k in (1, 3, max(len(listed.values) for listed in every) + 2):
        values, log_probs = distribution.topk(k)
        for item, listed in enumerate(every):
            exists = min(k, len(listed.values))
            found = [listed.place(value) for value in values[:exists, item]]
            assert len(set(found)) == exists, f"topk({k}) has given a structure twice"
            expected = (listed.scores - listed.log_partition()).sort(descending=True).values
            _assert_equal(log_probs[:exists, item], expected[:exists])
            assert (log_probs[exists:, item] == -torch.inf).all(), "topk beyond the last structure"


def check_parts(case: _Case) -> None:
    """Check that the marginals are expected indicators and that a tilt adds to the score of each part."""
    marginals = case.distribution().marginals()
    noise = case.noise(marginals)
    for item, listed in enumerate(case.listed()):
        if not listed.values:
            continue
        distribution, values = case.alone(item).distribution(), listed.stacked()
        parts = distribution.indicators(values).squeeze(1)
        expected = torch.tensordot(listed.probabilities(), parts, 1)
        _assert_equal(expected, marginals[item])
        tilted = distribution.tilt(noise[item : item + 1])
        scores = listed.scores + (parts * noise[item]).flatten(1).sum(-1)
        _assert_equal(tilted.score(values).squeeze(1), scores)


def check_information(case: _Case) -> None:
    """Check entropy, cross-entropy and KL against sums over all structures, and their identities."""
    shifted = tuple(part + case.noise(part, seed=1) for part in case.potentials)
    other_case = replace(case, potentials=shifted)
    one, other = case.distribution(), other_case.distribution()
    entropy, cross, kl = one.entropy(), one.cross_entropy(other), one.kl(other)
    for item, (listed, shifted_listed) in enumerate(
        zip(case.listed(), other_case.listed(), strict=True)
    ):
        log_p = listed.scores - listed.log_partition()
        log_q = shifted_listed.scores - shifted_listed.log_partition()
        _assert_equal(entropy[item], -(log_p.exp() * log_p).sum())
        _assert_equal(cross[item], -(log_p.exp() * log_q).sum())
    _assert_equal(kl, cross - entropy)
    _assert_equal(one.kl(one), torch.zeros_like(kl))


def check_samples(case: _Case) -> None:
    """Compare sample frequencies with probabilities by a chi-square test; equal seeds give equal samples."""
    distribution = case.distribution()
    draws = [
        distribution.sample((_NUM_SAMPLES,), generator=torch.Generator().manual_seed(7))
        for _ in range(2)
    ]
    assert torch.equal(*draws), "the same seed has given another sample"
    shaped = distribution.sample((2, 3))
    assert shaped.shape == (2, 3, *draws[0].shape[1:]), "sample_shape is not leading"
    for item, listed in enumerate(case.listed()):
        values, counts = torch.unique(draws[0][:, item], dim=0, return_counts=True)
        observed = torch.zeros(len(listed.values), dtype=torch.float64)
        for value, count in zip(values, counts, strict=True):
            observed[listed.place(value)] = count
        p_value = _chi_square_p_value(observed, listed.probabilities().double() * _NUM_SAMPLES)
        assert p_value > _SIGNIFICANCE, f"sample frequencies off, chi-square p = {p_value:.1e}"


def check_unread_entries(case: _Case) -> None:
    """Check that entries that no structure reads (padding, unused corners) do not change the result, bit for bit."""
    entries = unread(case.structures, case.potentials, case.mask)
    neutral = _outcomes(
        case, [torch.where(e, 0.0, p) for e, p in zip(entries, case.potentials, strict=True)]
    )
    for junk in (torch.nan, torch.inf, -torch.inf, 1e30):
        filled = [torch.where(e, junk, p) for e, p in zip(entries, case.potentials, strict=True)]
        for name, outcome in _outcomes(case, filled).items():
            assert torch.equal(outcome, neutral[name]), f"padding of {junk} has changed {name}"
            assert not outcome.isnan().any(), f"padding of {junk} has reached {name}"


def check_batching(case: _Case) -> None:
    """Check that a batch of n equals n batches of one, with no batch axis and with any leading shape."""
    whole, best = _outcomes(case, case.potentials), case.distribution().argmax()
    for item in range(len(case.potentials[0])):
        mask = None if case.mask is None else case.mask[item]
        parts = [part[item] for part in case.potentials]
        for name, outcome in _outcomes(replace(case, mask=mask), parts).items():
            _assert_equal(outcome, whole[name][item], msg=f"{name} alone and in a batch")
        alone = case.build(*parts, mask=mask)
        assert torch.equal(alone.argmax(), best[item]), "argmax alone and in a batch"
        assert alone.sample().shape == best[item].shape, "a sample without a batch axis"
        assert alone.sample((2,)).shape == (2, *best[item].shape), "two of them"
    mask = None if case.mask is None else case.mask[:, None, None]
    shaped = _outcomes(replace(case, mask=mask), [part[:, None, None] for part in case.potentials])
    for name, outcome in shaped.items():
        _assert_equal(outcome[:, 0, 0], whole[name], msg=f"{name} with three batch axes")


def check_dtypes(case: _Case) -> None:
    """Check that float32 stays float32, within 1e-5 of float64, and that half precision becomes float32."""
    wide = _outcomes(case, [part.float().double() for part in case.potentials])
    for name, outcome in _outcomes(case, [part.float() for part in case.potentials]).items():
        assert outcome.dtype == torch.float32, f"{name} of float32 potentials is {outcome.dtype}"
        assert_close(outcome.double(), wide[name], rtol=1e-5, atol=1e-5)
    half = case.build(*(part.bfloat16() for part in case.potentials), mask=case.mask)
    assert half.marginals().dtype == half.log_partition().dtype == torch.float32


def check_extreme_scores(case: _Case) -> None:
    """Check that scores in the thousands are finite, equal enumeration, and agree in float32."""
    scale = 3000.0
    # Multiples of 1/8 are exact in float32, so both precisions get the same scores.
    scaled = tuple((part * scale).mul(8).round().div(8) for part in case.potentials)
    check_sums(replace(case, potentials=scaled))
    wide = _outcomes(case, scaled)
    for name, outcome in _outcomes(case, [part.float() for part in scaled]).items():
        assert_close(outcome.double(), wide[name], rtol=1e-5, atol=1e-5)


def _assert_equal(found: Tensor, expected: Tensor, msg: str | None = None) -> None:
    """Assert equality up to the float64 rounding error of a sum over a few hundred structures."""
    assert_close(found, expected, rtol=1e-9, atol=1e-9, msg=msg)


def _forbidding(case: _Case) -> list[_Case]:
    """Return the case with some entries forbidden, and with all entries forbidden."""
    cases = []
    for share in (0.2, 0.5, 1.0):
        parts = []
        for seed, part in enumerate(case.potentials):
            generator = torch.Generator().manual_seed(seed)
            chosen = torch.rand(part.shape, generator=generator) < share
            parts.append(torch.where(chosen, -torch.inf, part))
        cases.append(replace(case, potentials=tuple(parts)))
    return cases


def _outcomes(case: _Case, potentials: Sequence[Tensor]) -> dict[str, Tensor]:
    """Return the results and gradients of all methods for these potentials instead of the potentials of the case."""
    leaves = tuple(part.clone().requires_grad_() for part in potentials)
    distribution = case.build(*leaves, mask=case.mask)
    marginals = distribution.marginals()
    loss = (marginals * torch.linspace(-1, 1, marginals.shape[-1], dtype=marginals.dtype)).sum()
    return {
        "log_partition": distribution.log_partition().detach(),
        "marginals": marginals.detach(),
        "entropy": distribution.entropy().detach(),
        "gradient": _gradients(loss, leaves[:1])[0],
    }


def _gradients(loss: Tensor, leaves: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    if not loss.requires_grad:
        return tuple(torch.zeros_like(part) for part in leaves)
    return torch.autograd.grad(loss, leaves, materialize_grads=True)


def _expect_impossible(distribution: AbstractDistribution) -> None:
    for name, verb in (("argmax", distribution.argmax), ("sample", distribution.sample)):
        try:
            _call(verb)
        except ImpossibleError:
            continue
        raise AssertionError(f"{name} has returned a structure where none is possible")


def _call(verb: Callable[[], Any]) -> Any:
    return verb()


def _chi_square_p_value(observed: Tensor, expected: Tensor) -> float:
    """Return the probability of counts at least this far from the expected ones; rare structures are pooled."""
    rare = expected < 5
    pooled = expected[rare].sum()
    if pooled > 0:
        observed = torch.cat([observed[~rare], observed[rare].sum()[None]])
        expected = torch.cat([expected[~rare], pooled[None]])
    statistic = ((observed - expected) ** 2 / expected).sum()
    degrees = torch.tensor(len(expected) - 1, dtype=torch.float64)
    if degrees == 0:
        return 1.0
    return torch.special.gammaincc(degrees / 2, statistic / 2).item()
