"""The recurrent part of a decoder's step: token, bridge and context go into the stack.

    s_t = stack( s_{t-1}, [E y_{t-1}; bridge; context] )

The product of the input matrix and its parts is a sum of products: the part of the bridge is computed once for each
source, and the part of the token is a table of one row for each token where that makes the model no larger.

Axes: B items, K hypotheses, E width of an embedding, G gates of the lowest layer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from ...models import DecoderSpec
from ._decoding_steps import Started
from ._graph import Value, axes, linear, op, unsqueeze
from ._memory import MemoryGraph
from ._recurrent import StackStep
from ._weights import Weights

_WITH_SUMMARY = ("every_step", "both")
_WITH_FIRST = {"initial_state": "bridge", "both": "bridge.initial"}


@final
@dataclass(frozen=True)
class Advance:
    """Advances the stack of a decoder by one token.

    Args:
        spec: Spec of the decoder.
        weights: Weights of the decoder.
    """

    spec: DecoderSpec
    weights: Weights

    @cached_property
    def stack(self) -> StackStep:
        """The layers."""
        return StackStep(self.spec, self.weights.at("stack"))

    @property
    def top(self) -> str:
        """Name of the state of the top layer."""
        return f"hidden{self.spec.num_layers - 1}"

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The input weights of the lowest layer for the token, the bridge and the context."""
        weight, _ = self.stack.first_gates()
        embedding_size = self.weights["embedding.weight"].shape[1]
        after = embedding_size + self._bridge_size
        return weight[:, :embedding_size], weight[:, embedding_size:after], weight[:, after:]

    @cached_property
    def token_table(self) -> np.ndarray | None:
        """The gates of every token `(W, G)`, with the bias; None where they would make the model larger."""
        of_token, (_, bias) = self.parts[0], self.stack.first_gates()
        table = self.weights["embedding.weight"]
        is_small = len(table) * len(bias) <= table.size + of_token.size
        # An embedding that is used elsewhere stays in the model, and the table would come on top.
        if not is_small or self.spec.tie_embeddings or self.stack.needs_inputs:
            return None
        return table @ of_token.T + bias

    @cached_property
    def _bridge_size(self) -> int:
        if self.spec.bridge not in _WITH_SUMMARY:
            return 0
        weight, _ = self.stack.first_gates()
        embedding_size = self.weights["embedding.weight"].shape[1]
        return weight.shape[1] - embedding_size - self._fed_size

    @cached_property
    def _fed_size(self) -> int:
        """Width of the context that the stack reads."""
        if self.spec.attend == "before":
            combined = self.weights["deep.weight"].shape[1] if self.spec.deep_output else None
            if combined is not None:
                return combined - self.spec.hidden_size - self.spec.embedding_size
            return self._value_size
        if self.spec.input_feeding:
            return self.weights["combine.weight"].shape[0]
        return 0

    @cached_property
    def _value_size(self) -> int:
        """Width of a value, for a decoder that attends before the step with a linear output: what is left."""
        weight, _ = self.stack.first_gates()
        left = weight.shape[1] - self.spec.embedding_size
        # Every summary of this package is as wide as a value.
        return left // 2 if self.spec.bridge in _WITH_SUMMARY else left

    def start(self, memory: MemoryGraph) -> Started:
        """Return the part of the bridge in every step, and the first state of the layers."""
        kept, state = dict[str, Value](), dict[str, Value]()
        if self.spec.bridge in _WITH_SUMMARY:
            of_bridge = self.parts[1]
            kept["bridge_gates"] = unsqueeze(linear(memory.summary, of_bridge), 1)
            if self.stack.needs_inputs:
                kept["bridge"] = unsqueeze(memory.summary, 1)
        for name in self.stack.state_names():
            state[name] = self._first(name, memory.summary)
        return Started(kept, state)

    def embedded(self, tokens: Value) -> Value:
        """Return the vectors of tokens `(B, K, E)`."""
        return op("Gather", self.weights["embedding.weight"], tokens)

    def step(
        self,
        kept: Mapping[str, Value],
        state: Mapping[str, Value],
        tokens: Value,
        context: Value | None,
    ) -> tuple[Value, dict[str, Value]]:
        """Advance every hypothesis by one token `(B, K)`.

        Args:
            kept: The memory, from `start`.
            state: State of the layers `(B, K, H)`.
            tokens: Token ids `(B, K)`.
            context: Vector that the stack reads next to the token `(B, K, C)`; None if there is none.

        Returns:
            The output of the stack `(B, K, H)` and the new state of the layers.
        """
        gates = self._token_gates(tokens)
        if "bridge_gates" in kept:
            gates = gates + kept["bridge_gates"]
        if context is not None:
            gates = gates + linear(context, self.parts[2])
        inputs = None
        if self.stack.needs_inputs:
            inputs = self._inputs(kept, tokens, context)
        return self.stack.step(gates, state, inputs)

    def _token_gates(self, tokens: Value) -> Value:
        table = self.token_table
        if table is not None:
            return op("Gather", table, tokens)
        of_token, (_, bias) = self.parts[0], self.stack.first_gates()
        return linear(self.embedded(tokens), of_token, bias)

    def _inputs(self, kept: Mapping[str, Value], tokens: Value, context: Value | None) -> Value:
        """Return the input of the stack, for residual and skip connections."""
        parts = [self.embedded(tokens)]
        if "bridge" in kept:
            shape = op("Concat", op("Shape", tokens), axes(self._bridge_size), axis=0)
            parts.append(op("Expand", kept["bridge"], shape))
        if context is not None:
            parts.append(context)
        return op("Concat", *parts, axis=-1) if len(parts) > 1 else parts[0]

    def _first(self, name: str, summary: Value) -> Value:
        """Return one part of the first state `(B, H)`."""
        part, layer = ("hidden", name[6:]) if name.startswith("hidden") else ("memory", name[4:])
        items = op("Shape", summary, start=0, end=1)
        shape = op("Concat", items, axes(self.spec.hidden_size), axis=0)
        if self.spec.bridge == "learned":
            vector = self.weights[f"bridge.{part}.{layer}"]
            return op("Expand", np.tanh(vector) if part == "hidden" else vector, shape)
        if self.spec.bridge not in _WITH_FIRST:
            return op("Expand", 0.0, shape)
        weights = self.weights.at(f"{_WITH_FIRST[self.spec.bridge]}.{part}.{layer}")
        first = linear(summary, weights["weight"], weights["bias"])
        return op("Tanh", first) if part == "hidden" else first
