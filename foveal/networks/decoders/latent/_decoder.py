"""A decoder with latent attention: each step reads one position, which is summed out.

    s_t = RNN( s_{t-1}, [y_{t-1}; bridge] ),     v[t, s] = tanh( U [value_s; s_t] )
    p(y_t | y_<t, a_t = s) = softmax( W v[t, s] + b )

    free       p(y_t | y_<t) = sum over s of p(a_t = s) p(y_t | y_<t, a_t = s)             Wu et al. 2018
    forward    p(y) = sum over a_1 <= a_2 <= .. of the product over t of
                      p(a_t | a_{t-1}) p(y_t | y_<t, a_t)                         Wu & Cotterell 2019

Soft attention reads a mean of the positions, a value that no position has. Here every token comes from one
position, the likelihood is exact, and so is the posterior p(a | y), whose weights `score` returns. `step`
and `unroll` return p(a_t | y_<t), because the token of the step is not known yet.

The cost is an output layer for every pair of step and position. Its table is computed for a few steps at a
time and, if there is more than one such chunk, recomputed in the backward pass.

Label smoothing works as in other decoders: the target distribution of a step is mixed with the uniform
distribution over tokens and compared with p(y_t | y_<t), with the position summed out,

    loss[t] = - (1 - e) log p(y_t | y_<t) - e mean over w of log p(w | y_<t)

Axes: *batch any leading shape, T steps, S positions, W tokens of the vocabulary, H width of the stack's
output, A of the vector v.
"""

from collections.abc import Callable
from typing import NamedTuple, Unpack, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from typing_extensions import override

from ....attention import AbstractScorer, Attended, Memory
from ....attention._scorers import scores_of
from ....batch_invariant import Linear, linear
from ....distributions import Categorical
from ....shapes import flatten_batch, restore_batch
from ..._bridges import summarized
from .._recurrent_decoder import AbstractRecurrentDecoder, DecoderParts
from .._steps import DecoderState, Step, TokenLosses, Unrolled
from ._posterior import Posterior
from ._tokens import (
    Output,
    Places,
    PlacesState,
    chosen,
    emission_of,
    mean_log_prob,
    summed,
    token_scores,
    vectors_of,
)
from ._transitions import AbstractTransitions

# Entries of the table of steps, positions and tokens that are computed at once: 32 MB of float32.
_TABLE = 2**23

# Maps (predicted, scores, norms) to a result with the position summed out: (*batch, T, any).
SumUp = Callable[[Tensor, Tensor, Tensor], Tensor]


class Marginals(NamedTuple):
    """Steps with the position summed out; `rest` is the result of `SumUp`."""

    predicted: Float[Tensor, "*batch T S"]
    emissions: Float[Tensor, "*batch T S"]
    norms: Float[Tensor, "*batch T S"]
    rest: Float[Tensor, "*batch T R"]
    log_prob: Float[Tensor, "*batch T 1"]


class _Taught(NamedTuple):
    """All steps, their inputs, and the final state."""

    steps: Marginals
    scores: Float[Tensor, "*batch T S"]
    state: DecoderState


@final
class LatentDecoder(AbstractRecurrentDecoder):
    """A decoder that sums over the position that each step reads.

    Args:
        scorer: Scores the positions of the memory; its queries are the outputs of the stack.
        walk: Model of the sequences of positions.
        value_size: Width of the values of the memory.
        vector_size: Width of the vector v before the output layer; defaults to the width of the stack's output.
        **parts: `embedding`, `stack` and `bridge`, and optionally `tie_embeddings`, to use the embedding as the
            weights of the output layer, and `dropout`, a probability.

    Examples:
        >>> from torch import nn
        >>> from foveal.attention import AdditiveScorer
        >>> from foveal.networks.decoders.latent._transitions import MonotonicTransitions
        >>> from foveal.networks import InitialStateBridge, recurrent_stack
        >>> stack = recurrent_stack(4, 5)
        >>> decoder = LatentDecoder(
        ...     embedding=nn.Embedding(9, 4), stack=stack, bridge=InitialStateBridge(6, stack),
        ...     scorer=AdditiveScorer(5, 6, hidden_size=5), walk=MonotonicTransitions(), value_size=6,
        ... )
        >>> tokens, memory = torch.tensor([[1, 2, 3]]), Memory(torch.randn(1, 7, 6))
        >>> decoder.unroll(tokens, memory).log_probs.shape
        torch.Size([1, 3, 9])
        >>> decoder.best_alignment(tokens, torch.tensor([[2, 3, 4]]), memory).shape
        torch.Size([1, 3])
    """

    def __init__(
        self,
        *,
        scorer: AbstractScorer,
        walk: AbstractTransitions,
        value_size: int,
        vector_size: int | None = None,
        **parts: Unpack[DecoderParts],
    ) -> None:
        hidden_size = parts["stack"].output_size
        vector_size = hidden_size if vector_size is None else vector_size
        super().__init__(vector_size=vector_size, **parts)
        self.scorer, self.walk = scorer, walk
        self.combine = Linear(value_size + hidden_size, vector_size, bias=False)

    @override
    def remember(self, memory: Memory) -> Memory:
        """Add an empty position to items with only padding, because each item needs at least one."""
        memory = summarized(memory).cleared("LatentDecoder")
        values, mask = memory.values, memory.mask
        if mask is not None:
            mask = mask.clone()
            mask[..., 0] |= ~mask.any(-1)
        of_value = self.combine.weight[:, : values.shape[-1]]
        places = Places(linear(values, of_value), self.scorer.remember(values))
        return memory._replace(values=values, mask=mask, keys=places)

    @override
    def step(self, state: DecoderState, token: Int[Tensor, "*batch"], memory: Memory) -> Step:
        hidden, layers = self.advance(state, token, memory)
        tokens = token.unsqueeze(-1)
        before = self._before(state.own, tokens, memory, None)
        steps, _, after = self._steps(
            hidden.unsqueeze(-2), tokens, memory, None, before, DecoderState(layers), summed
        )
        return Step(after, steps.rest.squeeze(-2), _predicted(steps, memory))

    @override
    def unroll(
        self,
        tokens: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
    ) -> Unrolled:
        memory = self._remembered(memory)
        tokens = tokens if mask is None else tokens.masked_fill(~mask, 0)
        steps, _, state = self._teach(tokens, following(tokens, mask), memory, mask, state, summed)
        log_probs = steps.rest
        if mask is not None:
            log_probs = log_probs.masked_fill(~mask.unsqueeze(-1), 0.0)
        return Unrolled(log_probs, (_predicted(steps, memory),), state)

    @override
    def score(
        self,
        tokens: Int[Tensor, "*batch T"],
        targets: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> TokenLosses:
        """Compute the loss with teacher forcing: `targets[t]` is the target after `tokens[t]`.

        Steps after t condition on `targets[t]`. The weights are p(a_t = s | all targets).
        """
        memory = self._remembered(memory)
        if mask is not None:
            tokens, targets = (part.masked_fill(~mask, 0) for part in (tokens, targets))
        sum_up = _mean if label_smoothing > 0 else None
        steps, scores, state = self._teach(tokens, targets, memory, mask, state, sum_up)
        log_prob = steps.log_prob.squeeze(-1)
        loss = -log_prob
        if label_smoothing > 0:
            mean = steps.rest.squeeze(-1)
            mean = mean if mask is None else mean.masked_fill(~mask, 0.0)
            loss = (1 - label_smoothing) * loss - label_smoothing * mean
        posterior = Posterior(self.walk, scores, steps.emissions, steps.predicted, mask)
        return TokenLosses(loss, log_prob.detach(), (posterior,), state)

    @torch.no_grad()
    def best_alignment(
        self,
        tokens: Int[Tensor, "*batch T"],
        targets: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
    ) -> Int[Tensor, "*batch T"]:
        """Return the position of each target in the most probable alignment (Viterbi).

        Args:
            tokens: Token ids to read, the begin symbol first.
            targets: Token ids to align; `targets[t]` follows `tokens[t]`.
            memory: Encoded input; `remember` is called if the caller has not done so.
            mask: True on real tokens; None if all tokens are real.

        Returns:
            Positions of the memory, one for each target; -1 on padding.
        """
        (posterior,) = self.score(tokens, targets, memory, mask).attended
        assert isinstance(posterior, Posterior)
        if mask is None:
            return posterior.distribution.argmax()
        if isinstance(posterior.distribution, Categorical):  # it does not mark padded steps
            return torch.where(mask, posterior.weights.argmax(-1), -1)
        return posterior.distribution.argmax()

    def _teach(
        self,
        tokens: Tensor,
        targets: Tensor,
        memory: Memory,
        mask: Tensor | None,
        state: DecoderState | None,
        sum_up: SumUp | None,
    ) -> _Taught:
        """Run all steps, with the fused kernel for the stack."""
        state = self.start(memory) if state is None else state
        hidden, layers = self.stack(self._input(tokens, memory), mask, state.layers)
        before = self._before(state.own, tokens, memory, mask)
        after = DecoderState(layers, state.own)
        return self._steps(hidden, targets, memory, mask, before, after, sum_up)

    def _steps(
        self,
        hidden: Float[Tensor, "*batch T H"],
        targets: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Tensor | None,
        before: Float[Tensor, "*batch S"],
        state: DecoderState,
        sum_up: SumUp | None,
    ) -> _Taught:
        """Compute the results from the outputs of the stack, in chunks of steps."""
        query = linear(hidden, self.combine.weight[:, memory.values.shape[-1] :])
        kept = self.dropout(torch.ones_like(query)) if self._drops else None
        scores = self._scores(hidden, memory)
        size = scores[..., 0, :].numel() * max(self.output.bias.numel(), query.shape[-1])
        length = max(1, _TABLE // max(size, 1))
        again = torch.is_grad_enabled() and length < targets.shape[-1]
        pieces = []
        for start in range(0, targets.shape[-1], length):
            some = slice(start, start + length)
            parts = (
                query[..., some, :],
                None if kept is None else kept[..., some, :],
                memory.keys.vectors,
                self._weights(),
                scores[..., some, :],
                targets[..., some],
                None if mask is None else mask[..., some],
                before,
                sum_up,
            )
            if again:
                *piece, before = checkpoint(self._piece, *parts, use_reentrant=False)
            else:
                *piece, before = self._piece(*parts)
            pieces.append(piece)
        steps = Marginals(*(torch.cat(part, -2) for part in zip(*pieces, strict=True)))
        if self.walk.remembers:
            state = state._replace(own=_last(steps, query, kept, mask, state.own))
        return _Taught(steps, scores, state)

    def _piece(
        self,
        query: Tensor,
        kept: Tensor | None,
        places: Tensor,
        output: Output,
        scores: Tensor,
        targets: Tensor,
        mask: Tensor | None,
        before: Tensor,
        sum_up: SumUp | None,
    ) -> tuple[Tensor, ...]:
        """Compute the parts of `Marginals` for a few steps, and log p(position | tokens) after them."""
        table, norms = token_scores(vectors_of(query, places, kept), output)
        emissions = chosen(table, norms, targets)
        batch = scores.shape[:-2]
        walked = self.walk.run(
            flatten_batch(scores, batch, 2),
            flatten_batch(emissions, batch, 2),
            flatten_batch(before, batch, 1),
            None if mask is None else flatten_batch(mask, batch, 1),
        )
        predicted, log_prob, after = (restore_batch(part, batch) for part in walked)
        rest = predicted[..., :0] if sum_up is None else sum_up(predicted, table, norms)
        return predicted, emissions, norms, rest, log_prob.unsqueeze(-1), after

    def _before(
        self, places: PlacesState | None, tokens: Tensor, memory: Memory, mask: Tensor | None
    ) -> Float[Tensor, "*batch S"]:
        """Compute log p(position of the last step), given the first of `tokens`, which is its output."""
        if places is None:
            return self.walk.start(memory.keys.vectors[..., 0].to(self._wide(memory)))
        first = tokens[..., 0]
        if mask is not None:
            first = tokens.gather(-1, mask.to(torch.uint8).argmax(-1, keepdim=True)).squeeze(-1)
        emission = emission_of(places, memory.keys.vectors, self._weights(), first)
        return (places.predicted + emission).log_softmax(-1)

    def _scores(self, hidden: Tensor, memory: Memory) -> Float[Tensor, "*batch T S"]:
        """Score the positions at each step, -inf on padding."""
        scores = scores_of(self.scorer, hidden, memory.keys.keys).to(self._wide(memory))
        if memory.mask is None:
            return scores
        return scores.masked_fill(~memory.mask.unsqueeze(-2), -torch.inf)

    def _wide(self, memory: Memory) -> torch.dtype:
        """Return the dtype of sums over positions: at least float32."""
        return torch.promote_types(memory.values.dtype, torch.float32)

    def _weights(self) -> Output:
        return Output(self.output.table(self.embedding), self.output.bias)

    @property
    def _drops(self) -> bool:
        return self.training and self.dropout.p > 0


def following(
    tokens: Int[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"] | None = None
) -> Int[Tensor, "*batch T"]:
    """Return the real token after each token.

    Args:
        tokens: Token ids.
        mask: True on real tokens; None if all tokens are real.

    Returns:
        The next real token of each token; the result at the last token is meaningless.

    Examples:
        >>> following(torch.tensor([1, 2, 3, 4]), torch.tensor([True, False, True, True]))
        tensor([3, 3, 4, 4])
    """
    size = tokens.shape[-1]
    index = torch.arange(size, device=tokens.device).expand(tokens.shape)
    if mask is not None:
        index = torch.where(mask, index, size - 1).flip(-1).cummin(-1).values.flip(-1)
    return tokens.gather(-1, torch.cat([index[..., 1:], index[..., -1:]], -1))


def _last(
    steps: Marginals,
    query: Tensor,
    kept: Tensor | None,
    mask: Tensor | None,
    before: PlacesState | None,
) -> PlacesState:
    """Return the state after the last real step, or the previous state if there is no real step."""
    if mask is None:
        parts = (part[..., -1, :] for part in (steps.predicted, query, steps.norms))
        return PlacesState(*parts, kept=None if kept is None else kept[..., -1, :])
    index = torch.arange(mask.shape[-1], device=mask.device)
    last = torch.where(mask, index, -1).amax(-1, keepdim=True)
    some, last = last >= 0, last.clamp(min=0).unsqueeze(-1)

    def at_last(part: Tensor, old: Tensor) -> Tensor:
        return torch.where(some, part.take_along_dim(last, -2).squeeze(-2), old)

    if before is None:  # no real step: the first position
        nowhere = torch.full_like(steps.predicted[..., 0, :], -torch.inf)
        nowhere[..., 0] = 0.0
        blank = torch.zeros_like(query[..., 0, :])
        before = PlacesState(nowhere, blank, torch.zeros_like(nowhere))
    if kept is not None:
        was = torch.ones_like(kept[..., 0, :]) if before.kept is None else before.kept
        kept = at_last(kept, was)
    return PlacesState(
        at_last(steps.predicted, before.predicted),
        at_last(query, before.query),
        at_last(steps.norms, before.norms),
        kept,
    )


def _predicted(steps: Marginals, memory: Memory) -> Attended:
    """Return the predicted attention of each step, before its token is known."""
    weights = steps.predicted.exp()
    return Attended(
        weights.to(memory.values.dtype) @ memory.values, weights, Categorical(steps.predicted)
    )


def _mean(predicted: Tensor, scores: Tensor, norms: Tensor) -> Float[Tensor, "*batch T 1"]:
    return mean_log_prob(predicted, scores, norms).unsqueeze(-1)
