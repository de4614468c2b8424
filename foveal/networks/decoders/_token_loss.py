"""The output layer fused with its loss: from vectors to -log p of the targets, a few rows at a time.

    scores = W x + b
    loss   = logsumexp(scores) - (1 - e) scores[target] - e mean(scores)       label smoothing e

    with p = softmax(scores), q = (1 - e) [w = target] + e / W, and g the gradient of the loss,
    d scores = g (p - q),   d x = d scores W,   d W = d scores^T x,   d b = sum of d scores

The table of scores, one for every word of the vocabulary at every token, is the largest tensor of a small
model. Separate operations for layer and loss would pass over it and keep it several times. This function
computes a few rows at a time, in one buffer, and immediately converts them to their gradient, assuming
g = 1. If g is equal for all tokens, as for a sum or a mean, the backward pass multiplies by it; otherwise
the backward pass recomputes the rows.

Axes: N tokens, D width of a vector, W tokens of the vocabulary.
Reference: Szegedy et al. 2016, section 7 (label smoothing).
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import linear, one_hot

# Entries of the buffer: 4 MB of float32. Fewer make the products inefficient, more exceed the cache.
_BUFFER = 2**20
# Every piece passes over the gradient of all weights, so fewer rows make a step slower than linear in the vocabulary: with
# 100,000 words, 16 rows take 1.8 times as long (benchmarks/growth.py).
_LEAST_ROWS = 64


class _Layer(NamedTuple):
    """The output layer with its targets; `product` is the dtype of its matrix products."""

    vectors: Float[Tensor, "N D"]
    weight: Float[Tensor, "W D"]
    bias: Float[Tensor, " W"]
    targets: Int[Tensor, " N"]
    label_smoothing: float
    product: torch.dtype


class _Gradients(NamedTuple):
    """Gradients of the sum of the losses, or of their sum weighted by g."""

    vectors: Float[Tensor, "N D"]
    weight: Float[Tensor, "W D"]
    bias: Float[Tensor, " W"]


def token_loss(
    vectors: Float[Tensor, "N D"],
    weight: Float[Tensor, "W D"],
    bias: Float[Tensor, " W"],
    targets: Int[Tensor, " N"],
    label_smoothing: float = 0.0,
) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Compute the loss of each target, and its log-probability, which has no gradient.

    Under autocast, products use half precision and everything else float32.

    Args:
        vectors: Inputs of the output layer, one for each target.
        weight: Weights of the output layer, one row for each token of the vocabulary.
        bias: Bias of the output layer.
        targets: Token ids to predict.
        label_smoothing: Weight of the uniform distribution in the target distribution.

    Returns:
        The losses and the log-probabilities of the targets.

    Examples:
        >>> token_loss(torch.ones(1, 2), torch.zeros(4, 2), torch.zeros(4), torch.tensor([3]))[1].exp()
        tensor([0.2500])
    """
    device = vectors.device.type
    product = torch.promote_types(vectors.dtype, weight.dtype)
    if torch.is_autocast_enabled(device):
        product = torch.get_autocast_dtype(device)
    # The compiler fuses the operations; on a GPU, few large kernels are faster than the passes over parts of the rows.
    if torch.compiler.is_compiling() or device != "cpu":
        return _plain(vectors, weight, bias, targets, label_smoothing)
    with torch.autocast(device, enabled=False):
        layer = _Layer(vectors, weight, bias, targets, label_smoothing, product)
        live = vectors.requires_grad or weight.requires_grad or bias.requires_grad
        if torch.is_grad_enabled() and live:
            return _TokenLoss.apply(*layer)
        loss, log_prob, _ = _passes(layer)
        return loss, log_prob


class _TokenLoss(torch.autograd.Function):
    """Maps a layer to the loss and the log-probability of each target."""

    @staticmethod
    def forward(ctx: Any, *parts: Any) -> tuple[Tensor, Tensor]:
        layer = _Layer(*parts)
        loss, log_prob, gradients = _passes(
            layer, torch.ones_like(layer.targets, dtype=_wide(layer))
        )
        assert gradients is not None
        ctx.save_for_backward(*layer[:4], *gradients)
        ctx.settings = layer[4:]
        ctx.mark_non_differentiable(log_prob)
        return loss, log_prob

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *parts, of_vectors, of_weight, of_bias = ctx.saved_tensors
        layer, grad = _Layer(*parts, *ctx.settings), grads[0]
        if torch.is_grad_enabled():  # double backward: use differentiable operations
            gradients = _differentiable(layer, grad)
        elif len(grad) == 0 or bool((grad == grad[0]).all()):
            every = grad.sum() if len(grad) == 0 else grad[0]
            gradients = of_vectors * every, of_weight * every, of_bias * every
        else:
            gradients = _passes(layer, grad)[2]
            assert gradients is not None
        dtypes = (part.dtype for part in layer[:3])
        return *(each.to(kind) for each, kind in zip(gradients, dtypes, strict=True)), *[None] * 3


def _passes(
    layer: _Layer, scale: Float[Tensor, " N"] | None = None
) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"], _Gradients | None]:
    """Compute losses and log-probabilities and, given a weight g for each row, the gradients of the sum."""
    wide, num_rows = _wide(layer), max(_LEAST_ROWS, _BUFFER // len(layer.weight))
    vectors, weight = layer.vectors.to(layer.product), layer.weight.to(layer.product)
    buffer = vectors.new_empty(min(num_rows, len(vectors)), len(weight), dtype=wide)
    normalizer, aimed = torch.empty_like(layer.targets, dtype=wide).expand(2, -1).clone()
    gradients = None
    if scale is not None:
        gradients = _Gradients(
            torch.empty_like(vectors),
            torch.zeros_like(weight, dtype=wide),
            torch.zeros_like(layer.bias, dtype=wide),
        )
    for start in range(0, len(vectors), num_rows):
        some = slice(start, start + num_rows)
        rows, target = vectors[some], layer.targets[some].unsqueeze(-1)
        scores = _scores(rows, weight, layer.bias, buffer[: len(rows)])
        aimed[some] = scores.gather(1, target).squeeze(1)
        if gradients is None or scale is None:
            normalizer[some] = scores.logsumexp(-1)
            continue
        # The largest p is at least 1 / W, so its logarithm is accurate enough and saves a pass.
        largest = scores.amax(-1)
        errors = torch.softmax(scores, -1, out=scores)
        normalizer[some] = largest - errors.amax(-1).log()
        if layer.label_smoothing > 0:
            errors.sub_(layer.label_smoothing / len(weight))
        errors.scatter_add_(1, target, errors.new_full(target.shape, layer.label_smoothing - 1))
        _add_gradients(gradients, some, errors, rows, weight, scale[some])
    log_prob = aimed - normalizer
    if layer.label_smoothing == 0:
        return -log_prob, log_prob, gradients
    mean = layer.vectors.to(wide) @ layer.weight.mean(0, dtype=wide) + layer.bias.mean(dtype=wide)
    smooth = normalizer - (1 - layer.label_smoothing) * aimed - layer.label_smoothing * mean
    return smooth, log_prob, gradients


def _scores(rows: Tensor, weight: Tensor, bias: Tensor, out: Tensor) -> Tensor:
    """Compute W x + b into a buffer that may be wider than the product."""
    if rows.dtype == out.dtype == bias.dtype:
        return torch.addmm(bias, rows, weight.T, out=out)
    return out.copy_(rows @ weight.T).add_(bias)


def _add_gradients(
    gradients: _Gradients, some: slice, errors: Tensor, rows: Tensor, weight: Tensor, scale: Tensor
) -> None:
    """Add the contribution of these rows; g multiplies the narrow side of each product."""
    narrow = errors.to(rows.dtype)
    scaled, column = scale.to(rows.dtype).unsqueeze(-1), scale.to(errors.dtype)
    gradients.vectors[some] = (narrow @ weight).mul_(scaled)
    if narrow.dtype == gradients.weight.dtype:
        gradients.weight.addmm_(narrow.T, rows * scaled)
    else:
        gradients.weight.add_(narrow.T @ (rows * scaled))
    gradients.bias.addmv_(errors.T, column)


def _differentiable(layer: _Layer, grad: Tensor) -> _Gradients:
    """Compute the gradients with differentiable operations, for double backward."""
    vectors, weight = layer.vectors.to(_wide(layer)), layer.weight.to(_wide(layer))
    aim = one_hot(layer.targets, len(weight)) * (1 - layer.label_smoothing)
    aim = aim + layer.label_smoothing / len(weight)
    errors = linear(vectors, weight, layer.bias.to(weight.dtype)).softmax(-1) - aim
    errors = errors * grad.unsqueeze(-1)
    return _Gradients(errors @ weight, errors.T @ vectors, errors.sum(0))


def _plain(
    vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Compute layer and loss as separate operations."""
    log_probs = linear(vectors, weight, bias).log_softmax(-1)
    log_prob = log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    loss = -(1 - label_smoothing) * log_prob - label_smoothing * log_probs.mean(-1)
    return loss, log_prob.detach()


def _wide(layer: _Layer) -> torch.dtype:
    """Return the dtype of sums: at least float32."""
    return torch.promote_types(layer.product, torch.float32)
