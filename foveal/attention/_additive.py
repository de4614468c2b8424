"""Additive scores of all queries at all positions, computed in blocks.

    score[q, s] = v . tanh( query[q] + key[s] )

    with t = tanh(query[q] + key[s]) and g the gradient of the scores,
    d v = sum over q, s of g t,   d query[q] = v * sum over s of g (1 - t^2),   d key[s] = the same over q

The table t has H times the size of the scores. Separate sum, tanh and product operations would each
pass over the whole table, and autograd would keep it for the backward pass. This implementation applies
all three to one block that fits in the CPU cache, and the backward pass recomputes the block: it takes
half the time and stores only the scores.

Axes: *batch any leading shape, B that shape flattened, Q queries, S positions, H width of the scorer.
Reference: Bahdanau et al. 2015, appendix A.1.2.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

# Entries of a block: 1 MB of float32, so the block and its intermediate results fit in the L2 cache.
_PIECE = 2**18


def additive_scores(
    query: Float[Tensor, "*#batch Q H"],
    keys: Float[Tensor, "*#batch S H"],
    weight: Float[Tensor, " H"],
) -> Float[Tensor, "*batch Q S"]:
    """Compute v . tanh(query + key) for every pair; half-precision inputs are computed in float32.

    Args:
        query: Projected queries.
        keys: Projected keys; the leading shape broadcasts with the leading shape of the queries.
        weight: The vector v.

    Returns:
        Score of every query at every position.

    Examples:
        >>> additive_scores(torch.zeros(1, 2), torch.tensor([[0.0, 0.0], [9.0, -9.0]]), torch.ones(2))
        tensor([[0., 0.]])
    """
    if torch.compiler.is_compiling():  # the compiler fuses the operations
        return torch.tanh(query.unsqueeze(-2) + keys.unsqueeze(-3)) @ weight
    live = query.requires_grad or keys.requires_grad or weight.requires_grad
    live = live and torch.is_grad_enabled()
    score = _AdditiveScores.apply if live else _scores
    batch = query.shape[:-2]
    if batch != keys.shape[:-2]:
        batch = torch.broadcast_shapes(batch, keys.shape[:-2])
        query, keys = (part.expand(*batch, *part.shape[-2:]) for part in (query, keys))
    if len(batch) != 1:
        query, keys = (part.reshape(batch.numel(), *part.shape[-2:]) for part in (query, keys))
    alike = query.dtype == keys.dtype == weight.dtype == torch.float32
    if alike and not torch.is_autocast_enabled(query.device.type):
        scores = score(query, keys, weight)
    else:
        dtype = torch.promote_types(torch.promote_types(query.dtype, keys.dtype), torch.float32)
        with torch.autocast(query.device.type, enabled=False):
            scores = score(query.to(dtype), keys.to(dtype), weight.to(dtype))
    return scores if len(batch) == 1 else scores.reshape(*batch, *scores.shape[1:])


class _AdditiveScores(torch.autograd.Function):
    """(query (B, Q, H), keys (B, S, H), weight (H)) -> scores (B, Q, S)."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(query, keys, weight)
        return _scores(query, keys, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (grad,), (query, keys, weight) = grads, ctx.saved_tensors
        if torch.is_grad_enabled():  # double backward: use differentiable operations
            tanh = _tanh(query, keys)
            inner = (1 - tanh.square()) * grad.unsqueeze(-1) * weight
            return inner.sum(2), inner.sum(1), (tanh * grad.unsqueeze(-1)).sum((0, 1, 2))
        of_query, of_keys = torch.empty_like(query), torch.zeros_like(keys)
        of_weight = torch.zeros_like(weight)
        for item, some in _pieces(query, keys):
            tanh, piece = _tanh(query[item, some], keys[item]), grad[item, some]
            of_weight += tanh.flatten(0, 2).T @ piece.flatten()
            lost = tanh.square_().mul_(piece.unsqueeze(-1))  # in place: the piece stays in cache
            of_query[item, some] = (piece.sum(2, keepdim=True) - lost.sum(2)) * weight
            of_keys[item] += (piece.sum(1).unsqueeze(-1) - lost.sum(1)) * weight
        return of_query, of_keys, of_weight


def _scores(query: Tensor, keys: Tensor, weight: Tensor) -> Float[Tensor, "B Q S"]:
    if query.numel() * keys.shape[1] <= _PIECE:
        return _tanh(query, keys) @ weight
    scores = query.new_empty(*query.shape[:2], keys.shape[1])
    for item, some in _pieces(query, keys):
        scores[item, some] = _tanh(query[item, some], keys[item]) @ weight
    return scores


def _tanh(query: Tensor, keys: Tensor) -> Float[Tensor, "B Q S H"]:
    return (query.unsqueeze(2) + keys.unsqueeze(1)).tanh_()


def _pieces(query: Tensor, keys: Tensor) -> Iterator[tuple[slice, slice]]:
    """Yield slices of items and queries whose part of the table is about one block."""
    num_items, num_queries, width = query.shape
    per_query = max(1, keys.shape[1] * width)
    items = max(1, _PIECE // max(1, per_query * num_queries))
    queries = max(1, _PIECE // per_query)  # all queries if an item is smaller than a block
    for item in range(0, num_items, items):
        for some in range(0, num_queries, queries):
            yield slice(item, item + items), slice(some, some + queries)
