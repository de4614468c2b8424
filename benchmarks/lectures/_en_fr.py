"""English to French with and without attention: BLEU by length, and adjectives that change places.

    results/en_fr.json               BLEU, epochs until the best development score, cost
    results/en_fr_by_length.json     BLEU on short sentences and on long ones
    results/shown/en_fr.json         attention of sentences in which the adjective follows its noun

The captions of the corpus are not distributed. The pictures therefore show sentences of a template of our own,
"a COLOR NOUN ..."; the rule takes the first ones in which the translation has the noun before the color and the model
reads the right word for both. `score` also counts how many of all such sentences are swapped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.inspection import forced_traces
from foveal.metrics import Statistics
from foveal.tasks import Transduction
from foveal.training import read_log
from recipes import en_fr

from ..records._fitting import Cost, fitted
from ..results import Row
from ._by_length import WITH, WITHOUT, Written, length_rows
from ._comparison import UNIT, difference_rows, mean_row, spec_of, update
from ._shown import Shown, save_shown

NAME = "en_fr"
NUM_SHOWN = 2
# English and French stems: a French word that begins so is a translation.
COLORS = {"black": "noir", "white": "blanc", "red": "rouge", "green": "vert", "blue": "bleu"}
NOUNS = {"dog": "chien", "car": "voiture", "shirt": "chemise", "dress": "robe", "ball": "ball"}
TEMPLATE = "a man looks at a {color} {noun} in the street ."


class Scored(NamedTuple):
    """The test results of one case, in the order of the seeds."""

    tasks: Sequence[Transduction]
    bleu: Sequence[Statistics]
    exact: Sequence[Statistics]
    steps: Sequence[int]
    costs: Sequence[Cost]


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update all files with the cases that were fitted with all seeds."""
    examples = list[Example](en_fr.part("test_2016_flickr"))
    found = dict[str, Scored]()
    for case in cases:
        folders = fitted(runs, NAME, case, seeds)
        if folders:
            found[case] = _scored(examples, folders)
            print(case, [round(each.value, 2) for each in found[case].bleu], flush=True)
    specs = {case: spec_of(en_fr.recipe(case)) for case in found}
    rows = [*_rows(found, seeds)]
    if "attention" in found:
        task = found["attention"].tasks[0]
        swapped = _swapped(task)
        share = 100 * len(swapped) / (len(COLORS) * len(NOUNS))
        rows.append(Row(name="attention: swapped", value=share, unit=UNIT, seeds=(seeds[0],)))
        save_shown(results, NAME, "swap", swapped[:NUM_SHOWN])
    update(results / f"{NAME}.json", NAME, rows, spec=specs)
    lengths = [len(example.text.split()) for example in examples]
    names = {"none": WITHOUT, "attention": WITH}
    written = {names[case]: Written(bleu=one.bleu, exact=one.exact) for case, one in found.items()}
    by_length = length_rows(lengths, "words", written, seeds)
    update(results / f"{NAME}_by_length.json", NAME, by_length)


def _scored(examples: Sequence[Example], folders: Sequence[Path]) -> Scored:
    tasks, evaluations, steps = list[Transduction](), [], list[int]()
    for folder in folders:
        task = load_bundle(folder)
        assert isinstance(task, Transduction)
        tasks.append(task)
        evaluations.append(task.evaluate(examples).statistics)
        ends = [line for line in read_log(folder / "log.jsonl") if line["event"] == "finished"]
        steps.append(int(ends[-1]["step"]))
    return Scored(
        tasks,
        [each["bleu"] for each in evaluations],
        [each["exact_match"] for each in evaluations],
        steps,
        [Cost.load(folder) for folder in folders],
    )


def _rows(found: Mapping[str, Scored], seeds: Sequence[int]) -> Iterator[Row]:
    for case, one in found.items():
        yield mean_row(f"{case}: BLEU", [each.value for each in one.bleu], "BLEU", seeds)
        yield mean_row(f"{case}: updates", one.steps, "", seeds)
        minutes = [cost.processor_minutes for cost in one.costs]
        yield mean_row(f"{case}: CPU minutes", minutes, "min", seeds)
    if len(found) == len(en_fr.CASES):
        without, with_it = found["none"].bleu, found["attention"].bleu
        yield from difference_rows("attention - none", without, with_it, seeds, unit="BLEU")


def _swapped(task: Transduction) -> list[Shown]:
    """Return the sentences whose noun comes before its color, and where both read their own English word."""
    pairs = list(product(COLORS, NOUNS))
    examples = [Example(TEMPLATE.format(color=color, noun=noun)) for color, noun in pairs]
    outputs = [answer.output for answer in task.predict(examples)]
    own = [replace(one, target=said) for one, said in zip(examples, outputs, strict=True)]
    shown = list[Shown]()
    for (color, noun), trace in zip(pairs, forced_traces(task, own), strict=True):
        places = [
            next((n for n, word in enumerate(trace.targets) if word.startswith(stem)), None)
            for stem in (NOUNS[noun], COLORS[color])
        ]
        if None in places or places != sorted(n for n in places if n is not None):
            continue
        read = [trace.sources[int(np.argmax(trace.weights[n]))] for n in places if n is not None]
        if read == [noun, color]:
            shown.append(Shown(f"{' '.join(trace.sources)}: the adjective follows its noun", trace))
    return shown
