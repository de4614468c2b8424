"""Finite automata over tokens, which define the allowed outputs.

    an output y_1 ... y_n (then the end symbol) is allowed if  accepting[ q_n ],
    q_0 = start,   q_t = target of the edge (q_{t-1}, y_t)

A search never enters a dead end: each edge stores the number of tokens to the nearest accepting state, and
the search skips an edge if this number exceeds the remaining length.

Axes: Q states, E edges, W tokens of the vocabulary, B items, K hypotheses.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ..errors import ShapeError, ValueRangeError

# The distance of a state that cannot reach acceptance, and of an absent edge.
FAR = 2**30
# Up to this many entries (states x tokens, 4 bytes each), the automaton keeps the table of all rows, and a
# step reads whole rows. Larger automata, such as lexicons, fill their rows from the edges.
MAX_TABLE_ENTRIES = 2**22


class _Moves(NamedTuple):
    """Edges and allowed end symbols, sorted by (source, token).

    A last entry that belongs to no state makes every lookup valid.
    """

    keys: Int[Tensor, " M"]  # source * W + token, ascending
    targets: Int[Tensor, " M"]
    needs: Int[Tensor, " M"]  # number of tokens to acceptance, including this one; the end symbol 0
    first: Int[Tensor, " Q+1"]  # the first move of each state
    widest: int  # the largest number of moves of a state


@final
@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton; tokens without an edge are forbidden.

    `from_table`, `allowed_tokens`, `lexicon` and `regular_expression` build automata. `a & b` allows the
    outputs that both allow.

    Examples:
        >>> table = torch.tensor([[1, -1, -1], [-1, 0, -1]])  # token 0, then token 1, and again
        >>> pairs = Automaton.from_table(table, torch.tensor([True, False]), end=2)
        >>> pairs.accepts([0, 1, 0, 1]), pairs.accepts([0, 1, 0])
        (True, False)
    """

    edges: Int[Tensor, "E 3"]  # source, token, target; ascending by source, then token
    accepting: Bool[Tensor, " Q"]
    starts: Int[Tensor, " B"]  # one state for all items, or one for each item
    num_tokens: int
    end: int

    def __post_init__(self) -> None:
        sources, tokens, targets = self.edges.unbind(1)
        states = torch.cat([sources, targets, self.starts])
        if bool(((states < 0) | (states >= len(self.accepting))).any()):
            raise ValueRangeError(
                f"Automaton: states must be in 0..{len(self.accepting) - 1}, one for each entry of "
                f"accepting, got {int(states.min())}..{int(states.max())}."
            )
        if bool(((tokens < 0) | (tokens >= self.num_tokens) | (tokens == self.end)).any()):
            raise ValueRangeError(
                f"Automaton: tokens of edges must be in 0..{self.num_tokens - 1} and not be the end "
                f"token {self.end}, got {int(tokens.min())}..{int(tokens.max())}. Use accepting to "
                f"mark the states where an output may end."
            )
        if bool((self._edge_keys.diff() <= 0).any()):
            raise ValueRangeError(
                "Automaton: edges must ascend by source and token, with one edge for each pair, got "
                "others. Sort them; an automaton with two edges for one token must be made "
                "deterministic first."
            )

    @classmethod
    def from_table(
        cls,
        table: Int[Tensor, "Q W"],
        accepting: Bool[Tensor, " Q"],
        *,
        end: int,
        start: int = 0,
    ) -> "Automaton":
        """Build an automaton from a table of states and tokens.

        Args:
            table: State after token w in state q, as `[q, w]`; -1 if the token is forbidden.
            accepting: True on the states in which an output may end.
            end: End symbol, which has no edge; its column must be -1.
            start: State before the first token.

        Returns:
            An automaton for all items.
        """
        sources, tokens = (table >= 0).nonzero().unbind(1)
        edges = torch.stack([sources, tokens, table[sources, tokens].long()], 1)
        starts = torch.tensor([start], device=table.device)
        return cls(edges, accepting, starts, table.shape[1], end)

    @classmethod
    def for_items(cls, automata: Iterable["Automaton"]) -> "Automaton":
        """Combine one automaton for each item of a batch.

        Args:
            automata: Automata of one vocabulary, in the order of the items.

        Returns:
            One automaton with a start state for each item.

        Raises:
            ShapeError: If the automata have different vocabularies or end symbols, or several start states.
        """
        parts = tuple(automata)
        same = {(part.num_tokens, part.end, len(part.starts)) for part in parts}
        if len(same) != 1 or parts[0].starts.shape != (1,):
            raise ShapeError(
                f"Automaton.for_items: expected automata with one start, one vocabulary and one end "
                f"token, got (num_tokens, end, starts) = {sorted(same)}."
            )
        sizes = torch.tensor([len(part.accepting) for part in parts])
        shifts = (sizes.cumsum(0) - sizes).tolist()
        moved = torch.tensor([1, 0, 1])
        edges = [part.edges + shift * moved for part, shift in zip(parts, shifts, strict=True)]
        starts = [part.starts + shift for part, shift in zip(parts, shifts, strict=True)]
        accepting = torch.cat([part.accepting for part in parts])
        return cls(
            torch.cat(edges), accepting, torch.cat(starts), parts[0].num_tokens, parts[0].end
        )

    def to(self, device: torch.device | str) -> "Automaton":
        """Move to another device; do it once, because it rebuilds the tables of steps.

        Args:
            device: Device of the search.

        Returns:
            The automaton on this device.
        """
        edges, accepting = self.edges.to(device), self.accepting.to(device)
        return replace(self, edges=edges, accepting=accepting, starts=self.starts.to(device))

    def accepts(self, output: Sequence[int]) -> bool:
        """Return whether an output is allowed; the automaton must have one start state for all items.

        Args:
            output: Token ids without the end symbol.

        Returns:
            True if the output ends in an accepting state.
        """
        state = self.starts[:1]
        for token in output:
            if not 0 <= token < self.num_tokens:
                return False
            key = state * self.num_tokens + token
            place = int(torch.searchsorted(self._edge_keys, key))
            if place == len(self.edges) or bool(self._edge_keys[place] != key):
                return False
            state = self.edges[place, 2:]
        return bool(self.accepting[state])

    @cached_property
    def distances(self) -> Int[Tensor, " Q"]:
        """Count the tokens from each state to the nearest accepting state; `FAR` if there is none."""
        sources, _, targets = self.edges.unbind(1)
        distances = torch.where(self.accepting, 0, FAR)
        while True:
            onwards = (distances[targets] + 1).clamp(max=FAR)
            shorter = distances.scatter_reduce(0, sources, onwards, "amin")
            if torch.equal(shorter, distances):
                return distances
            distances = shorter

    def needs(self, states: Int[Tensor, "B K"]) -> Int[Tensor, "B K W"]:
        """Count the tokens to acceptance after each token, including it.

        Args:
            states: State of each hypothesis.

        Returns:
            A number for each token; `FAR` for forbidden tokens, 0 for the end symbol in an accepting state.
        """
        if self._table is not None:
            return self._table.index_select(0, states.flatten()).unflatten(0, states.shape)
        first, last = self._moves.first[states], self._moves.first[states + 1]
        places = first.unsqueeze(-1) + torch.arange(self._moves.widest, device=states.device)
        absent = places >= last.unsqueeze(-1)
        places = places.masked_fill(absent, 0)
        tokens = (self._moves.keys[places] % self.num_tokens).masked_fill(absent, self.num_tokens)
        rows = self._moves.needs.new_full((*states.shape, self.num_tokens + 1), FAR)
        return rows.scatter_(2, tokens, self._moves.needs[places])[..., :-1]

    def follow(self, states: Int[Tensor, "B K"], tokens: Int[Tensor, "B K"]) -> Int[Tensor, "B K"]:
        """Return the states after these tokens.

        Args:
            states: State of each hypothesis.
            tokens: Next token id of each hypothesis.

        Returns:
            The new states; without a matching edge, the state is arbitrary.
        """
        places = torch.searchsorted(self._moves.keys, states * self.num_tokens + tokens)
        return self._moves.targets[places]

    def at_least(self, num_tokens: int) -> "Automaton":
        """Remove the outputs with fewer tokens; this needs a copy of the states for each token.

        Args:
            num_tokens: Minimum number of tokens, without the end symbol.

        Returns:
            An automaton with `num_tokens` + 1 copies of the states; this automaton if `num_tokens` is 0.
        """
        if num_tokens <= 0:
            return self
        Q, copies = len(self.accepting), torch.arange(num_tokens + 1, device=self.edges.device)
        onwards = torch.stack([copies, 0 * copies, (copies + 1).clamp(max=num_tokens)], 1)
        edges = (self.edges + Q * onwards.unsqueeze(1)).flatten(0, 1)
        accepting = torch.zeros_like(self.accepting).repeat(num_tokens)
        return replace(self, edges=edges, accepting=torch.cat([accepting, self.accepting]))

    def __and__(self, other: "Automaton") -> "Automaton":
        """Intersect two automata: the states are the pairs that can be reached together."""
        if (self.num_tokens, self.end) != (other.num_tokens, other.end):
            raise ShapeError(
                f"Automaton &: expected one vocabulary and one end token, got num_tokens "
                f"{self.num_tokens} and {other.num_tokens}, end {self.end} and {other.end}."
            )
        Q = len(other.accepting)
        starts = self.starts * Q + other.starts
        seen = new = starts.unique()
        edges: list[Tensor] = []
        while len(new):
            found = self._joint_edges(other, new)
            edges.append(found)
            reached = found[:, 2].unique()
            new = reached[~torch.isin(reached, seen)]
            seen = torch.cat([seen, new])
        states = seen.sort().values
        whole = torch.cat(edges)
        keys = whole[:, 0] * self.num_tokens + whole[:, 1]
        whole = whole[keys.argsort()]
        sources, targets = (torch.searchsorted(states, whole[:, i].contiguous()) for i in (0, 2))
        return Automaton(
            torch.stack([sources, whole[:, 1], targets], 1),
            self.accepting[states // Q] & other.accepting[states % Q],
            torch.searchsorted(states, starts),
            self.num_tokens,
            self.end,
        )

    def _joint_edges(self, other: "Automaton", pairs: Tensor) -> Tensor:
        """Compute the edges from these pairs of states (numbered own * Q + other) to pairs."""
        Q, W = len(other.accepting), self.num_tokens
        own, others = pairs // Q, pairs % Q
        own_keys = self._edge_keys
        first, last = (torch.searchsorted(own_keys, (own + i) * W) for i in (0, 1))
        counts = last - first
        pair = torch.arange(len(pairs), device=pairs.device).repeat_interleave(counts)
        before = (counts.cumsum(0) - counts)[pair]
        edge = first[pair] + torch.arange(len(pair), device=pairs.device) - before
        tokens = self.edges[edge, 1]
        wanted = others[pair] * W + tokens
        place = torch.searchsorted(other._edge_keys, wanted)
        both = torch.zeros_like(wanted, dtype=torch.bool)
        inside = place < len(other.edges)
        both[inside] = other._edge_keys[place[inside]] == wanted[inside]
        targets = self.edges[edge[both], 2] * Q + other.edges[place[both], 2]
        return torch.stack([pairs[pair[both]], tokens[both], targets], 1)

    @cached_property
    def _edge_keys(self) -> Int[Tensor, " E"]:
        return self.edges[:, 0] * self.num_tokens + self.edges[:, 1]

    @cached_property
    def _moves(self) -> _Moves:
        Q, W = len(self.accepting), self.num_tokens
        closing, beyond = self.accepting.nonzero().flatten(), self.starts[:1]
        keys = torch.cat([self._edge_keys, closing * W + self.end, torch.full_like(beyond, Q * W)])
        keys, order = keys.sort()
        targets = torch.cat([self.edges[:, 2], closing, beyond])[order]
        onwards = self.distances[self.edges[:, 2]] + 1
        ending = torch.zeros_like(closing)
        needs = torch.cat([onwards, ending, torch.full_like(beyond, FAR)])[order]
        states = torch.arange(Q + 1, device=keys.device)
        first = torch.searchsorted(keys, states * W)
        widest = int(first.diff().max()) if Q else 0
        return _Moves(keys, targets, needs.clamp(max=FAR).int(), first, widest)

    @cached_property
    def _table(self) -> Int[Tensor, "Q W"] | None:
        """Return the needs of all tokens in all states, unless the table is too large to keep."""
        Q, W = len(self.accepting), self.num_tokens
        if Q * W > MAX_TABLE_ENTRIES:
            return None
        table = self._moves.needs.new_full((Q * W,), FAR)
        return table.index_copy(0, self._moves.keys[:-1], self._moves.needs[:-1]).view(Q, W)
