"""Score each run once on the test set of its case, the seeds of a case as an ensemble, and list mistakes.

    results/<recipe>.json              scores and costs of every case, and their means
    results/mistakes/<recipe>.json     errors by slice, and the ten most instructive mistakes

The most instructive mistakes are the most confident ones.
"""

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import torch

from examples.support import DATA
from foveal.bundles import load_bundle
from foveal.data import Source
from foveal.data.streams._prepared import PreparedCorpus
from foveal.specs import to_json
from foveal.tasks import Evaluation, Transduction, TransductionEnsemble
from foveal.training import Run

from ..results import Results, Row, Sense, digests
from ._catalogue import MEAN, RECORDS, Record
from ._fitting import Cost, folder_of

METRICS = ("wer", "bleu")
MISTAKES = 10
CALIBRATING = 2000  # development examples: more do not improve the calibration
MOST_OF_A_CASE = 2  # mistakes per case if there are many cases: not all ten from one language


class Scored(NamedTuple):
    """The scores of one case."""

    metric: str
    singles: tuple[float, ...]  # by seed
    ensemble: float
    parameters: int
    costs: tuple[Cost, ...]
    speed: float  # examples per second, on one thread
    shown: Evaluation  # evaluation of the ensemble


def score(
    recipe: str, cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path
) -> None:
    """Write both files; they keep earlier cases that are not scored now."""
    torch.set_num_threads(1)
    record, out = RECORDS[recipe], results / f"{recipe}.json"
    found = Results.here(f"python -m benchmarks.records score {recipe}").continued_from(out)
    data = dict(Results.load(out).data) if out.exists() else {}
    told = results / "mistakes" / f"{recipe}.json"
    slices, earlier = dict[str, Any](), list[dict[str, Any]]()
    if told.exists():
        said = json.loads(told.read_text(encoding="utf-8"))
        slices = said["slices"]
        earlier = [each for each in said["mistakes"] if each["case"] not in cases]
    scored = dict[str, Scored]()
    for case in cases:
        run = record.run(case)
        folders = [folder_of(runs, recipe, case, seed) for seed in seeds]
        scored[case] = _scored(run, folders)
        rows = _rows(case, scored[case], seeds)
        for source in (run.train, run.dev, run.test):
            data |= digests(source_files(source), DATA)
        spec = json.loads(to_json(replace(run, training=replace(run.training, seed=seeds[0]))))
        found = replace(
            found.with_rows(rows), data=data, spec={k: spec[k] for k in ("task", "training")}
        )
        slices[case] = [
            {"name": part.name, "examples": part.num_examples, **part.metric._asdict()}
            for part in scored[case].shown.slices
        ]
        print(f"{case}: {mean(scored[case].singles):.2f}, together {scored[case].ensemble:.2f}")
    if record.is_averaged and len(cases) > 1 and set(cases) == set(record.cases):
        found = found.with_rows(_means(scored.values(), seeds))
    _with_references(found, record).save(out)
    told.parent.mkdir(parents=True, exist_ok=True)
    most = max(MOST_OF_A_CASE, MISTAKES // len(record.cases))
    text = {
        "made_by": found.made_by,
        "slices": slices,
        "mistakes": _surest(scored, earlier, most),
    }
    told.write_text(json.dumps(text, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_references(recipe: str, results: Path) -> None:
    """Update the targets and the published figures in results/<recipe>.json; measured figures do not change."""
    path = results / f"{recipe}.json"
    _with_references(Results.load(path), RECORDS[recipe]).save(path)


def _with_references(found: Results, record: Record) -> Results:
    """Return the results with the targets of the catalog, and its published figures after the measured rows."""
    measured = [row for row in found.rows if row.kind is None]
    cases = {row.name.partition(": ")[0] for row in measured}
    aims = {row.name: aim for row in measured if (aim := _aim(row, record)) is not None}
    others = [
        Row(
            name=f"{case}: {each.name}",
            value=value,
            unit=each.unit,
            kind=each.kind,
            source=each.source,
        )
        for each in record.references
        for case, value in each.figures.items()
        if case in cases
    ]
    return found.with_references(aims, others)


def _scored(run: Run, folders: Sequence[Path]) -> Scored:
    assert run.test is not None
    examples = list(run.test)
    tasks = [load_bundle(folder) for folder in folders]
    members = [task for task in tasks if isinstance(task, Transduction)]
    singles, seconds = list[float](), list[float]()
    for task in members:
        began = time.perf_counter()
        singles.append(task.evaluate(examples).value)
        seconds.append(time.perf_counter() - began)
    together = TransductionEnsemble(members)
    if run.dev is not None:
        held_out = list(run.dev)
        together.calibrate(held_out[:: max(1, len(held_out) // CALIBRATING)])
    shown = together.evaluate(examples, replace(members[0].prediction, trace=True))
    return Scored(
        metric=shown.main.name,
        singles=tuple(singles),
        ensemble=shown.value,
        parameters=sum(weights.numel() for weights in members[0].model.parameters()),
        costs=tuple(Cost.load(folder) for folder in folders),
        speed=len(examples) / min(seconds),
        shown=shown,
    )


def _rows(case: str, scored: Scored, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the figures of a case; in their names, the table row comes before the colon, the column after."""
    yield from _scores(case, scored.metric, scored.singles, scored.ensemble, seeds)
    yield _row(f"{case}: parameters", [scored.parameters], "", seeds)
    minutes = [cost.processor_minutes for cost in scored.costs]
    yield _row(f"{case}: processor minutes", minutes, "min", seeds)
    yield _row(f"{case}: examples/s", [scored.speed], "1/s", seeds)


def _means(scored: Collection[Scored], seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the means over all cases, for each seed and for the ensembles."""
    metric = next(iter(scored)).metric
    singles = [mean(one) for one in zip(*(each.singles for each in scored), strict=True)]
    ensemble = mean(each.ensemble for each in scored)
    yield from _scores(MEAN, metric, singles, ensemble, seeds)


def _scores(
    case: str,
    metric: str,
    singles: Sequence[float],
    ensemble: float,
    seeds: Sequence[int],
) -> Iterator[Row]:
    """Return the scores of the single models and of their ensemble."""
    unit, _ = _sense_of(metric)
    yield _row(f"{case}: {metric}", singles, unit, seeds)
    if len(seeds) > 1:
        yield _row(f"{case}: {metric} of {len(seeds)} together", [ensemble], unit, seeds)


def _aim(row: Row, record: Record) -> tuple[float, Sense] | None:
    """Return the aim of the score in a row, and which direction is better; None if there is no aim."""
    case, _, figure = row.name.partition(": ")
    metric, _, together = figure.partition(" of ")
    if metric not in METRICS:
        return None
    aim = record.aim(case, int(together.split()[0]) if together else 1)
    return None if aim is None else (aim, _sense_of(metric)[1])


def _sense_of(metric: str) -> tuple[str, Sense]:
    """Return the unit of a metric, and which direction is better."""
    return ("BLEU", ">=") if metric == "bleu" else ("%", "<=")


def _row(name: str, values: Sequence[float], unit: str, seeds: Sequence[int]) -> Row:
    spread = (min(values), max(values)) if len(values) > 1 else None
    return Row(name=name, value=mean(values), unit=unit, spread=spread, seeds=tuple(seeds))


def _surest(
    scored: Mapping[str, Scored], earlier: Sequence[dict[str, Any]], most: int
) -> list[dict[str, Any]]:
    """Return the most confident wrong answers, with a maximum per case.

    `earlier` has the wrong answers of cases that are not scored now.
    """
    wrong = list(earlier)
    for case, each in scored.items():
        wrong += sorted(_mistakes(case, each.shown), key=_sureness)[:most]
    return sorted(wrong, key=_sureness)[:MISTAKES]


def _sureness(mistake: Mapping[str, Any]) -> float:
    return -mistake["confidence"]


def _mistakes(case: str, shown: Evaluation) -> Iterator[dict[str, Any]]:
    for example, reference, answer in zip(
        shown.examples, shown.references, shown.predictions, strict=True
    ):
        if answer.output != reference:
            yield {
                "case": case,
                "source": example.source,
                "expected": reference,
                "output": answer.output,
                "confidence": answer.confidence,
                "attention": answer.trace and json.loads(answer.trace.to_json()),
            }


def source_files(source: Source | PreparedCorpus | None) -> Iterator[Path]:
    for shard in source.shards() if source is not None else ():
        yield from map(Path, shard.files)
