"""Sentences under three kinds of attention next to their gold alignment.

    results/shown/side_by_side.json     the gold links and the attention of each model, for two sentences
    results/side_by_side.json           alignment error rate of each model on all short gold pairs

A rule chooses the sentences: of the pairs with 6 to 12 words on both sides, the two with the fewest words that the
models do not know, and the first of equals. All models read the reference translation word by word (teacher forcing),
hence all pictures of a sentence have the same rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from foveal.attention import AttentionTrace
from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.data.formats._links import Gold, read_fast_align, read_gold
from foveal.data.tokenizers._words import split_words
from foveal.inspection import align, forced_traces
from foveal.metrics import alignment_scores
from foveal.tasks import Transduction
from recipes import ja_en, side_by_side

from ..records._fitting import COST, Cost, folder_of
from ..results import Row, digests
from ._comparison import UNIT, spec_of, update
from ._shown import Shown, save_shown

NAME = "side_by_side"
LENGTHS = range(6, 13)  # words
NUM_SHOWN = 2
_FILES = ("align_gold_jaen/jaen.src-tgt", "align_gold_jaen/jaen.gold")
_TITLES = {"simple": "softmax", "sigmoid": "sigmoid", "segment": "segment"}


class Pair(NamedTuple):
    """A pair of sentences and its gold links."""

    example: Example
    gold: Gold


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update the figures of the cases that were fitted, and the pictures if all cases were."""
    seed, pairs = seeds[0], gold_pairs()
    folders = {case: folder_of(runs, NAME, case, seed) for case in cases}
    fitted = {case: folder for case, folder in folders.items() if (folder / COST).exists()}
    tasks = dict[str, Transduction]()
    rows, specs = list[Row](), dict[str, object]()
    for case, folder in fitted.items():
        task = load_bundle(folder)
        assert isinstance(task, Transduction)
        tasks[case], title = task, _TITLES[case]
        links = [pair.links for pair in align(task, [one.example for one in pairs], by="argmax")]
        found = alignment_scores(links, [one.gold for one in pairs])
        minutes = Cost.load(folder).processor_minutes
        bleu = task.evaluate(list(ja_en.part("test"))).value
        for name, value, unit in (
            ("AER", found.aer.value, UNIT),
            ("BLEU", bleu, "BLEU"),
            ("CPU minutes", minutes, "min"),
        ):
            rows.append(Row(name=f"{title}: {name}", value=value, unit=unit, seeds=(seed,)))
        specs[title] = spec_of(side_by_side.recipe(case))
        print(title, found.aer.value, bleu, flush=True)
    data = digests([ja_en.DATA / file for file in _FILES], ja_en.DATA)
    update(results / f"{NAME}.json", NAME, rows, data=data, spec=specs)
    if tasks.keys() != _TITLES.keys():
        return
    shown = [
        each for pair in _chosen(pairs, next(iter(tasks.values()))) for each in _shown(pair, tasks)
    ]
    save_shown(results, NAME, "sentences", shown)


def gold_pairs() -> list[Pair]:
    """Return the gold pairs of suitable length, in lower case as the training corpus."""
    texts, links = (str(ja_en.DATA / file) for file in _FILES)
    examples = list[Example](read_fast_align(texts) or ())
    sizes = [tuple(len(split_words(side)) for side in _sides(one)) for one in examples]
    gold = read_gold(links, [(sources, targets) for sources, targets in sizes]).gold
    return [
        Pair(replace(one, target=(one.target or "").lower()), each)
        for one, each, size in zip(examples, gold, sizes, strict=True)
        if all(length in LENGTHS for length in size)
    ]


def _sides(example: Example) -> tuple[str, str]:
    return example.text, example.target or ""


def _chosen(pairs: Sequence[Pair], task: Transduction) -> list[Pair]:
    """Return the pairs with the fewest unknown words."""
    source, target = task.vocabularies.source, task.vocabularies.target
    assert target is not None

    def num_unknown(pair: Pair) -> int:
        words, written = (split_words(side) for side in _sides(pair.example))
        return sum(word not in source for word in words) + sum(w not in target for w in written)

    return sorted(pairs, key=num_unknown)[:NUM_SHOWN]


def _shown(pair: Pair, tasks: dict[str, Transduction]) -> list[Shown]:
    example, gold = pair
    sources, targets = (tuple(split_words(side)) for side in _sides(example))
    linked = tuple(
        tuple(float((i, j) in gold.sure) for i in range(len(sources))) for j in range(len(targets))
    )
    truth = AttentionTrace(kind="gold", sources=sources, targets=targets, weights=linked)
    found = [Shown(_caption(example, "the gold alignment"), truth)]
    for case, task in tasks.items():
        (trace,) = forced_traces(task, [example])
        found.append(Shown(_caption(example, f"{_TITLES[case]} attention"), trace))
    return found


def _caption(example: Example, what: str) -> str:
    return f"{example.text}: {example.target}, {what}"
