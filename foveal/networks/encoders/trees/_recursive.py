"""Recursive encoder: a network over a binary tree, from the words to the root.

    h_w = leaf( E[token] ),   h_n = compose( h_left(n), h_right(n) ),   summary = h_root

The value of a token is the state of the topmost constituent after it: of the prefix in a chain, of the closed
constituent at a closing bracket. A word inside a constituent that is still open has its own state.

All constituents of a batch whose parts are done form one step, so the loop is over heights: about log2 of the number of
words for balanced trees.

References: Socher et al. 2011, 2013; Tai et al. 2015; Bowman et al. 2016 (trees as a list of merges); Munkhdalai and Yu
2017 (balanced trees).

Axes: *batch any leading shape, B that shape flattened, T tokens, N nodes of all texts of a batch, S numbers of a state,
D width of a value.
"""

from collections import defaultdict
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ....attention import Memory
from ..._dropout import Dropout
from .._encoder import AbstractEncoder, without_padding
from ._bracketing import Bracketing, Tree, bracketing
from ._compositions import Composition, build_composition

_NOTHING = 0  # index of the state of zeros


class _Level(NamedTuple):
    """All constituents of one height, as indices into the states of lower nodes."""

    left: list[int]
    right: list[int]


class _Forest(NamedTuple):
    """The trees of a batch. State 0 is zeros; then come the tokens, then the constituents level by level."""

    levels: list[_Level]
    tops: Int[Tensor, "B T"]  # the state of each token
    roots: Int[Tensor, " B"]


@final
class RecursiveEncoder(AbstractEncoder):
    """Applies embedding and a composition along a tree.

    With brackets, the tokens 2 and 3 open and close a constituent, and an opening bracket is no position of the memory.

    Args:
        embedding: Table of the token vectors.
        hidden_size: Width of a state.
        composition: How the states of two parts become one: `tanh`, `tensor` or `lstm`.
        tree: `brackets` in the text, a `balanced` tree, or a `chain` from the left.
        dropout: Dropout probability of the token vectors and of the values.

    Examples:
        >>> encoder = RecursiveEncoder(nn.Embedding(9, 4), 6, tree="brackets")
        >>> memory = encoder(torch.tensor([[2, 2, 7, 8, 3, 5, 3]]))        # ( ( a film ) flops )
        >>> memory.values.shape, bool((memory.values[0, -1] == memory.summary[0]).all())
        (torch.Size([1, 7, 6]), True)
        >>> memory.mask
        tensor([[False, False,  True,  True,  True,  True,  True]])
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        hidden_size: int,
        *,
        composition: Composition = "lstm",
        tree: Tree = "balanced",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.tree: Tree = tree
        self.compose = build_composition(composition, embedding.embedding_dim, hidden_size)
        self.dropout = Dropout(dropout)
        self.value_size = self.summary_size = hidden_size

    @override
    def forward(
        self, inputs: Int[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> Memory:
        batch, size = inputs.shape[:-1], inputs.shape[-1]
        tokens = without_padding(inputs, mask).reshape(-1, size)
        real = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask.reshape(-1, size)
        forest = _forest(tokens, real, self.tree)
        states = self._states(tokens.reshape(-1), forest)
        outputs = self.dropout(states[:, : self.value_size])
        tops, roots = forest.tops.reshape(*batch, size), forest.roots.reshape(batch)
        if self.tree == "brackets":
            mask = tops != _NOTHING
        return Memory(outputs[tops], mask, states[roots, : self.value_size])

    def _states(self, tokens: Int[Tensor, " BT"], forest: _Forest) -> Float[Tensor, "N S"]:
        words = self.compose.leaf(self.dropout(self.embedding(tokens)))
        states = torch.cat([torch.zeros_like(words[:1]), words])
        for level in forest.levels:
            index = torch.tensor(level, device=tokens.device)
            left, right = states[index].unbind()
            states = torch.cat([states, self.compose(left, right)])
        return states


def _forest(tokens: Int[Tensor, "B T"], real: Bool[Tensor, "B T"], tree: Tree) -> _Forest:
    """Build the trees of a batch, and number their constituents level by level."""
    size, by_height = tokens.shape[1], defaultdict[int, list[tuple[int, int]]](list)
    trees, states = list[Bracketing](), list[list[int]]()  # the state of each node of each tree
    for item, (row, is_real) in enumerate(zip(tokens.tolist(), real.tolist(), strict=True)):
        places = [place for place in range(size) if is_real[place]]
        found = bracketing([row[place] for place in places], tree)
        heights = [0] * len(places)
        for node, (left, right) in enumerate(found.merges, len(places)):
            heights.append(1 + max(heights[left], heights[right]))
            by_height[heights[-1]].append((item, node))
        trees.append(found)
        states.append([1 + item * size + place for place in places] + [0] * len(found.merges))
    number, levels = 1 + tokens.numel(), list[_Level]()
    for height in sorted(by_height):
        level = _Level([], [])
        for item, node in by_height[height]:
            merge = trees[item].merges[node - len(trees[item].tops)]
            level.left.append(states[item][merge.left])
            level.right.append(states[item][merge.right])
            states[item][node] = number
            number += 1
        levels.append(level)
    tops = torch.zeros(real.shape, dtype=torch.long)
    flat = [
        _NOTHING if top is None else of[top]
        for of, t in zip(states, trees, strict=True)
        for top in t.tops
    ]
    tops[real.cpu()] = torch.tensor(flat, dtype=torch.long)
    roots = [
        _NOTHING if t.root is None else of[t.root] for of, t in zip(states, trees, strict=True)
    ]
    return _Forest(
        levels, tops.to(tokens.device), torch.tensor(roots, dtype=torch.long, device=tokens.device)
    )
