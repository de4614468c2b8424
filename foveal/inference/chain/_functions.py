"""Inference in linear chains: log-partition, marginals, best labelings, samples.

    p(y) = exp( sum_t unary[t, y_t] + sum_t transitions[t, y_{t-1}, y_t] - log Z )

The gradient of log Z is the marginals, and the gradient through the marginals is one tangent
pass over stored conditional probabilities, because the Hessian of log Z is symmetric. Two
derivatives therefore cost a constant number of passes, without autograd through a recursion.

Axes: B batch, T positions, K states, S samples, k ranks.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .. import _native
from .._arguments import check_chain
from .._derivatives import Differentiable, differentiable
from .._precision import result_dtype
from .._recursions import softmax_or_zero
from . import _native as kernels, _passes as passes, _search as search

_PURE = differentiable("linear chain", passes, num_potentials=2)
_NATIVE = _native.differentiable("linear chain", kernels, num_potentials=2)


def _chain(unary: Tensor, transitions: Tensor) -> Differentiable:
    """Return the kernels if they support these tensors, otherwise the PyTorch passes."""
    if _native.serves(unary, transitions) or kernels.serves_chains_on_gpu(unary, transitions):
        return _NATIVE
    return _PURE


def _has_kernels(unary: Tensor, transitions: Tensor) -> bool:
    """Return whether the C++ or the Triton kernels support these tensors."""
    return _chain(unary, transitions) is _NATIVE


class ChainMarginals(NamedTuple):
    """Probabilities of states and of neighboring pairs of states."""

    nodes: Float[Tensor, "B T K"]
    pairs: Float[Tensor, "B T-1 K K"]


def chain_log_partition(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
) -> Float[Tensor, " B"]:
    """Compute log Z, the log-sum of exp(score) over all labelings, in O(T K^2) time and memory.

    Args:
        unary: Score of each state at each position.
        transitions: Score of each pair of neighboring states, earlier by later; axes of size 1 are shared by all
            batch items or all steps.
        mask: True on real positions; by default, all are real.

    Returns:
        log Z of each batch item; -inf if no labeling is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> unary, transitions = torch.zeros(1, 3, 2), torch.zeros(1, 1, 2, 2)
        >>> chain_log_partition(unary, transitions).exp().round()    # 2^3 labelings
        tensor([8.])
    """
    check_chain(unary, transitions, mask)
    return _chain(unary, transitions).log_partition((unary, transitions), mask)


def chain_marginals(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
) -> ChainMarginals:
    """Compute p(y_t = j) and p(y_{t-1} = i, y_t = j); both are differentiable once more.

    Args:
        unary: Score of each state at each position.
        transitions: Score of each pair of neighboring states, earlier by later; axes of size 1 are shared by all
            batch items or all steps.
        mask: True on real positions; by default, all are real.

    Returns:
        Probabilities of states and of pairs of neighboring states, 0 on padding.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> chain_marginals(torch.zeros(1, 2, 2), torch.zeros(1, 1, 2, 2)).pairs
        tensor([[[[0.2500, 0.2500],
                  [0.2500, 0.2500]]]])
    """
    check_chain(unary, transitions, mask)
    return checked_chain_marginals(unary, transitions, mask)


def checked_chain_marginals(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None,
) -> ChainMarginals:
    """Compute `chain_marginals` of arguments that the caller has checked."""
    if _has_kernels(unary, transitions):
        return ChainMarginals(*kernels.marginals(unary, transitions, mask))
    return ChainMarginals(*_PURE.marginals((unary, transitions), mask))


def chain_node_marginals(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
) -> Float[Tensor, "B T K"]:
    """Compute only p(y_t = j), which may cost less than all of `chain_marginals`.

    Args:
        unary: Score of each state at each position.
        transitions: Score of each pair of neighboring states, earlier by later; axes of size 1 are shared by all
            batch items or all steps.
        mask: True on real positions; by default, all are real.

    Returns:
        Probability of each state at each position, 0 on padding.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> chain_node_marginals(torch.zeros(1, 2, 2), torch.zeros(1, 1, 2, 2))
        tensor([[[0.5000, 0.5000],
                 [0.5000, 0.5000]]])
    """
    check_chain(unary, transitions, mask)
    if _native.serves(unary, transitions) and kernels.has_node_kernel(unary, transitions):
        return kernels.node_marginals(unary, transitions, mask)
    return checked_chain_marginals(unary, transitions, mask).nodes


class ChainBest(NamedTuple):
    """The k best labelings, best first; ranks beyond the last labeling score -inf."""

    labels: Int[Tensor, "k B T"]
    scores: Float[Tensor, "k B"]


def chain_best(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
    *,
    k: int = 1,
) -> ChainBest:
    """Find the k labelings of highest score (Viterbi for k = 1) in O(T K^2 k) time.

    Args:
        unary: Score of each state at each position.
        transitions: Score of each pair of neighboring states, earlier by later; axes of size 1 are shared by all
            batch items or all steps.
        mask: True on real positions; by default, all are real.
        k: Number of labelings.

    Returns:
        Labelings and their scores, best first.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> chain_best(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2)).labels
        tensor([[[1, 0]]])
    """
    check_chain(unary, transitions, mask)
    if k == 1 and _has_kernels(unary, transitions):
        labels, scores = kernels.best(unary.detach(), transitions.detach(), mask)
        return ChainBest(labels.unsqueeze(0), scores.unsqueeze(0))
    chain = passes.prepare(unary.detach(), transitions.detach(), mask)
    labels, scores = search.best(chain, k)
    return ChainBest(labels.permute(2, 1, 0), scores.T.to(result_dtype(unary, transitions)))


class ChainSamples(NamedTuple):
    """Exact samples of labelings; `possible` is False for items without any labeling."""

    labels: Int[Tensor, "S B T"]
    possible: Bool[Tensor, " B"]


def chain_sample(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
    *,
    num_samples: int,
    generator: torch.Generator | None = None,
) -> ChainSamples:
    """Draw independent exact samples, by forward filtering and backward sampling.

    Args:
        unary: Score of each state at each position.
        transitions: Score of each pair of neighboring states, earlier by later; axes of size 1 are shared by all
            batch items or all steps.
        mask: True on real positions; by default, all are real.
        num_samples: Number of labelings to draw for each batch item.
        generator: Source of random numbers; by default, the generator of the device.

    Returns:
        Sampled labelings, and whether any labeling is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> never = torch.tensor([[[0.0, -torch.inf], [-torch.inf, 0.0]]])
        >>> chain_sample(never, torch.zeros(1, 1, 2, 2), num_samples=1).labels
        tensor([[[0, 1]]])
    """
    check_chain(unary, transitions, mask)
    if _has_kernels(unary, transitions):
        drawn = kernels.sample(unary.detach(), transitions.detach(), mask, num_samples, generator)
        return ChainSamples(*drawn)
    chain = passes.prepare(unary.detach(), transitions.detach(), mask)
    conditionals, alpha = passes.conditionals(chain, torch.float64)
    last = softmax_or_zero(alpha, torch.float64)
    labels = search.draw(conditionals, last, num_samples, generator)
    return ChainSamples(labels.permute(1, 2, 0), last.sum(-1) > 0)
