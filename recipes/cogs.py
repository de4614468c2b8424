r"""Parsing as sequence transduction: English sentences to logical forms (COGS), with and without copying.

    foveal fit --recipe recipes/cogs.py:copy --out runs/cogs
    python -m benchmarks.lectures fit cogs --runs runs              all cases, three seeds
    python -m benchmarks.lectures score cogs --runs runs

    attention       an LSTM with softmax attention over the words of the sentence
    copy            the same, and the decoder can copy words of the sentence

A target is a logical form: `Henry liked a box .` becomes `like . agent ( x _ 1 , Henry ) AND like . theme ( x _ 1 , x _ 3 )
AND box ( x _ 3 )`. The recipe writes each variable such as `x _ 3` as one token, which shortens the targets by a quarter.

The generalization set of the paper is not in the data set here. `novel` makes sentences in the way of its lexical cases
instead: in a test sentence, it replaces one noun by a noun that training has only in another role, or only as a word on
its own. The nouns of COGS for this are hedgehog, cockroach, shark, Lina, Charlie and Paula.

The recipe writes the files once, into `.cache/cogs` of the checkout. `foveal data get cogs` gets the data.

Reference: Kim and Linzen 2020, COGS: A compositional generalization challenge based on semantic interpretation.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from foveal.data import LineReader, TabSeparated, WhitespaceSpec, tsv
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.training import Run, TrainingSpec
from recipes.whole_files import write_whole

DATA = data_folder()
FOLDER = Path(__file__).resolve().parents[1] / ".cache/cogs"
PARTS = ("train", "dev", "test")
CASES = ("attention", "copy")


class Gap(NamedTuple):
    """A noun that training has in one role, and the role in which `novel` uses it."""

    noun: str
    role: str


GAPS = {
    "agent to theme, common noun": Gap("hedgehog", "theme"),
    "theme to agent, common noun": Gap("cockroach", "agent"),
    "word to agent, common noun": Gap("shark", "agent"),
    "word to theme, common noun": Gap("shark", "theme"),
    "agent to theme, name": Gap("Lina", "theme"),
    "theme to agent, name": Gap("Charlie", "agent"),
    "word to agent, name": Gap("Paula", "agent"),
    "word to theme, name": Gap("Paula", "theme"),
}
_VARIABLE = re.compile(r"x _ (\d+)")
_ARGUMENT = re.compile(r"\. (agent|theme) \( x_\d+ , (\S+) \)")


def recipe(case: str = "attention") -> Run:
    """Return a run from sentences to logical forms."""
    train, dev, test = map(part, PARTS)
    return Run(
        task=TransductionSpec(
            source=WhitespaceSpec(),
            target=WhitespaceSpec(),
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=64, hidden_size=96, dropout=0.1),
                decoder=DecoderSpec(
                    embedding_size=64, hidden_size=128, dropout=0.1, copy=case == "copy"
                ),
            ),
            label_smoothing=0.0,
            prediction=PredictionSpec(beam_size=1, max_length=120),
        ),
        train=train,
        dev=dev,
        test=test,
        training=TrainingSpec(epochs=5.0, batch_tokens=2500, learning_rate=3e-3, seed=1),
    )


attention, copy = (partial(recipe, case) for case in CASES)


def part(name: str) -> TabSeparated:
    """Return the sentences and logical forms of a part."""
    path = FOLDER / f"{name}.tsv"
    if not path.exists():
        write_whole(path, (f"{source}\t{target}\n" for source, target in pairs(name)))
    return tsv(path)


def file_of(name: str) -> Path:
    """Return the source file of a part."""
    return DATA / f"cogs/{name}.tsv.gz"


def pairs(name: str) -> Iterator[tuple[str, str]]:
    """Yield sentences and logical forms, with each variable as one token."""
    for line in LineReader(str(file_of(name))):
        source, target, _ = line.split("\t")
        yield source, _VARIABLE.sub(r"x_\1", target)


def novel(gap: Gap) -> Iterator[tuple[str, str]]:
    """Yield test sentences with a noun in a role in which training does not have it."""
    is_name = gap.noun[0].isupper()
    for source, target in pairs("test"):
        words = source.split()
        for role, argument in _ARGUMENT.findall(target):
            is_variable = argument.startswith("x_")
            if role != gap.role or is_variable == is_name:
                continue
            noun = words[int(argument[2:])] if is_variable else argument
            if words.count(noun) == 1:
                yield _replaced(source, noun, gap.noun), _replaced(target, noun, gap.noun)
                break


def _replaced(text: str, old: str, new: str) -> str:
    return " ".join(new if token == old else token for token in text.split())
