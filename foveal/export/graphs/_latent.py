"""Decoders that sum over the position that each step reads: latent hard and latent monotone attention.

    v[s] = tanh( U_value value_s + U_state s_t ),   p(w) = sum over s of predicted[s] softmax( W v[s] + b )[w]
    hard       predicted = softmax(scores)
    monotone   predicted[j] = sum over i <= j of filtered[i] softmax over j >= i of scores[j]
               filtered[s] is the position of the last step, given the token that followed it

Probabilities are summed as products of matrices, because sums of exponentials over positions are slow in ONNX Runtime.
A probability that underflows counts as the smallest positive number, so every output can end.

Axes: B items, K hypotheses of each, S positions, W tokens of the vocabulary, A width of a vector v.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np
from typing_extensions import override

from ...models import DecoderSpec, LatentHardSpec, LatentMonotoneSpec
from ._advance import Advance
from ._decoding_steps import DecoderGraph, Started, Stepped
from ._graph import INT64, Value, axes, linear, log, op, places, size, squeeze, unsqueeze
from ._memory import MemoryGraph, closed
from ._outputs import output_table
from ._scorers import ScorerGraph, scorer_graph
from ._weights import Weights

_LEAST = 1.2e-38  # the smallest float32 with all its digits
_NEVER = float("-inf")


@final
@dataclass(eq=False)
class LatentDecoderGraph(DecoderGraph):
    """A recurrent decoder whose attention is a latent position, summed out.

    Args:
        spec: Spec of the decoder.
        attention: Spec of its attention.
        weights: Weights of the decoder.
    """

    spec: DecoderSpec
    attention: LatentHardSpec | LatentMonotoneSpec
    weights: Weights
    advance: Advance = field(init=False)
    scorer: ScorerGraph = field(init=False)

    def __post_init__(self) -> None:
        self.num_tokens = len(self.weights["embedding.weight"])
        self.advance = Advance(self.spec, self.weights)
        self.scorer = scorer_graph(
            self.attention.scorer, self.weights.at("scorer"), self.spec.hidden_size
        )
        both = self.weights["combine.weight"]
        split = both.shape[1] - self.spec.hidden_size
        self._of_value, self._of_hidden = both[:, :split], both[:, split:]

    @property
    def _remembers(self) -> bool:
        """Whether a step depends on the position of the step before."""
        return self.attention.walk().remembers

    @override
    def start(self, memory: MemoryGraph) -> Started:
        kept, state = self.advance.start(memory)
        # An item with only padding reads its first position.
        first = op("Equal", places(memory.values, 1), 0)
        real = op("Or", memory.real, op("And", first, op("Not", _any(memory.real))))
        kept["closed"] = closed(real)
        kept["keys"] = self.scorer.keys(memory.values)
        kept["vectors"] = unsqueeze(linear(memory.values, self._of_value), 1)  # (B, 1, S, A)
        if self._remembers:
            zero = op("Cast", real, to=1) * 0.0
            state["predicted"] = zero + op("Where", first, 0.0, _NEVER)
            state["norms"] = zero
            shape = op("Concat", size(memory.values, 0), axes(len(self._of_hidden)), axis=0)
            state["query"] = op("Expand", 0.0, shape)
        return Started(kept, state)

    @override
    def step(
        self, kept: Mapping[str, Value], state: Mapping[str, Value], tokens: Value, number: Value
    ) -> Stepped:
        hidden, after = self.advance.step(kept, state, tokens, None)
        scores = self.scorer.scores(hidden, kept["keys"]) + kept["closed"]
        query = linear(hidden, self._of_hidden)
        table, bias = output_table(self.weights), self.weights["output.bias"]
        found = linear(_at_positions(query, kept), table, bias)  # (B, K, S, W)
        if self._remembers:
            predicted = self._walked(state, tokens, scores, kept, number)
            norms = op("ReduceLogSumExp", found, axes(3), keepdims=0)
            weights, probs = op("Exp", predicted), op("Exp", found - unsqueeze(norms, 3))
            after |= {"predicted": predicted, "norms": norms, "query": query}
        else:
            weights, probs = op("Softmax", scores, axis=-1), op("Softmax", found, axis=-1)
        mixed = squeeze(unsqueeze(weights, 2) @ probs, 2)
        return Stepped(log(op("Max", mixed, _LEAST)), weights, after)

    def _walked(
        self,
        state: Mapping[str, Value],
        tokens: Value,
        scores: Value,
        kept: Mapping[str, Value],
        number: Value,
    ) -> Value:
        """Return log p(a_t | y_<t) `(B, K, S)` of a walk that never goes back."""
        table, bias = output_table(self.weights), self.weights["output.bias"]
        chosen = unsqueeze(op("Gather", table, tokens), 3)  # (B, K, A, 1)
        emissions = squeeze(_at_positions(state["query"], kept) @ chosen, 3)
        emissions = emissions + unsqueeze(op("Gather", bias, tokens), 2) - state["norms"]
        # No token came before the first step, which starts at the first position.
        is_first = op("Equal", op("Cast", number, to=INT64), 0)
        emissions = op("Where", is_first, 0.0, emissions)
        filtered = op("LogSoftmax", state["predicted"] + emissions, axis=-1)
        length = size(scores, 2)
        square = op("Expand", _NEVER, op("Concat", length, length, axis=0))
        # 0 where j >= i, and -inf below: rows are positions i, columns are positions j.
        later = op("Trilu", square, -1, upper=0)
        ahead = op("ReduceLogSumExp", unsqueeze(scores, 2) + later, axes(3), keepdims=0)
        ahead = op("Where", op("IsInf", ahead), float("inf"), ahead)
        left = unsqueeze(filtered - ahead, 3) + later
        return scores + op("ReduceLogSumExp", left, axes(2), keepdims=0)


def _at_positions(query: Value, kept: Mapping[str, Value]) -> Value:
    """Return v for every position `(B, K, S, A)`."""
    return op("Tanh", unsqueeze(query, 2) + kept["vectors"])


def _any(real: Value) -> Value:
    """Return whether an item has a real position `(B, 1)`."""
    number = op("ReduceSum", op("Cast", real, to=INT64), axes(1), keepdims=1)
    return op("Greater", number, np.int64(0))
