"""Pooling: one vector for the whole memory, without a query. These are the baselines of the lectures.

    mean   context = sum over real positions of value / number of real positions
    max    context = largest value of each coordinate over real positions

Attention pooling is attention with a learned query: `AttentionPooling`.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ._attention import Attended, Attention
from ._memory import Memory, check_boolean


def mean_pooling(memory: Memory) -> Float[Tensor, "*batch V"]:
    """Average the values over real positions; without a real position, return 0.

    Args:
        memory: Values, and their mask if some positions are padding.

    Returns:
        One vector for each batch item.

    Raises:
        ShapeError: The mask is not boolean.

    Examples:
        >>> mean_pooling(Memory(torch.tensor([[1.0], [3.0]])))
        tensor([2.])
    """
    if memory.mask is None:
        return memory.values.mean(-2)
    check_boolean(memory.mask, "mean_pooling")
    real = memory.mask.unsqueeze(-1)
    total = torch.where(real, memory.values, 0.0).sum(-2)
    return total / real.sum(-2).clamp(min=1)


def max_pooling(memory: Memory) -> Float[Tensor, "*batch V"]:
    """Take the maximum of each coordinate over real positions; without a real position, return 0.

    Args:
        memory: Values, and their mask if some positions are padding.

    Returns:
        One vector for each batch item.

    Raises:
        ShapeError: The mask is not boolean.

    Examples:
        >>> max_pooling(Memory(torch.tensor([[1.0, 5.0], [3.0, 2.0]])))
        tensor([3., 5.])
    """
    if memory.mask is None:
        return memory.values.amax(-2)
    check_boolean(memory.mask, "max_pooling")
    real = memory.mask.unsqueeze(-1)
    highest = torch.where(real, memory.values, -torch.inf).amax(-2)
    return torch.where(real.any(-2), highest, 0.0)


@final
class AttentionPooling(nn.Module):
    """Attention with one learned query (Yang et al. 2016, eq. 5 to 7: the context vector u).

    Args:
        attention: Attention to apply, for queries of width `query_size`.
        query_size: Width of the learned query.
    """

    def __init__(self, attention: Attention, query_size: int) -> None:
        super().__init__()
        self.attention = attention
        self.query = nn.Parameter(torch.empty(query_size).uniform_(-0.1, 0.1))

    def forward(self, memory: Memory) -> Attended:
        """Compute one context for each memory.

        Args:
            memory: Values, and their mask if some positions are padding.

        Returns:
            The context `(*batch, 1, V)`, the weights `(*batch, 1, S)` and the distribution.
        """
        query = self.query.expand(*memory.values.shape[:-2], 1, -1)
        return self.attention(query, memory)
