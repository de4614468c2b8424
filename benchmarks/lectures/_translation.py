"""Translation from characters and from words: BLEU of each attention, BLEU by length, and word boundaries.

    results/translation_characters.json              a row of the table for each case, and for each difference
    results/translation_characters_by_length.json    the same models on short sentences and on long ones
    results/translation_characters_learning.json     and after parts of their training, on development sentences
    results/translation_words.json, ...              the same files for words
    results/segments_found.json                      predicted word boundaries, compared with the corpus
    results/shown/segment_translation.json           attention to show, next to the words of the corpus

The difference of two cases compares the pooled translations of all seeds on the same sentences; its spread is
the interval of the paired bootstrap. Cases that were not fitted with all seeds are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from foveal.attention import AttentionTrace
from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.inspection import forced_traces
from foveal.tasks import Transduction
from foveal.training import read_log
from recipes import ja_en, segment_translation

from ..records._fitting import Cost, fitted
from ..results import Results, Row, Sense, digests
from ._by_length import Written, length_rows
from ._comparison import UNIT, difference_rows, mean_row, spec_of, update
from ._segmentation import (
    boundary_scores,
    chosen_boundaries,
    corpus_boundaries,
    random_boundaries,
    ranked,
    script_changes,
    threshold_for,
    unlike_neighbors,
)
from ._shown import Shown, save_shown

NAME = "segment_translation"
PACKAGES = ("foveal-native",)  # their versions are in the results
FOUND = "segments_found"
# Pairs of attentions, of which the second should be better, and its gain in BLEU on characters in Kim et al. 2017.
# The target is the order (a gain of at least 0) and not the size of the gain, because the paper has another corpus, ten
# times as many sentences and larger networks.
COMPARED = {
    ("none", "simple"): None,
    ("simple", "sigmoid"): 0.5,
    ("simple", "segment"): 2.0,
    ("sigmoid", "segment"): 1.5,
}
SOURCE = (
    "Kim et al. 2017, table 2, from characters: 500,000 sentences of ASPEC, which are not public, and two layers of 500; "
    "here 50,000 sentences of another corpus and one layer of 128"
)
SHOWN = "characters_segment"
PARTS = 8  # of a run
LONG, NUM_SHOWN = range(10, 15), 2  # characters: short enough to draw numbers in the cells


class Scored(NamedTuple):
    """The scores of one case."""

    written: Written
    parameters: int
    costs: Sequence[Cost]
    learning: Sequence[Sequence[float]]  # for each seed


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update all files with the cases that were fitted with all seeds."""
    scored, found = dict[str, Scored](), list[Row]()
    examples, dev = (list[Example](ja_en.part(name)) for name in ("test", "dev"))
    for case in cases:
        folders = fitted(runs, NAME, case, seeds)
        if not folders:
            continue
        tasks = [_task(folder) for folder in folders]
        evaluations = [task.evaluate(examples) for task in tasks]
        scored[case] = Scored(
            written=Written(
                bleu=[each.statistics["bleu"] for each in evaluations],
                exact=[each.statistics["exact_match"] for each in evaluations],
            ),
            parameters=sum(weights.numel() for weights in tasks[0].model.parameters()),
            costs=[Cost.load(folder) for folder in folders],
            learning=[_learning(folder) for folder in folders],
        )
        print(f"{case}: {mean(each.value for each in evaluations):.2f}", flush=True)
        source, _, attention = case.partition("_")
        if source == "characters" and attention != "none":
            traces = [
                _traces(task, examples, [answer.output for answer in each.predictions])
                for task, each in zip(tasks, evaluations, strict=True)
            ]
            found += _found(attention, tasks, traces, examples, dev, seeds)
            if case == SHOWN:
                save_shown(results, NAME, case, [*_shown(examples, traces[0])])
    files = [path for name in ("train", "dev", "test") for path in ja_en.files(name)]
    data = digests(files, ja_en.DATA)
    for source in ja_en.SOURCES:
        own = {case: one for case, one in scored.items() if case.startswith(source)}
        if own:
            _save(source, own, seeds, data, results)
    if found:
        found += _baselines(examples, dev)
        update(results / f"{FOUND}.json", NAME, found, data=data, packages=PACKAGES)


def write_references(results: Path) -> None:
    """Set the order of the paper as target, and add its gains."""
    path = results / "translation_characters.json"
    if not path.exists():  # only words were scored
        return
    found, aims, published = Results.load(path), dict[str, tuple[float, Sense]](), list[Row]()
    measured = {row.name for row in found.rows}
    for (first, second), gain in COMPARED.items():
        name = f"{second} - {first}"
        if gain is not None and f"{name}: difference" in measured:
            aims[f"{name}: difference"] = 0.0, ">="
            published.append(
                Row(
                    name=f"{name}: Kim et al. 2017",
                    value=gain,
                    unit="BLEU",
                    kind="paper",
                    source=SOURCE,
                )
            )
    found.with_references(aims, published).save(path)


def _save(
    source: str,
    scored: Mapping[str, Scored],
    seeds: Sequence[int],
    data: Mapping[str, str],
    results: Path,
) -> None:
    """Update the files of one source."""
    rows = [row for case in scored for row in _rows(case, scored[case], seeds)]
    rows += _differences(source, scored, seeds)
    specs = {case: spec_of(segment_translation.recipe(case)) for case in scored}
    out = results / f"translation_{source}.json"
    update(out, NAME, rows, data=data, spec=specs, packages=PACKAGES)
    by_length = _by_length(source, scored, seeds)
    path = out.with_stem(f"{out.stem}_by_length")
    update(path, NAME, by_length, data=data, packages=PACKAGES)
    learning = (
        mean_row(
            f"{number + 1}/{PARTS} of the updates: {case.partition('_')[2]}",
            [of_seed[number] for of_seed in one.learning],
            "BLEU",
            seeds,
        )
        for number in range(PARTS)
        for case, one in scored.items()
    )
    path = out.with_stem(f"{out.stem}_learning")
    update(path, NAME, learning, data=data, packages=PACKAGES)


def _task(folder: Path) -> Transduction:
    task = load_bundle(folder)
    assert isinstance(task, Transduction)
    return task


def _learning(folder: Path) -> list[float]:
    """Return the development BLEU at the last validation of each part of a run.

    A part that ends before the first validation gets the BLEU of the first validation.
    """
    found = [
        (line["step"], line["metrics"]["bleu"])
        for line in read_log(folder / "log.jsonl")
        if line["event"] == "evaluated"
    ]
    end = found[-1][0]
    parts = range(1, PARTS + 1)
    return [[found[0], *(one for one in found if one[0] <= end * n / PARTS)][-1][1] for n in parts]


def _rows(case: str, scored: Scored, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the figures of a case; in their names, the table row comes before the colon, the column after."""
    title = case.partition("_")[2]
    yield mean_row(f"{title}: BLEU", [one.value for one in scored.written.bleu], "BLEU", seeds)
    yield mean_row(f"{title}: right", [one.value for one in scored.written.exact], UNIT, seeds)
    yield mean_row(f"{title}: parameters", [scored.parameters], "", seeds)
    minutes = [cost.processor_minutes for cost in scored.costs]
    yield mean_row(f"{title}: processor minutes", minutes, "min", seeds)


def _differences(source: str, scored: Mapping[str, Scored], seeds: Sequence[int]) -> Iterator[Row]:
    for first, second in COMPARED:
        pair = [scored.get(f"{source}_{attention}") for attention in (first, second)]
        if pair[0] is not None and pair[1] is not None:
            yield from difference_rows(
                f"{second} - {first}",
                pair[0].written.bleu,
                pair[1].written.bleu,
                seeds,
                unit="BLEU",
            )


def _by_length(source: str, scored: Mapping[str, Scored], seeds: Sequence[int]) -> Iterator[Row]:
    own = {
        attention: scored[f"{source}_{attention}"].written
        for attention in segment_translation.ATTENTIONS
        if f"{source}_{attention}" in scored
    }
    lengths = [len(ja_en.SOURCES[source].encode(one.source)) for one in ja_en.part("test")]
    yield from length_rows(lengths, source, own, seeds)


def _traces(
    task: Transduction, examples: Sequence[Example], outputs: Sequence[str]
) -> list[AttentionTrace]:
    """Return the attention of the words of the model's translations."""
    own = [replace(one, target=output) for one, output in zip(examples, outputs, strict=True)]
    return forced_traces(task, own)


def _found(
    attention: str,
    tasks: Sequence[Transduction],
    traces: Sequence[Sequence[AttentionTrace]],
    examples: Sequence[Example],
    dev: Sequence[Example],
    seeds: Sequence[int],
) -> Iterator[Row]:
    """Yield the boundary scores of one kind of attention, by both rules."""
    gold, dev_gold = ([corpus_boundaries(one.text) for one in part] for part in (examples, dev))
    chosen, unlike = list[dict[str, float]](), list[dict[str, float]]()
    for task, own in zip(tasks, traces, strict=True):
        chosen.append(_figures(gold, [chosen_boundaries(trace) for trace in own]))
        outputs = [answer.output for answer in task.predict(dev)]
        dev_scores = [unlike_neighbors(trace) for trace in _traces(task, dev, outputs)]
        threshold = threshold_for(dev_scores, dev_gold)
        scores = [unlike_neighbors(trace) for trace in own]
        figures = _figures(gold, [each > threshold for each in scores])
        unlike.append(figures | {"ranked": ranked(gold, scores)})
    for rule, of_seeds in (("chosen", chosen), ("unlike", unlike)):
        for figure in of_seeds[0]:
            values = [each[figure] for each in of_seeds]
            yield mean_row(f"{attention}, {rule}: {figure}", values, UNIT, seeds)


def _figures(
    gold: Sequence[Bool[np.ndarray, " _"]], found: Sequence[Bool[np.ndarray, " _"]]
) -> dict[str, float]:
    scores = [each.astype(np.float64) for each in found]
    return boundary_scores(gold, found) | {"ranked": ranked(gold, scores)}


def _baselines(examples: Sequence[Example], dev: Sequence[Example]) -> Iterator[Row]:
    """Yield the scores of baselines without a model."""
    gold = [corpus_boundaries(one.text) for one in examples]
    share = float(np.concatenate([corpus_boundaries(one.text) for one in dev]).mean())
    for name, found in (
        ("script changes", [script_changes(one.text) for one in examples]),
        ("every place", [np.ones_like(each) for each in gold]),
        ("at random, as many", random_boundaries(gold, share)),
    ):
        for figure, value in _figures(gold, found).items():
            yield Row(name=f"{name}: {figure}", value=value, unit=UNIT)


def _shown(examples: Sequence[Example], traces: Sequence[AttentionTrace]) -> Iterator[Shown]:
    """Yield the attention of a translation and the words of the corpus below it.

    The sentences are the first ones of suitable length.
    """
    fitting = [
        (example, trace)
        for example, trace in zip(examples, traces, strict=True)
        if len(trace.sources) in LONG and 1 < len(trace.targets) <= LONG.stop
    ]
    for example, trace in fitting[:NUM_SHOWN]:
        said = (
            f"{example.source}: {' '.join(trace.targets).strip()}, where {example.target} is right"
        )
        yield Shown(said, trace)
        yield Shown(said, _corpus_words(example, trace.sources))


def _corpus_words(example: Example, characters: tuple[str, ...]) -> AttentionTrace:
    """Return a trace that links each word of the corpus to its characters."""
    ends = [*(np.flatnonzero(corpus_boundaries(example.text)) + 1).tolist(), len(characters)]
    starts = [0, *ends[:-1]]
    best = tuple(
        tuple(start <= place < end for place in range(len(characters)))
        for start, end in zip(starts, ends, strict=True)
    )
    return AttentionTrace(
        kind="words of the corpus",
        sources=characters,
        targets=tuple(example.text.split()),
        weights=tuple(tuple(map(float, row)) for row in best),
        best=best,
    )
