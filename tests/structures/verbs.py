"""The verbs of a distribution, and the tolerances of their results compared with enumeration.

Each verb is a function of a distribution and the tensors that it needs. Tests call it eagerly, in
inference mode and compiled; its check compares the result with the truth.

Axes: B items, N structures, k ranks, S samples.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.testing import assert_close

from tests.structures.inputs import Case
from tests.structures.truth import Truth

NUM_RANKS, NUM_SAMPLES = 4, 300


class Verb(NamedTuple):
    run: Callable[[Any, Any, Tensor], Any]  # distribution, another one, values -> answer
    check: Callable[[Any, list[Truth], list[Truth]], None]


def near(found: Tensor, expected: Tensor, what: str) -> None:
    """Check the accuracy that the library promises: 1e-5 in float32."""
    tolerance = 1e-9 if found.dtype == torch.float64 else 1e-5
    expected = expected.detach().to(found.dtype)
    assert_close(
        found.detach(),
        expected,
        rtol=tolerance,
        atol=tolerance,
        msg=lambda text: f"{what}: {text}\nfound {found}\nexpected {expected}",
    )


def values_of(case: Case) -> Tensor:
    """Return all structures, (N, B, *event); items with fewer structures repeat their first one."""
    every = [case.kind.listed(tuple(m[item] for m in case.masks)).values for item in range(3)]
    count = max(map(len, every))
    return torch.stack(
        [torch.cat([v, v[:1].expand(count - len(v), *v.shape[1:])]) for v in every], 1
    )


def log_partition(distribution: Any) -> Tensor:
    """Return log Z, or the smoothed maximum of a sparse distribution."""
    dense = hasattr(type(distribution), "log_partition")
    return distribution.log_partition() if dense else distribution.smoothed_max()


def check_log_partition(found: Tensor, truths: list[Truth], _: list[Truth]) -> None:
    near(found, torch.stack([truth.log_partition for truth in truths]), "log_partition")


def check_log_prob(found: Tensor, truths: list[Truth], _: list[Truth]) -> None:
    for item, truth in enumerate(truths):
        near(found[: len(truth.scores), item], truth.log_probs, f"log_prob of item {item}")


def check_marginals(found: Tensor, truths: list[Truth], _: list[Truth]) -> None:
    near(found, torch.stack([truth.marginals() for truth in truths]), "marginals")


def check_entropy(found: Tensor, truths: list[Truth], _: list[Truth]) -> None:
    near(found, torch.stack([truth.entropy() for truth in truths]), "entropy")


def check_cross_entropy(found: Any, truths: list[Truth], others: list[Truth]) -> None:
    pairs = list(zip(truths, others, strict=True))
    near(found[0], torch.stack([p.cross_entropy(q) for p, q in pairs]), "cross_entropy")
    near(found[1], torch.stack([q.cross_entropy(p) for p, q in pairs]), "cross_entropy, reversed")


def check_kl(found: Any, truths: list[Truth], others: list[Truth]) -> None:
    pairs = list(zip(truths, others, strict=True))
    near(found[0], torch.stack([p.kl(q) for p, q in pairs]), "kl")
    near(found[1], torch.stack([q.kl(p) for p, q in pairs]), "kl, reversed")


def places_of(truth: Truth, values: Tensor) -> list[int]:
    """Return the indices of structures in the enumeration; raise an error for an invalid structure."""
    every = {row.numpy().tobytes(): n for n, row in enumerate(truth.listed.values)}
    return [every[value.contiguous().numpy().tobytes()] for value in values]


def check_argmax(found: Tensor, truths: list[Truth], _: list[Truth]) -> None:
    for item, truth in enumerate(truths):
        (place,) = places_of(truth, found[item : item + 1])
        near(
            truth.log_probs[place].float(), truth.log_probs.max().float(), f"argmax of item {item}"
        )


def check_topk(found: Any, truths: list[Truth], _: list[Truth]) -> None:
    values, log_probs = found
    for item, truth in enumerate(truths):
        best = truth.log_probs.sort(descending=True).values[:NUM_RANKS]
        best = torch.cat([best, best.new_full((NUM_RANKS - len(best),), -torch.inf)])
        near(log_probs[:, item], best, f"topk of item {item}")
        exist = log_probs[:, item] > -torch.inf
        places = places_of(truth, values[exist, item])
        assert len(set(places)) == len(places), f"topk of item {item} gives a structure twice"
        near(truth.log_probs[places].to(log_probs.dtype), log_probs[exist, item], "topk's values")
        padding = values[~exist, item]
        assert not (padding if padding.dtype == torch.bool else padding + 1).any()


def check_sample(found: Tensor, truths: list[Truth], _: list[Truth]) -> None:
    """Check that only possible structures are drawn, with the right frequencies within 5 standard
    deviations.
    """
    for item, truth in enumerate(truths):
        places = torch.tensor(places_of(truth, found[:, item]))
        assert (truth.probs[places] > 0).all(), f"an impossible structure is drawn for item {item}"
        shares = torch.bincount(places, minlength=len(truth.probs)) / NUM_SAMPLES
        spread = (truth.probs * (1 - truth.probs) / NUM_SAMPLES).sqrt()
        wrong = (shares - truth.probs).abs() > 5 * spread + 3 / NUM_SAMPLES
        assert not wrong.any(), f"frequencies of item {item}: {shares} for {truth.probs}"


def draw(distribution: Any) -> Tensor:
    return distribution.sample((NUM_SAMPLES,), generator=torch.Generator().manual_seed(0))


VERBS = {
    "log_partition": Verb(lambda d, other, values: log_partition(d), check_log_partition),
    "log_prob": Verb(lambda d, other, values: d.log_prob(values), check_log_prob),
    "marginals": Verb(lambda d, other, values: d.marginals(), check_marginals),
    "entropy": Verb(lambda d, other, values: d.entropy(), check_entropy),
    "argmax": Verb(lambda d, other, values: d.argmax(), check_argmax),
    "topk": Verb(lambda d, other, values: tuple(d.topk(NUM_RANKS)), check_topk),
    "sample": Verb(lambda d, other, values: draw(d), check_sample),
    # Sparse distributions have neither of these two verbs.
    "cross_entropy": Verb(
        lambda d, other, values: (d.cross_entropy(other), other.cross_entropy(d)),
        check_cross_entropy,
    ),
    "kl": Verb(lambda d, other, values: (d.kl(other), other.kl(d)), check_kl),
}
DENSE_ONLY = ("cross_entropy", "kl")
SELECTING = ("argmax", "topk", "sample")


def has(name: str, case: Case) -> bool:
    """Return whether a distribution has a verb."""
    return not (case.kind.is_sparse and name in DENSE_ONLY)
