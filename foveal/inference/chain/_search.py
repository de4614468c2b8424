"""The best labelings of a linear chain, and exact samples.

Both trace paths back from the last position, through tables of pointers y_t -> y_{t-1}. For the best
labelings, the inside pass writes the tables; for samples, they are drawn from the conditionals.

Axes: T positions, N = T - 1 steps, B batch, K states, S samples, k ranks.
References: Viterbi 1967; Rabiner 1989.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._recursions import largest
from ._passes import Chain, edges


class Ranked(NamedTuple):
    """The k best labelings, best first; ranks that do not exist score -inf."""

    labels: Int[Tensor, "T B k"]
    scores: Float[Tensor, "B k"]


def best(chain: Chain, k: int) -> Ranked:
    """Find the k labelings of highest score (Viterbi for k = 1): each state holds k prefixes."""
    ranks = torch.arange(k, device=chain.unary.device)
    scores = torch.where(ranks == 0, chain.unary[0].unsqueeze(-1), -torch.inf)  # (B, K, k)
    pointers = []
    for run in edges(chain):
        for edge in run.transpose(-1, -2).unbind(0):
            joined = scores.unsqueeze(1) + edge.unsqueeze(-1)  # (B, next, previous, rank)
            scores, pointer = largest(joined.flatten(2), k)
            pointers.append(pointer.flatten(1))
    scores, last = largest(scores.flatten(1), k)
    return Ranked(_follow(pointers, last) // k, scores)


def _follow(pointers: Sequence[Tensor], last: Int[Tensor, "B paths"]) -> Tensor:
    """Trace paths back from their last entries, y[t-1] = pointers[t][y[t]]: (T, B, paths)."""
    path = [last]
    for pointer in reversed(pointers):
        path.append(pointer.gather(-1, path[-1]))
    return torch.stack(path[::-1])


def draw(
    conditionals: Float[Tensor, "N B K K"],
    last: Float[Tensor, "B K"],
    num_samples: int,
    generator: torch.Generator | None,
) -> Int[Tensor, "N+1 S B"]:
    """Draw exact samples: the last state, then each state given the next state.

    argmax( w / e ) with e exponential is a draw from weights w (a race of exponentials). All columns
    of a table share the noise of their position, because a path reads only one column.
    """
    num_steps, batch, num_states, _ = conditionals.shape
    noise = conditionals.new_empty(num_steps + 1, num_samples, batch, num_states)
    noise.exponential_(generator=generator)
    table = (conditionals.unsqueeze(1) / noise[:-1].unsqueeze(-1)).argmax(-2)  # (N, S, B, K)
    state = (last / noise[-1]).argmax(-1, keepdim=True)  # (S, B, 1)
    path = _follow(table.flatten(1, 2).unbind(0), state.flatten(0, 1))
    return path.view(num_steps + 1, num_samples, batch)
