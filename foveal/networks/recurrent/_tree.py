"""The child-sum Tree-LSTM: a recursive network over given parses.

    h~_j = sum of h_k over the children k of j
    i, o = sigmoid( W x_j + U h~_j + b ),   u = tanh( W_u x_j + U_u h~_j + b_u )
    f_jk = sigmoid( W_f x_j + U_f h_k + b_f )                   one forget gate for each child
    c_j = i * u + sum of f_jk * c_k,    h_j = o * tanh(c_j)

All nodes of a batch whose children are done form one step, so the loop is over heights.

Reference: Tai et al. 2015, eq. 2 to 8.

Axes: *batch any leading shape, n nodes, N all nodes of a batch, D width of an input, H of a state.
"""

from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ...attention import Memory
from ...errors import ValueRangeError


class _Nodes(NamedTuple):
    """All nodes of a batch in one row; the `parent` of a root is an extra entry for each item."""

    scores: Float[Tensor, "N gates"]  # W x + b: input, output, update and forget gates
    parent: Int[Tensor, " N"]
    real: Bool[Tensor, " N"]
    num_places: int


@final
class TreeEncoder(nn.Module):
    """Encodes each tree from its leaves to its root.

    A tree is given by the head of each node: 1 .. n, 0 for the root, as in dependency distributions;
    padding may hold anything. For a constituency tree, use inputs of 0 for the nodes above words.

    The summary is the state of the root, or the sum over several roots.

    Args:
        input_size: Width of the input of a node.
        hidden_size: Width of the state of a node.

    Examples:
        >>> encoder = TreeEncoder(3, 4)
        >>> heads = torch.tensor([[2, 0, 2]])    # the second word heads the others
        >>> memory = encoder(torch.randn(1, 3, 3), heads)
        >>> bool((memory.values[0, 1] == memory.summary[0]).all())
        True
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.value_size = self.summary_size = hidden_size
        self.from_input = nn.Linear(input_size, 4 * hidden_size)
        self.from_children = nn.Linear(hidden_size, 3 * hidden_size, bias=False)
        self.from_child = nn.Linear(hidden_size, hidden_size, bias=False)
        with torch.no_grad():
            self.from_input.bias[3 * hidden_size :] = 1.0  # forget gates start open

    def forward(
        self,
        inputs: Float[Tensor, "*batch n D"],
        heads: Int[Tensor, "*batch n"],
        mask: Bool[Tensor, "*batch n"] | None = None,
    ) -> Memory:
        """Compute the state of every node.

        Args:
            inputs: A vector for each node.
            heads: Head of each node, from 1 to n; 0 for a root.
            mask: True on real nodes; None if all nodes are real.

        Returns:
            A memory with the state of every node as value, and the states of the roots as summary.

        Raises:
            ValueRangeError: If a head is out of range or is padding, or if the heads contain a cycle.
        """
        batch, size = heads.shape[:-1], heads.shape[-1]
        real = torch.ones_like(heads, dtype=torch.bool) if mask is None else mask
        flat_heads = heads.masked_fill(~real, 0).reshape(-1, size)
        if bool(((flat_heads < 0) | (flat_heads > size)).any()):
            raise ValueRangeError(
                f"TreeEncoder: heads must be 0 (the root) to {size}, got "
                f"{flat_heads.min()} to {flat_heads.max()}. Mask the nodes that are padding."
            )
        _check_heads_are_real(flat_heads, real.reshape(-1, size))
        nodes = _flatten(
            self.from_input(inputs.masked_fill(~real.unsqueeze(-1), 0.0)), flat_heads, real
        )
        hidden, summed = self._climb(nodes)
        values = hidden.view(*batch, size, -1)
        return Memory(values, mask, summed[len(hidden) :].view(*batch, -1))

    def _climb(self, nodes: _Nodes) -> tuple[Float[Tensor, "N H"], Float[Tensor, "places H"]]:
        """Compute the state of each node, and the sum of the children's states for each entry."""
        zeros = nodes.scores.new_zeros(nodes.num_places, self.value_size)
        hidden_sum, memory_sum = zeros, zeros
        waiting_for = torch.bincount(nodes.parent[nodes.real], minlength=nodes.num_places)
        todo, found = nodes.real, [(nodes.parent[:0], zeros[:0])]
        while bool(todo.any()):
            ready = (todo & (waiting_for[: len(todo)] == 0)).nonzero().squeeze(-1)
            if len(ready) == 0:
                raise ValueRangeError(
                    f"TreeEncoder: heads must form trees, got a cycle among {int(todo.sum())} "
                    f"nodes. Check heads with a tree distribution's log_prob, which names the item."
                )
            parent = nodes.parent[ready]
            hidden, memory = self._update(nodes, ready, hidden_sum[ready], memory_sum[ready])
            forget = torch.sigmoid(self._forget_scores(nodes, parent) + self.from_child(hidden))
            hidden_sum = hidden_sum.index_add(0, parent, hidden)
            memory_sum = memory_sum.index_add(0, parent, forget * memory)
            waiting_for = waiting_for - torch.bincount(parent, minlength=nodes.num_places)
            todo = todo.index_fill(0, ready, False)
            found.append((ready, hidden))
        places, states = (torch.cat(parts) for parts in zip(*found, strict=True))
        return zeros[: len(nodes.parent)].index_copy(0, places, states), hidden_sum

    def _update(
        self, nodes: _Nodes, index: Tensor, hidden_sum: Tensor, memory_sum: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute the states of nodes whose children are done."""
        scores = nodes.scores[index, : 3 * self.value_size] + self.from_children(hidden_sum)
        i, o, u = scores.chunk(3, -1)
        memory = torch.sigmoid(i) * torch.tanh(u) + memory_sum
        return torch.sigmoid(o) * torch.tanh(memory), memory

    def _forget_scores(self, nodes: _Nodes, parent: Tensor) -> Tensor:
        """Return W_f x + b_f of the parents; the scores above a root are not used."""
        scores = nodes.scores[:, 3 * self.value_size :]
        return scores[parent.clamp(max=len(scores) - 1)]


def _check_heads_are_real(heads: Int[Tensor, "B n"], real: Bool[Tensor, "B n"]) -> None:
    """Raise if the head of a node is padding: its subtree would be detached from the tree."""
    lost = (heads > 0) & ~real.gather(1, (heads - 1).clamp(min=0))
    if bool(lost.any()):
        item, node = lost.nonzero()[0].tolist()
        raise ValueRangeError(
            f"TreeEncoder: the head of a real node must be a real node or 0 (the root), got head "
            f"{heads[item, node]} of node {node + 1} in item {item}, and the mask is False there. "
            f"Pass heads and mask of the same tree."
        )


def _flatten(scores: Tensor, heads: Int[Tensor, "B n"], real: Tensor) -> _Nodes:
    """Flatten all nodes of the batch, item by item, followed by an entry above each root."""
    num_items, size = heads.shape
    item = torch.arange(num_items, device=heads.device).unsqueeze(-1)
    parent = torch.where(heads > 0, item * size + heads - 1, num_items * size + item)
    return _Nodes(
        scores.reshape(num_items * size, -1),
        parent.reshape(-1),
        real.reshape(-1),
        num_items * size + num_items,
    )
