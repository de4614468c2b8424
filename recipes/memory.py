"""Copy, repeat, recall and sort: do models handle sequences that are longer than the training sequences?

    foveal fit --recipe recipes/memory.py:copy_shift --out runs/copy_shift
    python -m benchmarks.lectures fit memory --runs runs               all cases, three seeds
    python -m benchmarks.lectures score memory --runs runs

    copy      a b c                          ->  a b c
    repeat    3 a b                          ->  a b a b a b
    recall    a b c , d e f , g h i ? d e f  ->  g h i         the item after the item of the question
    sort      071 009 040 .                  ->  009 040 071 .

Training sequences have 1 to 20 letters or numbers; for recall, 2 to 5 items. The attention of the decoder differs:

    softmax   weights by content
    shift     the weights can move by one position at each step (location addressing)
    point     by content, and the outputs are the tokens that it points to (pointer network)

The numbers to sort are a set, so their encoder is a table of vectors, without order. The mark at their end is a position to
point to.

`copy_ntm`, `copy_lie` and `copy_lstm` have no attention. A recurrent network reads the letters and a mark, then writes one
letter for each dot; an LSTM from its state, a Neural Turing Machine from a memory of 128 rows, and a Lie-access memory from
its 256 newest rows:

    a b c = . . .   ->   - - - - a b c

References: Graves et al. 2014, section 4.1 to 4.3; Yang and Rush 2017; Vinyals et al. 2015 (pointer networks); Vinyals et al.
2016 (sets).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Literal

from typing_extensions import override

from foveal.data import AbstractSourceSpec, Example, WhitespaceSpec
from foveal.models import (
    DecoderSpec,
    LieAccessCellSpec,
    NTMCellSpec,
    Seq2SeqSpec,
    TaggerSpec,
    TextEncoderSpec,
    WordEncoderSpec,
)
from foveal.specs import setting
from foveal.tasks import PredictionSpec, TaggingSpec, TransductionSpec
from foveal.training import Run, TrainingSpec

Kind = Literal["copy", "repeat", "recall", "dots", "sort"]

LETTERS = "abcdefghij"
NUMBERS = tuple(f"{number:03}" for number in range(100))
COUNTS = ("1", "2", "3")
WIDTH = 3  # letters of an item of `recall`
LONGEST = 20  # letters of the longest training sequence
TASKS = ("copy", "repeat", "recall")
ATTENTIONS = {"softmax": 0, "shift": 1}  # number of positions that a step can move
OUTPUTS = {"softmax": False, "point": True}  # whether outputs of `sort` are tokens of the source
CELLS: dict[str, Literal["lstm"] | NTMCellSpec | LieAccessCellSpec] = {
    "lstm": "lstm",
    "ntm": NTMCellSpec(num_rows=128, row_size=16),
    "lie": LieAccessCellSpec(num_rows=256, row_size=16),
}
CASES = (
    *(f"{task}_{attention}" for task in TASKS for attention in ATTENTIONS),
    *(f"copy_{cell}" for cell in CELLS),
    *(f"sort_{output}" for output in OUTPUTS),
)
STEPS = {"copy": 5000, "repeat": 3000, "recall": 2500, "dots": 2500, "sort": 3000}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sequences(AbstractSourceSpec):
    """Random sequences with the output of a task."""

    kind: Literal["sequences"] = "sequences"
    task: Kind = setting("copy", "how the output follows")
    shortest: int = setting(1, "number of letters of the shortest sequence", at_least=1)
    longest: int = setting(LONGEST, "number of letters of the longest sequence", at_least=1)
    size: int = setting(1000, "number of sequences", at_least=1)
    seed: int = setting(1, "random seed of the sequences", at_least=0)

    @override
    def read(self) -> Iterator[Example]:
        chance, draw = Random(self.seed), _DRAW[self.task]
        for _ in range(self.size):
            source, target = draw(chance, chance.randint(self.shortest, self.longest))
            yield Example(" ".join(source), " ".join(target))


Drawn = tuple[list[str], list[str]]


def _copy(chance: Random, length: int) -> Drawn:
    letters = chance.choices(LETTERS, k=length)
    return letters, letters


def _repeat(chance: Random, length: int) -> Drawn:
    letters, count = chance.choices(LETTERS, k=length), chance.choice(COUNTS)
    return [count, *letters], letters * int(count)


def _recall(chance: Random, length: int) -> Drawn:
    """Draw different items of three letters and a comma, `length` tokens in all."""
    items = dict[tuple[str, ...], None]()
    while len(items) < max(2, length // (WIDTH + 1)):
        items[tuple(chance.choices(LETTERS, k=WIDTH))] = None
    drawn = list(items)
    asked = chance.randrange(len(drawn) - 1)
    source = [letter for item in drawn for letter in (*item, ",")]
    return [*source[:-1], "?", *drawn[asked]], list(drawn[asked + 1])


def _dots(chance: Random, length: int) -> Drawn:
    letters = chance.choices(LETTERS, k=length)
    return [*letters, "=", *["."] * length], [*["-"] * (length + 1), *letters]


def _sort(chance: Random, length: int) -> Drawn:
    """Draw different numbers, and a mark after them."""
    numbers = chance.sample(NUMBERS, length)
    return [*numbers, "."], [*sorted(numbers), "."]


_DRAW = {"copy": _copy, "repeat": _repeat, "recall": _recall, "dots": _dots, "sort": _sort}


def recipe(case: str = "copy_shift") -> Run:
    """Return a run of a small model on one task: one to three minutes."""
    task, _, mechanism = case.partition("_")
    if task == "sort":
        return _run(task, _sorting(point=OUTPUTS[mechanism]), batch_size=32)
    if mechanism in CELLS:
        return _run("dots", _recurrent(CELLS[mechanism]), batch_size=16)
    assert task == "copy" or task == "repeat" or task == "recall"
    return _run(task, _attending(ATTENTIONS[mechanism]), batch_size=32)


def _run(
    task: Kind,
    spec: TransductionSpec | TaggingSpec,
    batch_size: int,
) -> Run:
    train, dev, test = (
        Sequences(task=task, size=size, seed=seed)
        for size, seed in ((20_000, 1), (100, 2), (200, 3))
    )
    training = TrainingSpec(
        steps=STEPS[task],
        batch_size=batch_size,
        learning_rate=5e-3,
        evaluate_every=STEPS[task] // 5,
    )
    return Run(task=spec, train=train, dev=dev, test=test, training=training)


def _attending(shift: int) -> TransductionSpec:
    """Return an encoder-decoder whose attention can move by `shift` positions at each step."""
    return TransductionSpec(
        source=WhitespaceSpec(),
        target=WhitespaceSpec(),
        model=Seq2SeqSpec(
            encoder=TextEncoderSpec(embedding_size=16, hidden_size=32, dropout=0.0),
            decoder=DecoderSpec(
                embedding_size=16, hidden_size=64, dropout=0.0, bridge="learned", shift=shift
            ),
        ),
        label_smoothing=0.0,
        prediction=PredictionSpec(beam_size=1, max_length=301),
    )


def _sorting(*, point: bool) -> TransductionSpec:
    """Return a decoder that reads a set of numbers, and generates numbers or points to them."""
    encoder = WordEncoderSpec(embedding_size=64, dropout=0.0)
    decoder = DecoderSpec(
        embedding_size=64, hidden_size=64, dropout=0.0, bridge="learned", point=point
    )
    return replace(_attending(0), model=Seq2SeqSpec(encoder=encoder, decoder=decoder))


def _recurrent(cell: Literal["lstm"] | NTMCellSpec | LieAccessCellSpec) -> TaggingSpec:
    """Return a recurrent network that reads the letters, then writes them from its memory."""
    encoder = TextEncoderSpec(
        cell=cell, embedding_size=16, hidden_size=64, bidirectional=False, dropout=0.0
    )
    return TaggingSpec(model=TaggerSpec(encoder=encoder, crf=False), word_dropout=0.0)


copy_softmax, copy_shift, copy_lstm, copy_ntm, copy_lie = (
    partial(recipe, f"copy_{mechanism}") for mechanism in (*ATTENTIONS, *CELLS)
)
repeat_softmax, repeat_shift = (partial(recipe, f"repeat_{each}") for each in ATTENTIONS)
recall_softmax, recall_shift = (partial(recipe, f"recall_{each}") for each in ATTENTIONS)
sort_softmax, sort_point = (partial(recipe, f"sort_{each}") for each in OUTPUTS)
