"""bAbI: answers and supporting facts of memory networks and of chains, restarts chosen on validation.

    results/babi.json    a row of the table for each task

As in the paper, training is restarted many times, here also with several settings. Answers come from the model
that is best on the validation questions. The score of the supporting facts is the mean over the better half of
the models. Ties go to the first model.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.specs import to_json
from foveal.tasks import PredictionSpec, supporting_facts
from recipes import babi

from ..records._fitting import Cost, folder_of
from ..results import Results, Row, Sense, digest

NAME = "babi"
UNIT = "%"
# Kim et al. 2017, table 3, means over the same tasks. Its chain is what we reproduce, so its figures are targets for ours.
# The memory network is the baseline of both: better figures of ours would not be a success, and worse ones only make the
# comparison with the chain too easy, so its figures are references.
PAPER = "Kim et al. 2017"
PUBLISHED = {
    "soft answers": 81.4,
    "soft facts": 39.6,
    "chain answers": 81.0,
    "chain facts": 53.7,
}
SOURCE = (
    "Kim et al. 2017, table 3, 1,000 questions for each task: the best of twenty restarts on validation questions, "
    "and the mean of the better ten for facts; here there are fewer"
)


class Restart(NamedTuple):
    """The scores of one model."""

    seed: int
    valid: float  # accuracy of the answers, in per cent
    answers: float  # accuracy on the test questions
    facts: float  # percentage of test questions for which the model selects exactly the supporting facts
    minutes: float


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write the whole file."""
    found = dict[str, list[Restart]]()  # by steps and task, the best on validation first
    for case in cases:
        restarts = [_restart(case, seed, folder_of(runs, NAME, case, seed)) for seed in seeds]
        found.setdefault(case.rsplit("_", 2)[0], []).extend(restarts)
    for compared, restarts in found.items():
        restarts.sort(key=lambda one: -one.valid)
        print(f"{compared}: {_answers(restarts):.1f}, facts {_facts(restarts):.1f}")
    tasks = dict.fromkeys(compared.partition("_")[2] for compared in found)
    rows = [row for task in tasks for row in _rows(f"task {task}", task, found, seeds)]
    made = Results.here(f"python -m benchmarks.lectures score {NAME}")
    replace(
        made.with_rows([*rows, *_means(found, seeds)]),
        data={f"babi_v1-2/{babi.ARCHIVE.name}": digest(babi.ARCHIVE)},
        spec={case: _spec(case) for case in cases},
    ).save(results / f"{NAME}.json")


def write_references(results: Path) -> None:
    """Set the targets of the chain, and add the figures of the paper."""
    path = results / f"{NAME}.json"
    aims: dict[str, tuple[float, Sense]] = {
        f"mean: {name}": (value, ">=")
        for name, value in PUBLISHED.items()
        if name.startswith("chain")
    }
    published = [
        Row(name=f"{PAPER}: {name}", value=value, unit=UNIT, kind="paper", source=SOURCE)
        for name, value in PUBLISHED.items()
    ]
    Results.load(path).with_references(aims, published).save(path)


def _restart(case: str, seed: int, folder: Path) -> Restart:
    task, number = load_bundle(folder), case.split("_")[1]
    valid, test = (list[Example](babi.part(number, name)) for name in ("valid", "test"))
    evaluation = task.evaluate(test, PredictionSpec(trace=True))
    return Restart(
        seed=seed,
        valid=task.evaluate(valid).value,
        answers=evaluation.value,
        facts=supporting_facts(test, evaluation.predictions).value,
        minutes=Cost.load(folder).processor_minutes,
    )


def _answers(restarts: Sequence[Restart]) -> float:
    """Return the accuracy of the best model on validation, which is the first."""
    return restarts[0].answers


def _facts(restarts: Sequence[Restart]) -> float:
    """Return the mean over the better half of the models."""
    return mean(one.facts for one in restarts[: max(1, len(restarts) // 2)])


def _rows(
    name: str, task: str, found: Mapping[str, Sequence[Restart]], seeds: Sequence[int]
) -> Iterator[Row]:
    """Yield the figures of a task; in their names, the table row comes before the colon, the column after."""
    for steps in babi.STEPS:
        restarts = found[f"{steps}_{task}"]
        figures = {"answers": (_answers(restarts), [one.answers for one in restarts])}
        if int(task) not in babi.VARYING:
            figures["facts"] = (_facts(restarts), [one.facts for one in restarts])
        for kind, (value, each) in figures.items():
            yield Row(
                name=f"{name}: {steps} {kind}",
                value=value,
                unit=UNIT,
                spread=(min(each), max(each)) if len(each) > 1 else None,
                seeds=tuple(seeds),
            )


def _means(found: Mapping[str, Sequence[Restart]], seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the means over all tasks, and the cost of a run."""
    for steps in babi.STEPS:
        own = [restarts for case, restarts in found.items() if case.startswith(steps)]
        with_facts = [
            restarts
            for case, restarts in found.items()
            if case.startswith(steps) and int(case.partition("_")[2]) not in babi.VARYING
        ]
        for kind, value in (
            ("answers", mean(map(_answers, own))),
            ("facts", mean(map(_facts, with_facts))),
        ):
            yield Row(name=f"mean: {steps} {kind}", value=value, unit=UNIT, seeds=tuple(seeds))
        minutes = [one.minutes for restarts in own for one in restarts]
        yield Row(
            name=f"mean: {steps} processor minutes",
            value=mean(minutes),
            unit="min",
            spread=(min(minutes), max(minutes)),
            seeds=tuple(seeds),
        )


def _spec(case: str) -> dict[str, Any]:
    content = json.loads(to_json(babi.recipe(case)))
    return {name: content[name] for name in ("task", "training")}
