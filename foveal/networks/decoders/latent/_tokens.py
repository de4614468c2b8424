"""What may be written at a step if one place alone is read, for every place.

    v[t, s] = tanh( U_s h_t + U_c value_s )
    log p(w | h_t, a_t = s) = log_softmax( W v[t, s] + b )

and of it what a loss needs, with the place summed out: predicted[t, s] = p(a_t = s | y_<t).

    log p(w | y_<t) = log sum over s of predicted[t, s] p(w | h_t, a_t = s)

Axes: B items, T steps, S places, A width of the vector v, W tokens of the vocabulary.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import linear


class Places(NamedTuple):
    """A memory made ready: U_c value of every place, and what the scorer needs of it."""

    vectors: Float[Tensor, "*batch S A"]
    keys: object


class PlacesState(NamedTuple):
    """What the last step knew; the token that it has led to is yet to be read.

    `norms` is the log-sum over all tokens of exp(W v + b), for each place, so that the
    log-probability of the one token is a single product. Tensors have the batch axes first.
    """

    predicted: Float[Tensor, "*batch S"]  # log p(a_t | y_<t)
    query: Float[Tensor, "*batch A"]  # U_s h_t
    norms: Float[Tensor, "*batch S"]
    kept: Float[Tensor, "*batch A"] | None = None  # what dropout left of v, in training


class Output(NamedTuple):
    """The weights of the output layer."""

    weight: Float[Tensor, "W A"]
    bias: Float[Tensor, " W"]


def vectors_of(
    query: Float[Tensor, "*#batch T A"],
    places: Float[Tensor, "*#batch S A"],
    kept: Float[Tensor, "*#batch T A"] | None = None,
) -> Float[Tensor, "*batch T S A"]:
    """v for every step and place. What dropout keeps is the same at all places of a step, so that
    places are compared by the same units.
    """
    vectors = torch.tanh(query.unsqueeze(-2) + places.unsqueeze(-3))
    return vectors if kept is None else vectors * kept.unsqueeze(-2)


def token_scores(
    vectors: Float[Tensor, "*batch T S A"], output: Output
) -> tuple[Float[Tensor, "*batch T S W"], Float[Tensor, "*batch T S"]]:
    """W v + b, and the norms at every place: log p is the one less the other. They stay two, as the
    table is the largest thing there is and every pass over it counts.
    """
    scores = linear(vectors, output.weight, output.bias)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return scores, scores.logsumexp(-1)


def chosen(
    scores: Float[Tensor, "*batch T S W"],
    norms: Float[Tensor, "*batch T S"],
    targets: Int[Tensor, "*batch T"],
) -> Float[Tensor, "*batch T S"]:
    """The log-probability of the target at every place."""
    index = targets[..., None, None].expand(*scores.shape[:-1], 1)
    return scores.gather(-1, index).squeeze(-1) - norms


def summed(
    predicted: Float[Tensor, "*batch T S"],
    scores: Float[Tensor, "*batch T S W"],
    norms: Float[Tensor, "*batch T S"],
) -> Float[Tensor, "*batch T W"]:
    """log p(w | y_<t), the place summed out."""
    return ((predicted - norms).unsqueeze(-1) + scores).logsumexp(-2)


def mean_log_prob(
    predicted: Float[Tensor, "*batch T S"],
    scores: Float[Tensor, "*batch T S W"],
    norms: Float[Tensor, "*batch T S"],
) -> Float[Tensor, "*batch T"]:
    """The mean over all tokens of log p(w | y_<t): what label smoothing asks for. As `summed` and a
    mean it would pass over the table twice as often.
    """
    return _MeanLogProb.apply(predicted - norms, scores)


class _MeanLogProb(torch.autograd.Function):
    """(a (*batch, T, S), b (*batch, T, S, W)) -> mean over w of log sum over s of exp(a + b).

    Its gradient in b is p(s | w) / W, a softmax over places, and in a the sum of that over w.
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
        if torch.is_grad_enabled():  # a derivative of this is wanted too: operations autograd knows
            share = (prior.unsqueeze(-1) + scores).softmax(-2)
        of_scores = share * (grads[0] / scores.shape[-1])[..., None, None]
        return of_scores.sum(-1), of_scores


def emission_of(
    state: PlacesState,
    places: Float[Tensor, "*batch S A"],
    output: Output,
    token: Int[Tensor, "*batch"],
) -> Float[Tensor, "*batch S"]:
    """log p(token | a_t = s) of the token that the last step has led to."""
    kept = None if state.kept is None else state.kept.unsqueeze(-2)
    vectors = vectors_of(state.query.unsqueeze(-2), places, kept).squeeze(-3)
    weight = output.weight[token].unsqueeze(-1)
    return (vectors @ weight).squeeze(-1) + output.bias[token].unsqueeze(-1) - state.norms
