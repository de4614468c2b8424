"""Transformer decoders as graphs, with keys and values of the earlier tokens in the state.

Axes: B items, K hypotheses, S positions, W tokens of the vocabulary, P tokens so far, D width of a token's vector, H
heads, h the heads of one attention, d width of a head.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from typing_extensions import override

from ...models import TransformerDecoderSpec
from ._decoding_steps import DecoderGraph, Started, Stepped
from ._graph import Value, axes, linear, op, ops, size
from ._memory import MemoryGraph
from ._outputs import copied, end_only, output_log_probs
from ._transformer import (
    HeadGroup,
    Turn,
    fed_forward,
    folded,
    for_heads,
    head_groups,
    in_groups,
    joined_heads,
    layer_norm,
    placed,
    rotated,
    rotation,
    split_heads,
    unfolded,
)
from ._weights import Weights


@final
@dataclass(eq=False)
class TransformerDecoderGraph(DecoderGraph):
    """A Transformer decoder; its heads may read the memory with any attention that has a graph.

    Args:
        spec: Spec of the decoder.
        weights: Weights of the decoder.
    """

    spec: TransformerDecoderSpec
    weights: Weights

    def __post_init__(self) -> None:
        self.num_tokens = len(self.weights["embedding.weight"])
        self._head_size = self.spec.model_size // self.spec.num_heads
        self._groups = [
            head_groups(
                self.spec._heads_of(number),
                self._layer(number - 1).at("cross"),
                self._head_size,
            )
            for number in range(1, self.spec.num_layers + 1)
        ]

    def _layer(self, number: int) -> Weights:
        return self.weights.at(f"layers.{number}")

    @override
    def start(self, memory: MemoryGraph) -> Started:
        kept, state = dict[str, Value](), dict[str, Value]()
        for number, groups in enumerate(self._groups):
            cross = self._layer(number).at("cross")
            both = linear(memory.values, cross["project.weight"], cross["project.bias"])
            keys, values = (
                split_heads(part, self.spec.num_heads)
                for part in ops("Split", both, outputs=2, axis=-1, num_outputs=2)
            )
            for which, (group, (key, value)) in enumerate(in_groups(groups, keys, values)):
                kept[f"keys{number}.{which}"] = group.attention.scorer.keys(folded(key))
                kept[f"values{number}.{which}"] = folded(value)
                kept[f"real{group.num_heads}"] = for_heads(memory.real, group.num_heads)
            none = axes(self.spec.num_heads, 0, self._head_size)
            shape = op("Concat", size(memory.values, 0), none, axis=0)
            state[f"keys{number}"] = state[f"values{number}"] = op("Expand", 0.0, shape)
        if self.spec.copies:
            assert memory.tokens is not None
            kept["tokens"] = memory.tokens
        return Started(kept, state)

    @override
    def step(
        self, kept: Mapping[str, Value], state: Mapping[str, Value], tokens: Value, number: Value
    ) -> Stepped:
        position = op("Reshape", number, axes(1))
        embedded = op("Gather", self.weights["embedding.weight"], tokens)
        rows = placed(embedded, position, self.spec.positions, self.weights)
        turn = rotation(position, self._head_size) if self.spec.positions == "rotary" else None
        after, weights = dict[str, Value](), list[Value]()
        for layer in range(self.spec.num_layers):
            rows = rows + self._causal(layer, rows, turn, state, after)
            context, weights = self._cross(layer, rows, kept)
            rows = fed_forward(rows + context, self._layer(layer))
        vectors = layer_norm(rows, self.weights.at("norm"))
        joined = op("Concat", *weights, axis=1) if len(weights) > 1 else weights[0]
        mean = op("ReduceMean", joined, axes(1), keepdims=0)
        if not self.spec.copies:
            return Stepped(output_log_probs(vectors, self.weights), mean, after)
        generated = (
            end_only(self.num_tokens)
            if self.spec.points
            else output_log_probs(vectors, self.weights)
        )
        gate = self.weights.at("copying")
        mixed = copied(vectors, generated, mean, kept["tokens"], gate, self.num_tokens)
        return Stepped(mixed, mean, after)

    def _causal(
        self,
        number: int,
        rows: Value,
        turn: Turn | None,
        state: Mapping[str, Value],
        after: dict[str, Value],
    ) -> Value:
        """Read the tokens so far `(B, K, D)`, and write their keys and values into the next state."""
        layer = self._layer(number)
        weights = layer.at("causal")
        normed = layer_norm(rows, layer.at("causal_norm"))
        projected = linear(normed, weights["project.weight"], weights["project.bias"])
        query, key, value = (
            op("Reshape", part, axes(0, 0, self.spec.num_heads, 1, self._head_size))
            for part in ops("Split", projected, outputs=3, axis=-1, num_outputs=3)
        )  # (B, K, H, 1, d)
        if turn is not None:
            query, key = rotated(query, turn), rotated(key, turn)
        keys = op("Concat", state[f"keys{number}"], key, axis=3)
        values = op("Concat", state[f"values{number}"], value, axis=3)
        after |= {f"keys{number}": keys, f"values{number}": values}
        scores = query * self._head_size**-0.5 @ op("Transpose", keys, perm=[0, 1, 2, 4, 3])
        context = op("Reshape", op("Softmax", scores, axis=-1) @ values, axes(0, 0, -1))
        return linear(context, weights["output.weight"], weights["output.bias"])

    def _cross(
        self, number: int, rows: Value, kept: Mapping[str, Value]
    ) -> tuple[Value, list[Value]]:
        """Read the memory `(B, K, D)`, and return the weights `(B, h, K, S)` of each group of heads."""
        layer, groups = self._layer(number), self._groups[number]
        weights = layer.at("cross")
        normed = layer_norm(rows, layer.at("cross_norm"))
        queries = split_heads(
            linear(normed, weights["query.weight"], weights["query.bias"]), self.spec.num_heads
        )
        contexts, found = list[Value](), list[Value]()
        for which, (group, (query,)) in enumerate(in_groups(groups, queries)):
            read = self._weights_of(group, folded(query), number, which, kept)
            contexts.append(unfolded(read @ kept[f"values{number}.{which}"], group.num_heads))
            found.append(unfolded(read, group.num_heads))
        context = joined_heads(contexts)
        return linear(context, weights["output.weight"], weights["output.bias"]), found

    def _weights_of(
        self, group: HeadGroup, query: Value, number: int, which: int, kept: Mapping[str, Value]
    ) -> Value:
        """Return the weights `(B * h, K, S)` of one group of heads."""
        scores = group.attention.scorer.scores(query, kept[f"keys{number}.{which}"])
        return group.attention.distribute(scores, query, kept[f"real{group.num_heads}"])
