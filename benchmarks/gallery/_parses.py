"""Parses: the heads of words, by a parser trained on gold trees (Dozat and Manning 2017; Koo et al. 2007).

    loss = -log p(gold tree, labels)

Universal Dependencies, English Web Treebank, training sentences of at most 15 words, words and their
characters only. The gallery shows the first sentence of the test file that has 8 to 11 words and ends in a
full stop.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from examples.support import DATA, Options, train
from foveal.data import Example, read_arc, treebank
from foveal.models import ParserSpec
from foveal.tasks import Parsing, ParsingSpec

from ..results import Results, digest
from ._exhibit import DIGITS, Budget, Exhibit, Shown, Stopwatch, share_row

FILES = tuple(f"ud_english_ewt/en_ewt-ud-{part}.conllu.gz" for part in ("train", "test"))
LONGEST = 15  # words of a training sentence
SHOWN = range(8, 12)  # words of the sentence in the gallery
EPOCHS, RATE = 4, 1e-2
SPEC = ParsingSpec(
    model=ParserSpec(embedding_size=64, hidden_size=96, num_layers=1, arc_size=192, dropout=0.2),
    num_characters=0,
    tag_weight=0.0,
)


def parses(budget: Budget) -> Exhibit:
    """Train, test, and record the parse of one sentence."""
    watch, is_short = Stopwatch(), budget.updates is not None
    known, unseen = (
        list(islice(treebank(DATA / path), 40 if is_short else None)) for path in FILES
    )
    known = [each for each in known if len(each.text.split()) <= LONGEST]
    epochs = 1 if is_short else EPOCHS
    parser = train(
        SPEC, known, Options(cut=None, epochs=epochs, seed=budget.seed), learning_rate=RATE
    )
    right = list[bool]()
    for example, found in zip(unseen, parser.predict(unseen), strict=True):
        pairs = zip(_heads(found.output), _heads(parser.reference(example)), strict=True)
        right += [head == given for head, given in pairs]
    rows = [share_row("test words with the right head", right, budget.seed), watch.row(budget.seed)]
    training = {"epochs": epochs, "learning rate": RATE, "sentences": len(known)}
    return Exhibit(
        results=replace(
            Results.here("python -m benchmarks.gallery --cases parses").with_rows(rows),
            data={path: digest(DATA / path) for path in FILES},
            spec={"model": {"kind": "parsing", "width": 2 * 96}, "training": training},
        ),
        shown=_look(parser, next(each for each in unseen if _is_shown(each.text.split()))),
    )


def _is_shown(words: Sequence[str]) -> bool:
    return len(words) in SHOWN and words[-1] == "."


def _heads(arcs: str) -> list[int]:
    """Read the heads: 0 for the root, words count from 1."""
    return [read_arc(arc)[0] for arc in arcs.split()]


def _look(parser: Parsing, sentence: Example) -> Shown:
    (found,) = parser.predict([sentence], replace(SPEC.prediction, trace=True))
    assert found.trace is not None
    return Shown(
        facts={
            "input": sentence.text,
            "output": _heads(found.output),
            "reference": _heads(parser.reference(sentence)),
            "probability": round(math.exp(found.score), 5),  # the tree with its labels
        },
        trace=replace(
            found.trace,
            weights=tuple(
                tuple(round(each, DIGITS) for each in row) for row in found.trace.weights
            ),
        ),
    )
