r"""Cloze reading: which entity belongs in the gap of a sentence about a document? With and without attention.

    foveal fit --recipe recipes/cloze.py:attention --out runs/cloze
    python -m benchmarks.lectures fit cloze --runs runs              both cases, three seeds
    python -m benchmarks.lectures score cloze --runs runs

The recipe generates the corpus. A document reports events in random order:

    @entity3 sold the old car . @entity1 bought the red boat . @entity6 bought the old car . @entity0 sold the red boat .

The question is one event in other words, with a gap: "@placeholder purchased the old car". The answer is an
entity. Entities have numbers, which are drawn anew for each
document, as in Hermann et al. 2015: a model cannot know who usually buys cars and must read the document. Each verb
and each object occurs in two events of a document, so neither of them alone determines the answer.

The cases are the attentive reader of that paper, and the same network without attention, in which the summary of
the document replaces the attended vector.
"""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from foveal.data import TabSeparated, WhitespaceSpec, tsv
from foveal.models import AttentiveReaderSpec, SoftmaxSpec, TextEncoderSpec
from foveal.tasks import PairClassificationSpec
from foveal.training import Run, TrainingSpec
from recipes.whole_files import write_whole

FOLDER = Path(__file__).resolve().parents[1] / ".cache/cloze"
CASES = ("attention", "none")
SIZES = {"train": 10_000, "dev": 500, "test": 2_000}
NUM_ENTITIES = 8  # different entities of the corpus; a document has some of them
GAP = "@placeholder"
# The first verb is for documents, the others are for questions.
VERBS = (
    ("bought", "purchased", "acquired"),
    ("sold", "traded", "auctioned"),
    ("found", "discovered", "located"),
    ("lost", "misplaced", "mislaid"),
    ("stole", "robbed", "snatched"),
    ("painted", "colored", "decorated"),
)
ADJECTIVES = ("old", "red", "small", "heavy")
NOUNS = ("car", "boat", "clock", "piano", "vase", "lamp", "bicycle", "carpet")
NUM_OBJECTS = NUM_VERBS = 2  # of a document, in all combinations


class Cloze(NamedTuple):
    """A document, a question with a gap, and the entity that belongs there."""

    document: str
    question: str
    answer: str


def recipe(case: str = "attention") -> Run:
    """Return a run with the attentive reader, with or without its attention."""
    return Run(
        task=PairClassificationSpec(
            source=WhitespaceSpec(),
            model=AttentiveReaderSpec(
                encoder=TextEncoderSpec(embedding_size=64, hidden_size=64, dropout=0.1),
                attention=SoftmaxSpec() if case == "attention" else None,
                hidden_size=64,
            ),
        ),
        train=part("train"),
        dev=part("dev"),
        test=part("test"),
        training=TrainingSpec(epochs=8.0, batch_size=32, learning_rate=3e-3, seed=1),
    )


attention, none = (partial(recipe, case) for case in CASES)


def part(name: str) -> TabSeparated:
    """Return a part of the corpus; the first call writes it."""
    path = FOLDER / f"{name}.tsv"
    if not path.exists():
        write_whole(path, ("\t".join(each) + "\n" for each in examples(name)))
    return tsv(path, second=1, target=2)


def examples(name: str) -> Iterator[Cloze]:
    """Yield the examples of a part, the same in every call."""
    generator = random.Random(f"cloze {name}")
    return (generate(generator) for _ in range(SIZES[name]))


def generate(generator: random.Random) -> Cloze:
    """Return a random example."""
    verbs = generator.sample(VERBS, NUM_VERBS)
    objects = [
        f"the {generator.choice(ADJECTIVES)} {noun}"
        for noun in generator.sample(NOUNS, NUM_OBJECTS)
    ]
    facts = [(verb, thing) for verb in verbs for thing in objects]
    people = [f"@entity{number}" for number in generator.sample(range(NUM_ENTITIES), len(facts))]
    sentences = [
        f"{who} {verb[0]} {thing} ." for who, (verb, thing) in zip(people, facts, strict=True)
    ]
    asked = generator.randrange(len(facts))
    verb, thing = facts[asked]
    question = f"{GAP} {generator.choice(verb[1:])} {thing}"
    generator.shuffle(sentences)
    return Cloze(" ".join(sentences), question, people[asked])
