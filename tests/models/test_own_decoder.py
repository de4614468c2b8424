"""A user-defined decoder, whose state between tokens is a user-defined NamedTuple."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, final

import torch
from torch import Tensor, nn

from foveal.attention import Memory
from foveal.bundles import load_bundle, save_bundle
from foveal.data import Example
from foveal.models import AbstractDecoderSpec, AttentionSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.networks import AbstractDecoder, DecoderState, NoBridge, recurrent_stack
from foveal.specs import setting
from foveal.tasks import PredictionSpec, TransductionSpec

SIZE = 6


class Last(NamedTuple):
    """The input of the next step."""

    vector: Tensor  # (*batch, A)
    unused: Tensor | None = None


class LastDecoder(AbstractDecoder):
    """A decoder that feeds its last vector back."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__(
            embedding=nn.Embedding(vocabulary, SIZE),
            stack=recurrent_stack(2 * SIZE, SIZE),
            bridge=NoBridge(),
            vector_size=SIZE,
            fed_size=SIZE,
        )

    def start(self, memory: Memory) -> DecoderState:
        layers = super().start(memory).layers
        return DecoderState(layers, Last(torch.zeros_like(layers[0].hidden)))

    def fed(self, state: DecoderState) -> tuple[Tensor, ...]:
        last: Last = state.own
        return (last.vector,)

    def own(self, vector: Tensor) -> Last:
        return Last(vector)

    def read(self, hidden: Tensor, memory: Memory) -> tuple[Tensor, None]:
        return hidden.tanh(), None


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LastDecoderSpec(AbstractDecoderSpec):
    """The spec of a decoder that reads no memory."""

    kind: Literal["last"] = "last"
    attention: AttentionSpec | None = setting(None, "it has none")

    def build(self, vocabulary: int, value_size: int, summary_size: int) -> LastDecoder:
        return LastDecoder(vocabulary)


def test_its_state_goes_through_a_beam_search(tmp_path: Path) -> None:
    torch.manual_seed(0)
    encoder = TextEncoderSpec(hidden_size=4, embedding_size=4)
    examples = [Example("ab", "BA"), Example("abc", "CBA")]
    spec = TransductionSpec(model=Seq2SeqSpec(encoder=encoder, decoder=LastDecoderSpec()))
    task = spec.build_from(examples)
    task.model.eval()
    settings = PredictionSpec(beam_size=3, nbest=3, max_length=5)
    found = task.predict(examples, settings)
    assert found[0] == task.predict(examples[:1], settings)[0]
    assert len({answer.output for answer in found[0].nbest}) == 3
    save_bundle(task, tmp_path)
    assert load_bundle(tmp_path, also=(LastDecoderSpec,)).predict(examples, settings) == found


def test_a_search_takes_the_steps_of_the_decoder() -> None:
    torch.manual_seed(0)
    encoder = TextEncoderSpec(hidden_size=4, embedding_size=4)
    model = Seq2SeqSpec(encoder=encoder, decoder=LastDecoderSpec()).build(
        source_vocabulary=9, target_vocabulary=7
    )
    model.eval()
    source = torch.ones(1, 3, dtype=torch.long)
    stepper, state = model.stepper(), model.start(source)
    memory = model.decoder.remember(model.encode(source))
    alone = model.decoder.start(memory)
    for token in (1, 4, 2):
        tokens = torch.tensor([[token]])
        found = stepper.step(state, tokens)
        expected = model.decoder.step(alone, tokens[0], memory)
        torch.testing.assert_close(found.log_probs[0], expected.log_probs)
        # The hypothesis splits into two, each with a separate part of the state.
        state = stepper.reorder(found.state, torch.tensor([[0, 0]]))
        assert state.decoder.own.vector.shape == (1, 2, SIZE)
        state, alone = stepper.reorder(state, torch.tensor([[1]])), expected.state
