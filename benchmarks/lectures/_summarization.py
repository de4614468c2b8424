"""Summaries of abstracts and subjects of emails: ROUGE next to the first sentence and to published figures.

    results/summarization.json

For each corpus and system: ROUGE-1, ROUGE-2 and ROUGE-L on the test set, mean over seeds with the lowest and the
highest; the difference of ROUGE-1 to the first sentence, with the interval of the paired bootstrap over documents;
repeated trigrams, words that occur in the source, and cost. Rules without a model have the bootstrap interval. An
abstract has several references; an email is scored with its own subject only, because annotators often took their
subjects from its first sentence.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Literal, NamedTuple

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.inspection import explain
from foveal.metrics import Statistics, compare, measure, rouge
from foveal.tasks import Transduction
from foveal.tasks._transduction import as_transduction
from recipes import summarization
from recipes.summarization import Document

from ..records._fitting import COST, Cost, folder_of
from ..results import Row, digests
from ._comparison import mean_row, mean_statistics, spec_of, update
from ._shown import Shown, save_shown

NAME = "summarization"
UNIT = "ROUGE"
OVERLAPS: tuple[Literal["1", "2", "L"], ...] = ("1", "2", "L")
RULES: dict[str, Callable[[str], str]] = {
    "first sentence": lambda source: source.splitlines()[0],
    "whole source": lambda source: source,
}
BASELINE = "first sentence"
SHOWN = "scitldr_copy"  # its license allows to show a document
# Figures that a listing names for a paper. The papers themselves were not at hand: their ROUGE may be computed differently.
PUBLISHED = (
    Row(
        name="scitldr, listed for the paper: ROUGE-1",
        value=43.8,
        unit=UNIT,
        kind="paper",
        source="Cachola et al. 2020, for abstracts, as listed at wizwand.com/paper/68fa68821e209131cea1c8c1",
    ),
    *(
        Row(
            name=f"aeslc, listed for the paper, extractor and abstractor: ROUGE-{overlap}",
            value=value,
            unit=UNIT,
            kind="paper",
            source="Zhang and Tetreault 2019, as listed at paperswithcode.com",
        )
        for overlap, value in (("1", 23.67), ("2", 10.29), ("L", 23.44))
    ),
)


class Scored(NamedTuple):
    """The test results of one system, in the order of the seeds."""

    quality: Mapping[str, Sequence[Statistics]]  # by overlap
    repeated: Sequence[float]
    extracted: Sequence[float]
    costs: Sequence[Cost]
    task: Transduction  # of the first seed


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write results/summarization.json for the cases and seeds that were fitted."""
    rows, specs = list[Row](), dict[str, object]()
    for corpus in summarization.CORPORA:
        documents = list(summarization.documents(corpus, "test"))
        if corpus == "aeslc":
            documents = [each._replace(summaries=each.summaries[:1]) for each in documents]
        rules = {
            name: _rouges(documents, [rule(each.source) for each in documents])
            for name, rule in RULES.items()
        }
        rows += _rule_rows(corpus, rules)
        for case in (case for case in cases if case.startswith(f"{corpus}_")):
            done = [seed for seed in seeds if (folder_of(runs, NAME, case, seed) / COST).exists()]
            if not done:
                continue
            found = _scored(documents, [folder_of(runs, NAME, case, seed) for seed in done])
            rows += _rows(case.replace("_", ", ", 1), found, rules[BASELINE]["1"], done)
            specs[case] = spec_of(summarization.recipe(case))
            if case == SHOWN:
                save_shown(results, NAME, "copy", [_shown(documents, found.task)])
            print(case, done, [round(each.value, 2) for each in found.quality["1"]], flush=True)
    files = [
        summarization.file_of(corpus, part)
        for corpus in summarization.CORPORA
        for part in ("train", "dev", "test")
    ]
    data = digests(sorted(files), summarization.DATA)
    update(results / f"{NAME}.json", NAME, [*rows, *PUBLISHED], data=data, spec=specs)


def _rouges(documents: Sequence[Document], outputs: Sequence[str]) -> dict[str, Statistics]:
    references = [each.summaries for each in documents]
    return {overlap: rouge(references, outputs, overlap=overlap) for overlap in OVERLAPS}


def _scored(documents: Sequence[Document], folders: Sequence[Path]) -> Scored:
    examples = [Example(each.source) for each in documents]
    quality = {overlap: list[Statistics]() for overlap in OVERLAPS}
    repeated, extracted = list[float](), list[float]()
    tasks = [as_transduction(load_bundle(folder), "score") for folder in folders]
    for task in tasks:
        outputs = [answer.output for answer in task.predict(examples)]
        for overlap, found in _rouges(documents, outputs).items():
            quality[overlap].append(found)
        free = replace(task.prediction, no_repeat_ngram=0)
        repeated.append(_repeated([answer.output for answer in task.predict(examples, free)]))
        extracted.append(_extracted(documents, outputs))
    costs = [Cost.load(folder) for folder in folders]
    return Scored(quality, repeated, extracted, costs, tasks[0])


def _shown(documents: Sequence[Document], task: Transduction) -> Shown:
    """Return the copying and the attention for the shortest source with several sentences."""
    chosen = min(
        (each for each in documents if "\n" in each.source), key=lambda each: len(each.source)
    )
    explained = explain(task, Example(chosen.source))
    assert explained.trace is not None
    return Shown(f"{explained.output} (reference: {chosen.summaries[0]})", explained.trace)


def _repeated(outputs: Sequence[str]) -> float:
    """Return the percentage of outputs that contain a trigram twice, if nothing forbids it."""
    found = 0
    for words in (output.split() for output in outputs):
        trigrams = list(zip(words, words[1:], words[2:], strict=False))
        found += len(set(trigrams)) < len(trigrams)
    return 100 * found / len(outputs)


def _extracted(documents: Sequence[Document], outputs: Sequence[str]) -> float:
    """Return the percentage of the words of the outputs that occur in their source."""
    pairs = zip(documents, outputs, strict=True)
    inside = [
        word in words
        for words, output in ((set(each.source.split()), output) for each, output in pairs)
        for word in output.split()
    ]
    return 100 * mean(inside) if inside else 0.0


def _rule_rows(corpus: str, rules: Mapping[str, Mapping[str, Statistics]]) -> Iterator[Row]:
    for rule, found in rules.items():
        for overlap, statistics in found.items():
            measured = measure(statistics)
            yield Row(
                name=f"{corpus}, {rule}: ROUGE-{overlap}",
                value=measured.value,
                unit=UNIT,
                spread=(measured.low, measured.high),
            )


def _rows(name: str, found: Scored, baseline: Statistics, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the figures of a system; the table has the text before the colon in its rows."""
    for overlap, statistics in found.quality.items():
        values = [each.value for each in statistics]
        yield mean_row(f"{name}: ROUGE-{overlap}", values, UNIT, seeds)
    compared = compare(baseline, mean_statistics(found.quality["1"]))
    yield Row(
        name=f"{name}: difference to {BASELINE}",
        value=compared.difference,
        unit=UNIT,
        spread=(compared.low, compared.high),
        seeds=tuple(seeds),
    )
    yield mean_row(f"{name}: repeated trigrams", found.repeated, "%", seeds)
    yield mean_row(f"{name}: words of the source", found.extracted, "%", seeds)
    size = sum(weights.numel() for weights in found.task.model.parameters())
    yield Row(name=f"{name}: parameters", value=size, unit="", seeds=tuple(seeds))
    minutes = [cost.processor_minutes for cost in found.costs]
    yield mean_row(f"{name}: CPU minutes", minutes, "min", seeds)
