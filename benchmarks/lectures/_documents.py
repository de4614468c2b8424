"""Documents: the accuracy of each system, accuracy by length, and the words with the most attention.

    results/documents_reviews.json              a row of the table for each system, and for each difference
    results/documents_reviews_by_length.json    a row for each tenth of the documents, by number of words
    results/documents_imdb.json, ..._by_length  the same files for the other corpus
    results/attended_words.json                 the words of reviews with the most two-level attention
    results/shown/documents.json                a review with the weights of its words and sentences

For the reviews, the test documents of all folds are pooled, with one seed per fold. Cases that were not
fitted are left out; systems that lack a fold are compared on the other folds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foveal.bundles import load_bundle
from foveal.metrics import Statistics
from foveal.tasks import Classification, Prediction
from recipes import documents

from ..records._fitting import COST, Cost, folder_of
from ..results import Row, digests
from ._comparison import UNIT, difference_rows, mean_row, spec_of, update
from ._shown import Shown, save_shown

NAME = "documents"
WORDS = "attended_words"
PUBLISHED = 90.5  # accuracy of two-level attention on IMDB, from the lectures
PARTS = 10
MIN_SEEN, MOST_WORDS = 20, 20
ATTENDING = "hierarchical"
# A row called "mean" would be taken for the mean of the other rows.
TITLES = {"mean": "mean of words"}


class Tested(NamedTuple):
    """The results of a model on the test documents of its case."""

    right: Statistics
    lengths: Sequence[int]  # words of each document
    parameters: int
    cost: Cost


class System(NamedTuple):
    """The models of one system, one for each fold."""

    name: str  # in tables
    by_fold: Mapping[str, Tested]

    def right(self, folds: Sequence[str]) -> Statistics:
        """Return the correctness of all documents of some folds."""
        found = [self.by_fold[fold].right for fold in folds]
        return replace(found[0], rows=np.concatenate([each.rows for each in found]))


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update the files of the corpora of these cases."""
    seed, tested = seeds[0], dict[str, Tested]()
    reading = _Reading()
    for case in cases:
        folder = folder_of(runs, NAME, case, seed)
        if not (folder / COST).exists():
            continue
        tested[case] = _tested(case, folder, reading)
        print(f"{case}: {tested[case].right.value:.1f}", flush=True)
    for corpus in documents.CORPORA:
        own = {case: one for case, one in tested.items() if case.startswith(corpus)}
        if own:
            _save(corpus, own, seed, results)
    if reading.shown is not None:
        data = digests(_files("reviews"), documents.DATA)
        update(results / f"{WORDS}.json", NAME, reading.rows(seed), data=data)
        save_shown(results, NAME, ATTENDING, [reading.shown])


def _save(corpus: str, tested: Mapping[str, Tested], seed: int, results: Path) -> None:
    """Update the two files of one corpus."""
    systems = [*_systems(corpus, tested)]
    rows = [row for system in systems for row in _rows(corpus, system, seed)]
    rows += [row for pair in combinations(systems, 2) for row in _difference(*pair, seed)]
    data = digests(_files(corpus), documents.DATA)
    out = results / f"{NAME}_{corpus}.json"
    spec = {case: spec_of(documents.recipe(case)) for case in tested}
    update(out, NAME, rows, data=data, spec=spec)
    by_length = [row for system in systems for row in _by_length(system, seed)]
    update(out.with_stem(f"{out.stem}_by_length"), NAME, by_length, data=data)


def _files(corpus: str) -> list[Path]:
    """List the files of a corpus."""
    return sorted({documents.file_of(f"{corpus}_{part}") for part in ("train", "test")})


def _tested(case: str, folder: Path, reading: "_Reading") -> Tested:
    task = load_bundle(folder)
    assert isinstance(task, Classification)
    corpus, system, *_ = case.split("_")
    test = documents.recipe(case).test
    assert test is not None
    examples = list(test)
    is_read = corpus == "reviews" and system == ATTENDING
    settings = replace(task.prediction, trace=is_read, batch_size=32)
    found = task.evaluate(examples, settings)
    if is_read:
        reading.add(found.predictions, found.references)
    return Tested(
        right=found.statistics["accuracy"],
        lengths=[len(str(example.source).split()) for example in examples],
        parameters=sum(weights.numel() for weights in task.model.parameters()),
        cost=Cost.load(folder),
    )


def _systems(corpus: str, tested: Mapping[str, Tested]) -> Iterator[System]:
    for name in documents.SYSTEMS:
        start = f"{corpus}_{name}"
        folds = {
            case.removeprefix(start): one
            for case, one in tested.items()
            if case == start or case.startswith(f"{start}_")
        }
        if folds:
            yield System(TITLES.get(name, name), folds)


def _rows(corpus: str, system: System, seed: int) -> Iterator[Row]:
    """Yield the figures of a system; in their names, the table row comes before the colon, the column after."""
    found, title = [*system.by_fold.values()], system.name
    aim = PUBLISHED if (corpus, title) == ("imdb", "recurrent") else None
    accuracies = [each.right.value for each in found]
    yield mean_row(f"{title}: accuracy", accuracies, UNIT, [seed], aim)
    yield Row(name=f"{title}: folds", value=len(found), unit="", seeds=(seed,))
    yield mean_row(f"{title}: parameters", [each.parameters for each in found], "", [seed])
    minutes = [each.cost.processor_minutes for each in found]
    yield mean_row(f"{title}: processor minutes", minutes, "min", [seed])


def _difference(first: System, second: System, seed: int) -> Iterator[Row]:
    folds = [fold for fold in first.by_fold if fold in second.by_fold]
    if folds:
        name = f"{second.name} - {first.name}"
        yield from difference_rows(name, [first.right(folds)], [second.right(folds)], [seed])


def _by_length(system: System, seed: int) -> Iterator[Row]:
    """Yield the accuracy by tenths of the documents, the shortest first."""
    found = [*system.by_fold.values()]
    lengths = np.concatenate([each.lengths for each in found])
    right = system.right([*system.by_fold])
    order = np.argsort(lengths, kind="stable")
    for number, part in enumerate(np.array_split(order, PARTS), start=1):
        if not len(part):
            continue
        chosen = np.zeros(len(order), bool)
        chosen[part] = True
        title = f"{lengths[part].min()} to {lengths[part].max()} words"
        value = right.subset(chosen).value
        yield Row(name=f"{number}. {title}: {system.name}", value=value, unit=UNIT, seeds=(seed,))


class _Reading:
    """The attention to words over all test documents."""

    def __init__(self) -> None:
        self.shown: Shown | None = None
        self._shortest = 0
        self._seen, self._times = Counter[str](), defaultdict[str, float](float)

    def add(self, predictions: Sequence[Prediction], references: Sequence[str]) -> None:
        """Count the words of documents; the shortest correctly classified positive one is shown."""
        for prediction, reference in zip(predictions, references, strict=True):
            trace = prediction.trace
            assert trace is not None
            pairs = [pair for pair in zip(trace.sources, trace.weights[0], strict=True) if pair[0]]
            for word, weight in pairs:
                self._seen[word] += 1
                self._times[word] += weight * len(pairs)  # 1 if all words have the same weight
            is_shorter = self.shown is None or len(pairs) < self._shortest
            if prediction.output == reference == documents.LABELS["pos"] and is_shorter:
                said = f"Praise, and taken for it with confidence {prediction.confidence:.2f}"
                self.shown, self._shortest = Shown(said, trace), len(pairs)

    def rows(self, seed: int) -> Iterator[Row]:
        """Yield the words with the most attention, without rare words."""
        often = [word for word, number in self._seen.items() if number >= MIN_SEEN]
        means = {word: self._times[word] / self._seen[word] for word in often}
        for word in sorted(means, key=lambda word: -means[word])[:MOST_WORDS]:
            yield Row(
                name=f"{word}: times an average word",
                value=means[word],
                unit="times",
                seeds=(seed,),
            )
            yield Row(name=f"{word}: places", value=self._seen[word], unit="", seeds=(seed,))
