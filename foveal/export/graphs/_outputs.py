"""The output layer of a decoder, and copying.

    log p = log_softmax( W v + b )
    copying   p(y) = g P(y) + (1 - g) sum over positions s with copies[s] = y of weight[s],   g = sigmoid( w . v + b )

Axes: B items, K hypotheses, S positions, W tokens of the vocabulary, A width of the vector v.
"""

import numpy as np

from ...data import END
from ._graph import Value, axes, linear, log, op, softplus, unsqueeze
from ._weights import Weights

# Logarithms of probabilities are larger than this, or -inf.
_LEAST = -1e30


def output_table(weights: Weights) -> np.ndarray:
    """Return the weights W of the output layer, which may be those of the embedding."""
    name = "output.weight" if "output.weight" in weights else "embedding.weight"
    return weights[name]


def output_log_probs(vectors: Value, weights: Weights) -> Value:
    """Return the log-probabilities `(B, K, W)` of all tokens from vectors `(B, K, A)`."""
    scores = linear(vectors, output_table(weights), weights["output.bias"])
    return op("LogSoftmax", scores, axis=-1)


def end_only(num_tokens: int) -> np.ndarray:
    """Return log-probabilities that allow only the end: the output layer of a decoder that points."""
    only = np.full((1, 1, num_tokens), -np.inf, np.float32)
    only[..., END] = 0.0
    return only


def copied(
    vectors: Value,
    log_probs: Value | np.ndarray,
    read: Value,
    source: Value,
    weights: Weights,
    num_tokens: int,
) -> Value:
    """Return the log-probabilities of all tokens, generated or copied.

    Args:
        vectors: Vectors v `(B, K, A)`.
        log_probs: Log-probabilities of generating each token `(B, K, W)`.
        read: Attention weights `(B, K, S)`.
        source: Token of every position `(B, S)`.
        weights: Weights of the gate.
        num_tokens: Number W of tokens.

    Returns:
        Log-probabilities `(B, K, W)` of the mixture.
    """
    gate = linear(vectors, weights["score.weight"], weights["score.bias"])  # (B, K, 1)
    generated = op("Max", log_probs - softplus(-gate), _LEAST)
    empty = op("Concat", op("Shape", read, end=2), axes(num_tokens), axis=0)
    index = op("Expand", unsqueeze(source, 1), op("Shape", read))
    pointed = op("ScatterElements", op("Expand", 0.0, empty), index, read, axis=2, reduction="add")
    pointed = op("Max", log(pointed) - softplus(gate), _LEAST)
    highest = op("Max", generated, pointed)
    total = op("Exp", generated - highest) + op("Exp", pointed - highest)
    mixed = highest + log(total)
    # Where both are impossible, the sum of two numbers near the least one is impossible too.
    return op("Where", op("Less", mixed, _LEAST / 2), float("-inf"), mixed)
