"""Small models whose outputs can all be enumerated, as references for searches.

    key_0 = 0,   key_t = (31 key_{t-1} + y_{t-1} + offset[item] + 1) mod M
    log p(. | y_<t) = table[ key_t ],   weights_t = reads[ key_t ]

The key depends on the whole history and on the item: a wrongly gathered state or memory gives other
numbers. The key is an integer that selects a row of a table, therefore results are bit-identical in
every batch.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.networks import SearchStep

BEGIN, END = 0, 1


class ToyState(NamedTuple):
    offsets: Int[Tensor, " B"]  # the memory
    keys: Int[Tensor, "B K"]


class ToyStepper:
    """A random model over `num_tokens` tokens; token 1 ends an output."""

    def __init__(
        self,
        num_tokens: int = 4,
        *,
        seed: int = 0,
        sharpness: float = 1.0,
        num_places: int = 3,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.num_tokens = num_tokens
        noise = torch.randn(101, num_tokens, generator=generator, dtype=torch.float64)
        self.table = (sharpness * noise).log_softmax(-1).to(dtype)
        self.reads = torch.rand(101, num_places, generator=generator).softmax(-1)
        self.calls: list[tuple[int, int]] = []  # (items, hypotheses) of every step

    def start(self, *offsets: int) -> ToyState:
        return ToyState(torch.tensor(offsets), torch.zeros(len(offsets), 1, dtype=torch.long))

    def batch_size(self, state: ToyState) -> int:
        return len(state.offsets)

    def step(self, state: ToyState, tokens: Int[Tensor, "B K"]) -> SearchStep:
        assert state.keys.shape == tokens.shape
        self.calls.append((tokens.shape[0], tokens.shape[1]))
        keys = (31 * state.keys + tokens + state.offsets[:, None] + 1) % len(self.table)
        return SearchStep(ToyState(state.offsets, keys), self.table[keys], self.reads[keys])

    def reorder(self, state: ToyState, parents: Int[Tensor, "B k"]) -> ToyState:
        return state._replace(keys=state.keys.gather(1, parents))

    def keep(self, state: ToyState, items: Int[Tensor, " b"]) -> ToyState:
        return ToyState(state.offsets[items], state.keys[items])


class Output(NamedTuple):
    """One output, with its log-probabilities and attention weights."""

    tokens: tuple[int, ...]  # ends with the end token, unless it was truncated
    log_probs: tuple[float, ...]
    weights: tuple[Float[Tensor, " S"], ...]

    @property
    def log_prob(self) -> float:
        return sum(self.log_probs)


def every_output(
    stepper: ToyStepper, offset: int, max_length: int, *, complete: bool = True
) -> list[Output]:
    """Return all outputs of an item that end within a length, most probable first. Together with
    the truncated ones, their probabilities sum to 1.
    """
    outputs = _continued(stepper, offset, max_length, 0, BEGIN, Output((), (), ()))
    return sorted(
        (output for output in outputs if not complete or output.tokens[-1] == END),
        key=lambda output: -output.log_prob,
    )


def _continued(
    stepper: ToyStepper, offset: int, max_length: int, key: int, token: int, output: Output
) -> Iterator[Output]:
    key = (31 * key + token + offset + 1) % len(stepper.table)
    for following, log_prob in enumerate(stepper.table[key].tolist()):
        longer = Output(
            (*output.tokens, following),
            (*output.log_probs, log_prob),
            (*output.weights, stepper.reads[key]),
        )
        if following == END or len(longer.tokens) == max_length:
            yield longer
        else:
            yield from _continued(stepper, offset, max_length, key, following, longer)
