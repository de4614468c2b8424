"""The law suites for attention and networks detect errors: each module in this file breaks one law."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from typing_extensions import override

from foveal.attention import AbstractScorer, BilinearScorer, Memory, softmax_attention
from foveal.distributions import Categorical
from foveal.networks import (
    AbstractCell,
    AbstractDecoder,
    CellState,
    DecoderState,
    ElmanCell,
    NoBridge,
    recurrent_stack,
)
from foveal.networks._bridges import no_memory
from foveal.networks.decoders._steps import Step
from foveal.networks.recurrent._layers import RecurrentOutput
from foveal.testing import check_attention, check_cell, check_decoder, check_encoder, check_scorer


class Simple(AbstractCell):
    """A correct cell, which subclasses break."""

    has_memory = False

    def __init__(self) -> None:
        super().__init__(3, 4)
        self.inner = ElmanCell(3, 4)

    @override
    def forward(self, inputs: Tensor, state: CellState) -> CellState:
        return self.inner(inputs, state)


class RunsAnotherWay(Simple):
    @override
    def run(
        self, inputs: Tensor, state: CellState, lengths: Tensor | None = None
    ) -> RecurrentOutput:
        ran = super().run(inputs, state, lengths)
        return ran._replace(outputs=ran.outputs * 1.001)


class Parks(Simple):
    @override
    def forward(self, inputs: Tensor, state: CellState) -> CellState:
        self.last = state
        return super().forward(inputs, state)


class ReadsPadding(Simple):
    @override
    def run(
        self, inputs: Tensor, state: CellState, lengths: Tensor | None = None
    ) -> RecurrentOutput:
        ran = super().run(inputs, state, lengths)
        return ran._replace(outputs=ran.outputs + 0 * inputs.mean())


class HasUnused(Simple):
    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Linear(3, 4)


def test_a_cell_that_is_right_passes() -> None:
    check_cell(Simple())


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (RunsAnotherWay, "a run and its steps"),
        (Parks, "left something on the module"),
        (ReadsPadding, "junk after the end is read"),
        (HasUnused, "no gradient reaches"),
    ],
)
def test_a_broken_cell_is_caught(cell: Callable[[], AbstractCell], message: str) -> None:
    torch.manual_seed(0)
    with pytest.raises(AssertionError, match=message):
        check_cell(cell())


class Ignores(nn.Module):
    """An encoder that ignores the mask."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 4)

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Memory:
        return Memory(self.project(inputs), mask)


class Centers(Ignores):
    """An encoder whose items depend on each other."""

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Memory:
        return Memory(self.project(inputs - inputs.mean(0)), mask)


@pytest.mark.parametrize(
    ("encoder", "message"), [(Ignores, "not 0 on padding"), (Centers, "alone and in a batch")]
)
def test_a_broken_encoder_is_caught(encoder: Callable[[], nn.Module], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_encoder(encoder(), torch.randn(4, 5, 3), (4, 5))


class Remembers(AbstractDecoder):
    """A decoder that stores its state on the module, like the code of the lectures and many
    libraries.
    """

    def __init__(self) -> None:
        super().__init__(
            embedding=nn.Embedding(9, 4),
            stack=recurrent_stack(4, 5),
            bridge=NoBridge(),
            vector_size=5,
        )

    @override
    def read(self, hidden: Tensor, memory: Memory) -> tuple[Tensor, None]:
        return hidden, None

    @override
    def start(self, memory: Memory) -> DecoderState:
        self.parked = super().start(memory)
        return self.parked

    @override
    def step(self, state: DecoderState, token: Tensor, memory: Memory) -> Step:
        step = super().step(self.parked, token, memory)
        self.parked = step.state
        return step._replace(state=state)


def test_a_decoder_with_state_on_the_module_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_decoder(Remembers(), no_memory(4), 9)


class Averages(AbstractScorer):
    """A scorer whose scores depend on the other items of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = BilinearScorer(3, 4)

    @override
    def remember(self, values: Tensor) -> Tensor:
        return self.inner.remember(values)

    @override
    def forward(self, query: Tensor, keys: Tensor) -> tuple[Tensor, ...]:
        (scores,) = self.inner(query, keys)
        return (scores - scores.mean(0),)


def test_a_broken_scorer_is_caught() -> None:
    with pytest.raises(AssertionError, match="alone and in a batch"):
        check_scorer(Averages(), 3, 4)


def test_an_attention_that_reads_padding_is_caught() -> None:
    attention = softmax_attention(3, 4)
    attention.distribute = lambda potentials, mask: Categorical(*potentials)
    with pytest.raises(AssertionError, match="padding has been given a weight"):
        check_attention(attention, 3, 4)
