"""Recurrent decoders as graphs: without attention, attending after the step or before it, with input feeding, copying,
coverage and location addressing. `_latent.py` has decoders that sum over positions.

Axes: B items, K hypotheses of each, S positions, W tokens of the vocabulary, A width of the vector v before the output
layer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
from typing_extensions import override

from ...data.vocabularies._vocabulary import UNKNOWN
from ...models import DecoderSpec, SoftmaxSpec
from ._advance import Advance
from ._attentions import AttentionGraph, attention_graph, shifted, softmax
from ._decoding_steps import DecoderGraph, Started, Stepped
from ._graph import FLOAT, INT64, Value, axes, linear, op, size
from ._memory import MemoryGraph
from ._outputs import copied, end_only, output_log_probs
from ._scorers import scorer_graph
from ._weights import Weights


@final
@dataclass(eq=False)
class RecurrentDecoderGraph(DecoderGraph):
    """A recurrent decoder with any attention that has one query for each step, or with none.

    Args:
        spec: Spec of the decoder.
        weights: Weights of the decoder.
    """

    spec: DecoderSpec
    weights: Weights
    advance: Advance = field(init=False)

    def __post_init__(self) -> None:
        self.num_tokens = len(self.weights["embedding.weight"])
        self.advance = Advance(self.spec, self.weights)

    @cached_property
    def _attention(self) -> AttentionGraph | None:
        spec, weights = self.spec.attention, self.weights.at("attention.scorer")
        if spec is None:
            return None
        if isinstance(spec, SoftmaxSpec) and self._has_history:
            inner = weights.at("inner")
            return AttentionGraph(scorer_graph(spec.scorer, inner, self.spec.hidden_size), softmax)
        return attention_graph(spec, weights, self.spec.hidden_size)

    @property
    def _has_history(self) -> bool:
        return self.spec.coverage or self.spec.shift > 0

    @cached_property
    def _combine(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights of v for the context and for the output of the stack."""
        both = self.weights["combine.weight"]
        split = both.shape[1] - self.spec.hidden_size
        return both[:, :split], both[:, split:]

    @override
    def start(self, memory: MemoryGraph) -> Started:
        kept, state = self.advance.start(memory)
        if self._attention is None:
            return Started(kept, state)
        kept["keys"] = self._attention.scorer.keys(memory.values)
        kept["real"] = memory.real
        kept["values"] = memory.values
        if self.spec.attend == "after":
            kept["values"] = linear(memory.values, self._combine[0])
        if self.spec.copies:
            assert memory.tokens is not None
            kept["tokens"] = memory.tokens
        if self.spec.input_feeding:
            shape = op("Concat", size(memory.values, 0), axes(len(self._combine[0])), axis=0)
            state["vector"] = op("Expand", 0.0, shape)
        if self._has_history:
            state["history"] = self._first_history(memory.real)
        return Started(kept, state)

    @override
    def step(
        self, kept: Mapping[str, Value], state: Mapping[str, Value], tokens: Value, number: Value
    ) -> Stepped:
        del number
        if self.spec.attend == "before":
            return self._before(kept, state, tokens)
        hidden, after = self.advance.step(kept, state, tokens, state.get("vector"))
        if self._attention is None:
            return Stepped(output_log_probs(hidden, self.weights), None, after)
        weights = self._read(hidden, kept, state)
        vectors = op("Tanh", weights @ kept["values"] + linear(hidden, self._combine[1]))
        if self.spec.input_feeding:
            after["vector"] = vectors
        return self._predicted(vectors, weights, kept, state, after)

    def _before(
        self, kept: Mapping[str, Value], state: Mapping[str, Value], tokens: Value
    ) -> Stepped:
        """Attend with the previous state, then advance."""
        weights = self._read(state[self.advance.top], kept, state)
        context = weights @ kept["values"]
        hidden, after = self.advance.step(kept, state, tokens, context)
        vectors = hidden
        if self.spec.deep_output:
            joined = op("Concat", hidden, self.advance.embedded(tokens), context, axis=-1)
            units = linear(joined, self.weights["deep.weight"], self.weights["deep.bias"])
            pairs = op("Reshape", units, axes(0, 0, -1, 2))
            vectors = op("ReduceMax", pairs, axes(-1), keepdims=0)
        return self._predicted(vectors, weights, kept, state, after)

    def _read(self, query: Value, kept: Mapping[str, Value], state: Mapping[str, Value]) -> Value:
        """Return the attention weights `(B, K, S)`."""
        assert self._attention is not None
        scores = self._attention.scorer.scores(query, kept["keys"])
        own = self.weights.at("attention.scorer")
        if self.spec.shift:
            head = linear(query, own["head.weight"], own["head.bias"])
            return shifted(scores, head, state["history"], query, kept["real"], self.spec.shift)
        if self.spec.coverage:
            scores = scores + state["history"] * own["weight"]
        return self._attention.distribute(scores, query, kept["real"])

    def _first_history(self, real: Value) -> Value:
        """Return the history before the first step `(B, S)`: no coverage, or all weight on the first position."""
        mask = op("Cast", real, to=FLOAT)
        if self.spec.coverage:
            return mask * 0.0
        earlier = op("CumSum", mask, 1, exclusive=1)
        return mask * op("Cast", op("Equal", earlier, 0.0), to=FLOAT)

    def _predicted(
        self,
        vectors: Value,
        weights: Value,
        kept: Mapping[str, Value],
        state: Mapping[str, Value],
        after: dict[str, Value],
    ) -> Stepped:
        if self._has_history:
            after["history"] = state["history"] + weights if self.spec.coverage else weights
        found = end_only(self.num_tokens) if self.spec.points else None
        log_probs = output_log_probs(vectors, self.weights) if found is None else found
        if not self.spec.copies:
            assert isinstance(log_probs, Value)
            return Stepped(log_probs, weights, after)
        mixed = copied(
            vectors,
            log_probs,
            weights,
            kept["tokens"],
            self.weights.at("copying"),
            self.num_tokens,
        )
        return Stepped(mixed, weights, after)


def copies_of(tokens: Value, source_size: int) -> Value:
    """Return the tokens that can be copied: a feature, whose id follows the source tokens, gives the unknown token."""
    is_token = op("Less", tokens, source_size)
    return op("Cast", op("Where", is_token, tokens, UNKNOWN), to=INT64)
