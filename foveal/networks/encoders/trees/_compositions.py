"""Compositions: the state of a constituent from the states of its two parts.

    tanh      h = tanh( W [l; r] + b )                                             Socher et al. 2011
    tensor    h = tanh( [l; r] V [l; r] + W [l; r] + b )                           Socher et al. 2013, eq. 1 to 4
    lstm      i, f_l, f_r, o = sigmoid( U [l; r] + b ),   u = tanh( U_u [l; r] + b_u )
              c = i * u + f_l * c_l + f_r * c_r,   h = o * tanh(c)                 Tai et al. 2015, eq. 9 to 14, N = 2

V contains a matrix for each of the H features of a state. The state of a word is tanh( W x + b ); in a Tree-LSTM it is
i * u and o * tanh(c) of the word.

Axes: N nodes, D width of a word's vector, H width of a state, S all numbers of a state: H, or 2 H in a Tree-LSTM.
"""

from abc import ABC, abstractmethod
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from ....batch_invariant import Linear, sigmoid

Composition: TypeAlias = Literal["tanh", "tensor", "lstm"]


class AbstractComposition(nn.Module, ABC):
    """Computes states of words and of constituents; the first H numbers of a state are its output."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size

    @abstractmethod
    def leaf(self, words: Float[Tensor, "N D"]) -> Float[Tensor, "N S"]:
        """Compute the states of words."""

    @abstractmethod
    def forward(
        self, left: Float[Tensor, "N S"], right: Float[Tensor, "N S"]
    ) -> Float[Tensor, "N S"]:
        """Compute the states of constituents from their parts."""


@final
class TanhComposition(AbstractComposition):
    """One layer over both parts; with `tensor`, also a product of the parts for each feature."""

    def __init__(self, input_size: int, hidden_size: int, *, tensor: bool = False) -> None:
        super().__init__(input_size, hidden_size)
        self.word = Linear(input_size, hidden_size)
        self.parts = Linear(2 * hidden_size, hidden_size)
        # All matrices V in one; small at first, so the composition starts near the plain one.
        self.tensor = Linear(2 * hidden_size, 2 * hidden_size**2, bias=False) if tensor else None
        if self.tensor is not None:
            nn.init.normal_(self.tensor.weight, std=0.5 / (2 * hidden_size))

    @override
    def leaf(self, words: Tensor) -> Tensor:
        return torch.tanh(self.word(words))

    @override
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        both = torch.cat([left, right], -1)
        scores = self.parts(both)
        if self.tensor is not None:
            by_feature = self.tensor(both).unflatten(-1, (self.hidden_size, -1))
            scores = scores + (by_feature * both.unsqueeze(-2)).sum(-1)
        return torch.tanh(scores)


@final
class LSTMComposition(AbstractComposition):
    """The binary Tree-LSTM: a state is the output and the memory of a node. The forget gates start open."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.word = Linear(input_size, 3 * hidden_size)
        self.parts = Linear(2 * hidden_size, 5 * hidden_size)
        with torch.no_grad():
            self.parts.bias[3 * hidden_size :] += 1.0

    @override
    def leaf(self, words: Tensor) -> Tensor:
        i, o, u = self.word(words).chunk(3, -1)
        memory = sigmoid(i) * torch.tanh(u)
        return torch.cat([sigmoid(o) * torch.tanh(memory), memory], -1)

    @override
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        (left_hidden, left_memory), (right_hidden, right_memory) = (
            state.chunk(2, -1) for state in (left, right)
        )
        i, o, u, f, g = self.parts(torch.cat([left_hidden, right_hidden], -1)).chunk(5, -1)
        memory = sigmoid(i) * torch.tanh(u) + sigmoid(f) * left_memory + sigmoid(g) * right_memory
        return torch.cat([sigmoid(o) * torch.tanh(memory), memory], -1)


def build_composition(kind: Composition, input_size: int, hidden_size: int) -> AbstractComposition:
    """Build a composition by its name."""
    if kind == "lstm":
        return LSTMComposition(input_size, hidden_size)
    return TanhComposition(input_size, hidden_size, tensor=kind == "tensor")
