"""Learning to execute: read a program one character at a time, and write its output (Zaremba and Sutskever 2014).

    foveal fit --recipe recipes/execute.py:attention --out runs/execute
    python -m benchmarks.lectures fit execute --runs runs                all cases, three seeds
    python -m benchmarks.lectures score execute --runs runs

    j=858
    b=(150+j)
    print((b+756))                  1764.

`length` is the number of digits of a number, `nesting` the number of operations. A curriculum has a stage for each pair of
them, sorted by their sum; the last stage is the target. In scrambled programs, every character is replaced by another
one. The paper trains networks of 2.5 million weights; these have at most 0.5 million, and take two to four minutes each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal
from zlib import crc32

from typing_extensions import override

from examples.support.programs import draw_program, scrambled
from foveal.data import AbstractSourceSpec, CharacterSpec, CurriculumSpec, Example
from foveal.models import (
    DecoderSpec,
    Seq2SeqSpec,
    SoftmaxSpec,
    TextEncoderSpec,
    TransformerDecoderSpec,
    TransformerEncoderSpec,
)
from foveal.specs import setting
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.training import Run, TrainingSpec

MAX_LENGTH, MAX_NESTING = 3, 2
STAGES = tuple(
    sorted(
        (
            (length, nesting)
            for length in range(1, MAX_LENGTH + 1)
            for nesting in range(1, MAX_NESTING + 1)
        ),
        key=sum,
    )
)
NUM_TRAINED, NUM_VALIDATED = 150_000, 300  # programs
MODELS = ("none", "attention", "transformer")
STRATEGIES = ("baseline", "naive", "mix", "combined")
CASES = (
    *(f"{model}_{strategy}" for model in MODELS for strategy in STRATEGIES),
    "scrambled_combined",
)

Part = Literal["train", "dev", "test"]
PARTS: tuple[Part, ...] = ("train", "train", "train", "train", "dev", "test")


@dataclass(frozen=True, kw_only=True, slots=True)
class Programs(AbstractSourceSpec):
    """Programs of one length and nesting. A hash of the text decides which part a program belongs to."""

    kind: Literal["programs"] = "programs"
    length: int = setting(1, "digits of a number", at_least=1)
    nesting: int = setting(1, "operations of a program", at_least=1)
    part: Part = setting("train", "the part of all programs")
    size: int = setting(1_000, "number of programs", at_least=1)
    is_scrambled: bool = setting(False, "replace each character by another one")

    @override
    def read(self) -> Iterator[Example]:
        chance, number = Random(crc32(f"{self.length} {self.nesting} {self.part}".encode())), 0
        while number < self.size:
            program = draw_program(self.length, self.nesting, chance)
            if PARTS[crc32(program.text.encode()) % len(PARTS)] != self.part:
                continue
            number += 1
            text = program.text.replace("\n", ";")
            if self.is_scrambled:
                yield Example(scrambled(text), scrambled(program.output))
            else:
                yield Example(text, program.output)


SPECS = (Programs,)


def programs(part: Part, size: int, *, is_scrambled: bool = False) -> tuple[Programs, ...]:
    """Return a source for each stage."""
    return tuple(
        Programs(length=length, nesting=nesting, part=part, size=size, is_scrambled=is_scrambled)
        for length, nesting in STAGES
    )


def recipe(case: str = "attention_combined") -> Run:
    """Return a run over one curriculum."""
    model, _, strategy = case.rpartition("_")
    assert (
        strategy == "baseline" or strategy == "naive" or strategy == "mix" or strategy == "combined"
    )
    is_scrambled = model == "scrambled"
    return Run(
        task=TransductionSpec(
            source=CharacterSpec(),
            target=CharacterSpec(),
            model=_model(model),
            label_smoothing=0.0,
            prediction=PredictionSpec(beam_size=1),
        ),
        train=CurriculumSpec(
            stages=programs("train", NUM_TRAINED, is_scrambled=is_scrambled),
            strategy=strategy,
            size=NUM_TRAINED,
            shuffle_size=1 << 15,
        ),
        dev=programs("dev", NUM_VALIDATED, is_scrambled=is_scrambled)[-1],
        training=TrainingSpec(
            epochs=1.0, batch_size=64, learning_rate=2e-3, warmup_steps=200, schedule="cosine"
        ),
    )


def _model(name: str) -> Seq2SeqSpec:
    if name == "transformer":
        return Seq2SeqSpec(
            encoder=TransformerEncoderSpec(model_size=64, num_layers=2, num_heads=4, dropout=0.0),
            decoder=TransformerDecoderSpec(model_size=64, num_layers=2, num_heads=4, dropout=0.0),
        )
    return Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=32, hidden_size=96, dropout=0.0),
        decoder=DecoderSpec(
            embedding_size=32,
            hidden_size=192,
            dropout=0.0,
            attention=None if name == "none" else SoftmaxSpec(),
        ),
    )


none, attention, transformer = (partial(recipe, f"{model}_combined") for model in MODELS)
