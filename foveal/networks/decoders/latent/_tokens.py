"""Token probabilities of a step that reads one position, for every position.

    v[t, s] = tanh( U_s h_t + U_c value_s )
    log p(w | h_t, a_t = s) = log_softmax( W v[t, s] + b )

The loss sums out the position, with predicted[t, s] = p(a_t = s | y_<t):

    log p(w | y_<t) = log sum over s of predicted[t, s] p(w | h_t, a_t = s)

Axes: B items, T steps, S positions, A width of the vector v, W tokens of the vocabulary.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import linear


class Places(NamedTuple):
    """A prepared memory: U_c value of every position, and the keys of the scorer."""

    vectors: Float[Tensor, "*batch S A"]
    keys: object


class PlacesState(NamedTuple):
    """The result of the last step, before its token is known.

    `norms` is the log-sum over all tokens of exp(W v + b) for each position. With it, the log-probability
    of one token needs a single product. The first axes of tensors are the batch axes.
    """

    predicted: Float[Tensor, "*batch S"]  # log p(a_t | y_<t)
    query: Float[Tensor, "*batch A"]  # U_s h_t
    norms: Float[Tensor, "*batch S"]
    kept: Float[Tensor, "*batch A"] | None = None  # dropout mask of v, in training


class Output(NamedTuple):
    """The weights of the output layer."""

    weight: Float[Tensor, "W A"]
    bias: Float[Tensor, " W"]


def vectors_of(
    query: Float[Tensor, "*#batch T A"],
    places: Float[Tensor, "*#batch S A"],
    kept: Float[Tensor, "*#batch T A"] | None = None,
) -> Float[Tensor, "*batch T S A"]:
    """Compute v for every step and position.

    All positions of a step share one dropout mask, which makes them comparable.
    """
    vectors = torch.tanh(query.unsqueeze(-2) + places.unsqueeze(-3))
    return vectors if kept is None else vectors * kept.unsqueeze(-2)


def token_scores(
    vectors: Float[Tensor, "*batch T S A"], output: Output
) -> tuple[Float[Tensor, "*batch T S W"], Float[Tensor, "*batch T S"]]:
    """Compute W v + b, and the norms at every position; log p is their difference.

    They stay separate because the table is the largest tensor and every pass over it is expensive.
    """
    scores = linear(vectors, output.weight, output.bias)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return scores, scores.logsumexp(-1)


def chosen(
    scores: Float[Tensor, "*batch T S W"],
    norms: Float[Tensor, "*batch T S"],
    targets: Int[Tensor, "*batch T"],
) -> Float[Tensor, "*batch T S"]:
    """Compute the log-probability of the target at every position."""
    index = targets[..., None, None].expand(*scores.shape[:-1], 1)
    return scores.gather(-1, index).squeeze(-1) - norms


def summed(
    predicted: Float[Tensor, "*batch T S"],
    scores: Float[Tensor, "*batch T S W"],
    norms: Float[Tensor, "*batch T S"],
) -> Float[Tensor, "*batch T W"]:
    """Compute log p(w | y_<t), with the position summed out."""
    return ((predicted - norms).unsqueeze(-1) + scores).logsumexp(-2)


def mean_log_prob(
    predicted: Float[Tensor, "*batch T S"],
    scores: Float[Tensor, "*batch T S W"],
    norms: Float[Tensor, "*batch T S"],
) -> Float[Tensor, "*batch T"]:
    """Compute the mean over all tokens of log p(w | y_<t), for label smoothing.

    `summed` followed by a mean would pass over the table twice as often.
    """
    return _MeanLogProb.apply(predicted - norms, scores)


class _MeanLogProb(torch.autograd.Function):
    """(a (*batch, T, S), b (*batch, T, S, W)) -> mean over w of log sum over s of exp(a + b).

    Its gradient in b is p(s | w) / W, a softmax over positions, and in a the sum of that over w.
    """

    @staticmethod
    def forward(ctx: Any, prior: Tensor, scores: Tensor) -> Tensor:
        share = prior.unsqueeze(-1) + scores
        largest = share.amax(-2, keepdim=True)
        total = share.sub_(largest).exp_().sum(-2, keepdim=True)
        share.div_(total)
        ctx.save_for_backward(prior, scores, share)
        return largest.add_(total.log_()).squeeze(-2).mean(-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        prior, scores, share = ctx.saved_tensors
        if torch.is_grad_enabled():  # double backward: use differentiable operations
            share = (prior.unsqueeze(-1) + scores).softmax(-2)
        of_scores = share * (grads[0] / scores.shape[-1])[..., None, None]
        return of_scores.sum(-1), of_scores


def emission_of(
    state: PlacesState,
    places: Float[Tensor, "*batch S A"],
    output: Output,
    token: Int[Tensor, "*batch"],
) -> Float[Tensor, "*batch S"]:
    """Compute log p(token | a_t = s) of the token that follows the last step."""
    kept = None if state.kept is None else state.kept.unsqueeze(-2)
    vectors = vectors_of(state.query.unsqueeze(-2), places, kept).squeeze(-3)
    weight = output.weight[token].unsqueeze(-1)
    return (vectors @ weight).squeeze(-1) + output.bias[token].unsqueeze(-1) - state.norms
