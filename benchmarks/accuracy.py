"""How large are the errors of marginals and of gradients through them? Chains; for trees see `tree_accuracy`.

The exact values come from float64 autograd through a plain log-space recursion, the slowest and simplest
method. The inputs are float32: scores of U(-50, 50) over a thousand positions, where log Z is around
4e4 and a float32 sum of that size is accurate to 4e-3 only; and two chains that never meet, where a
recursion in probability space loses one of them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from foveal.distributions import LinearChain

from .cases import US
from .peers import PytorchCrfChain, TorchStructChain
from .results import Row, Sense

SEEDS = (0, 1, 2)
SIZE = (4, 1000, 10)
LENGTH_OF_DISJOINT_CHAINS = 200

# The targets: the largest errors of a marginal and of a gradient through marginals.
MARGINAL_TARGET = 1e-5
GRADIENT_TARGET = 3e-5


@dataclass(frozen=True, slots=True)
class Answer:
    """Marginals, and the gradient of a random linear loss of them in the potentials."""

    marginals: Tensor
    gradient: Tensor


def rows() -> Iterator[Row]:
    """Yield all accuracy rows."""
    yield from chain_edge_errors()
    yield from chain_unary_errors()
    yield from disjoint_chain_errors()


def chain_edge_errors() -> Iterator[Row]:
    """Edge potentials of U(-50, 50)."""
    batch, length, states = SIZE
    libraries: dict[str, Callable[[Tensor], Tensor]] = {
        US: lambda edges: LinearChain(_no_unary(edges), edges).pair_marginals(),
        "torch-struct": lambda edges: TorchStructChain(edges).pair_marginals(),
    }
    errors: dict[str, list[tuple[float, float]]] = {name: [] for name in libraries}
    for seed in SEEDS:
        torch.manual_seed(seed)
        edges = torch.rand(batch, length - 1, states, states) * 100 - 50
        weights = torch.randn_like(edges)
        truth = answer(_true_pair_marginals, edges.double(), weights.double())
        for name, marginals in libraries.items():
            errors[name].append(errors_of(answer(marginals, edges, weights), truth))
    yield from error_rows("chain edges", SIZE, errors)


def chain_unary_errors() -> Iterator[Row]:
    """Unary scores and shared transitions, both of U(-50, 50)."""
    batch, length, states = SIZE
    errors: dict[str, list[tuple[float, float]]] = {US: [], "pytorch-crf": []}
    for seed in SEEDS:
        torch.manual_seed(seed)
        unary = torch.rand(batch, length, states) * 100 - 50
        transitions = torch.rand(states, states) * 100 - 50
        weights = torch.randn_like(unary)
        crf = PytorchCrfChain(transitions)
        true_crf = transitions.double()
        truth = answer(
            lambda scores, links=true_crf: _true_marginals(scores, links),
            unary.double(),
            weights.double(),
        )
        ours = answer(
            lambda scores, links=transitions: LinearChain(scores, links).marginals(),
            unary,
            weights,
        )
        errors[US].append(errors_of(ours, truth))
        errors["pytorch-crf"].append(errors_of(answer(crf.marginals, unary, weights), truth))
    yield from error_rows("chain unary", SIZE, errors)


def disjoint_chain_errors() -> Iterator[Row]:
    """Two chains that never meet: one scores 50 more per step in the first half, the other in the second.

    The transition between labels 0 and 1 is forbidden (-inf). Both chains total 0, hence every marginal is
    1/2. Halfway, one chain has exp(-100 T/2) times the weight of the other, below any floating-point number.
    """
    half = LENGTH_OF_DISJOINT_CHAINS // 2
    sign = torch.cat([torch.ones(half), -torch.ones(half)])
    edges = torch.full((1, 2 * half, 2, 2), -math.inf)
    edges[0, :, 0, 0] = 50 * sign
    edges[0, :, 1, 1] = -50 * sign
    truth = torch.eye(2) / 2
    answers = {
        US: LinearChain(_no_unary(edges), edges).pair_marginals(),
        "torch-struct": TorchStructChain(edges.clone()).pair_marginals(),
    }
    for name, marginals in answers.items():
        ours = name == US
        yield Row(
            name=f"chain edges marginals error, disjoint chains of +-50 a step, {name}",
            value=largest_difference(marginals, truth),
            unit="largest absolute error",
            target=0.0 if ours else None,
            sense="<=" if ours else None,
        )


def error_rows(
    family: str,
    size: tuple[int, ...],
    errors: Mapping[str, Sequence[tuple[float, float]]],
    targets: tuple[float, float] = (MARGINAL_TARGET, GRADIENT_TARGET),
) -> Iterator[Row]:
    """Two rows for each library: the largest error of marginals and of gradients over the seeds."""
    for name, pairs in errors.items():
        for part, target, values in (
            ("marginals", targets[0], [pair[0] for pair in pairs]),
            ("gradient", targets[1], [pair[1] for pair in pairs]),
        ):
            sense: Sense | None = "<=" if name == US else None
            yield Row(
                name=f"{family} {part} error, U(-50, 50) {size}, {name}",
                value=max(values),
                unit="largest absolute error",
                spread=(min(values), max(values)),
                seeds=SEEDS,
                target=target if name == US else None,
                sense=sense,
            )


def answer(marginals: Callable[[Tensor], Tensor], potentials: Tensor, weights: Tensor) -> Answer:
    """Compute a library's marginals at these potentials, and the gradient of their loss."""
    leaf = potentials.detach().clone().requires_grad_()
    found = marginals(leaf)
    gradient = torch.autograd.grad((found * weights).sum(), leaf)[0]
    return Answer(found.detach(), gradient)


def errors_of(answer: Answer, truth: Answer) -> tuple[float, float]:
    """The largest error of the marginals, and of the gradient."""
    return (
        largest_difference(answer.marginals, truth.marginals),
        largest_difference(answer.gradient, truth.gradient),
    )


def largest_difference(answer: Tensor, truth: Tensor) -> float:
    """Return the largest absolute difference."""
    return (answer.double() - truth.double()).abs().max().item()  # NaN if any element is NaN


def _no_unary(edges: Tensor) -> Tensor:
    batch, steps, states, _ = edges.shape
    return edges.new_zeros(batch, steps + 1, states)


def _true_pair_marginals(edges: Tensor) -> Tensor:
    first = edges.new_zeros(edges.shape[0], edges.shape[-1])
    return torch.autograd.grad(_log_partition(first, edges).sum(), edges, create_graph=True)[0]


def _true_marginals(unary: Tensor, transitions: Tensor) -> Tensor:
    edges = unary[:, 1:, None, :] + transitions
    log_partition = _log_partition(unary[:, 0], edges).sum()
    return torch.autograd.grad(log_partition, unary, create_graph=True)[0]


def _log_partition(first: Tensor, edges: Tensor) -> Tensor:
    forward = first
    for step in edges.unbind(1):
        forward = torch.logsumexp(forward.unsqueeze(-1) + step, dim=1)
    return torch.logsumexp(forward, dim=1)
