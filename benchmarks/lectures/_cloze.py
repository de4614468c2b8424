"""Cloze reading: the accuracy of the attentive reader, and of the same network without attention.

    results/cloze.json           a row of the table for each case, two baselines, and the difference of the cases
    results/shown/cloze.json     the attention over some documents

*On the answer* is the percentage of test documents in which the word with the largest weight is the right entity.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from foveal.bundles import load_bundle
from foveal.data import Example, TextPair
from foveal.metrics import Statistics
from foveal.tasks import PairClassification
from recipes import cloze

from ..records._fitting import Cost, fitted
from ..results import Row, digests
from ._comparison import UNIT, difference_rows, mean_row, spec_of, update
from ._shown import Shown, save_shown

NAME = "cloze"
SHOWN = 2


class Scored(NamedTuple):
    """The scores of one case, in the order of the seeds."""

    accuracies: Sequence[Statistics]
    on_answer: Sequence[float]  # empty without attention


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update results/cloze.json with the cases that were fitted with all seeds."""
    examples = list[Example](cloze.part("test"))
    rows, specs, scored = [*_baselines(examples)], {}, dict[str, Scored]()
    for case in cases:
        folders = fitted(runs, NAME, case, seeds)
        if not folders:
            continue
        tasks = [_task(folder) for folder in folders]
        scored[case] = _scored(tasks, examples)
        rows += _rows(case, scored[case], tasks[0], folders, seeds)
        specs[case] = spec_of(cloze.recipe(case))
        print(case, [round(each.value, 2) for each in scored[case].accuracies], flush=True)
        if case == "attention":
            save_shown(results, NAME, case, [*_shown(tasks[0], examples)])
    if len(scored) == len(cloze.CASES):
        pair = scored["none"].accuracies, scored["attention"].accuracies
        rows += difference_rows("attention - none", *pair, seeds)
    files = [cloze.FOLDER / f"{name}.tsv" for name in cloze.SIZES]
    data = digests(files, cloze.FOLDER)
    update(results / f"{NAME}.json", NAME, rows, data=data, spec=specs)


def _task(folder: Path) -> PairClassification:
    task = load_bundle(folder)
    assert isinstance(task, PairClassification)
    return task


def _scored(tasks: Sequence[PairClassification], examples: Sequence[Example]) -> Scored:
    accuracies = [task.evaluate(examples).statistics["accuracy"] for task in tasks]
    found = [_on_answer(task, examples) for task in tasks]
    return Scored(accuracies, [each for each in found if each is not None])


def _on_answer(task: PairClassification, examples: Sequence[Example]) -> float | None:
    """Return the percentage of documents whose most attended word is the answer; None without attention."""
    if task.spec.model.attention_kind is None:
        return None
    settings, count = replace(task.prediction, trace=True), 0
    for example, answer in zip(examples, task.predict(examples, settings), strict=True):
        assert answer.trace is not None
        (weights,) = answer.trace.weights
        word = answer.trace.sources[weights.index(max(weights))]
        count += word == example.target
    return 100 * count / len(examples)


def _rows(
    case: str,
    scored: Scored,
    task: PairClassification,
    folders: Sequence[Path],
    seeds: Sequence[int],
) -> Iterator[Row]:
    """Yield the figures of a case; in their names, the table row comes before the colon, the column after."""
    yield mean_row(f"{case}: accuracy", [each.value for each in scored.accuracies], UNIT, seeds)
    if scored.on_answer:
        yield mean_row(f"{case}: on the answer", scored.on_answer, UNIT, seeds)
    parameters = sum(weights.numel() for weights in task.model.parameters())
    yield mean_row(f"{case}: parameters", [parameters], "", seeds)
    minutes = [Cost.load(folder).processor_minutes for folder in folders]
    yield mean_row(f"{case}: processor minutes", minutes, "min", seeds)


def _baselines(examples: Sequence[Example]) -> Iterator[Row]:
    """Yield the accuracy of two rules that read only a part of the question or of the document."""
    first = sum(_entities(each)[0] == each.target for each in examples)
    yield Row(
        name="the first entity: accuracy", value=100 * first / len(examples), unit=UNIT, seeds=()
    )
    same = sum(_with_object(each)[0] == each.target for each in examples)
    yield Row(
        name="the first entity with the object: accuracy",
        value=100 * same / len(examples),
        unit=UNIT,
        seeds=(),
    )


def _entities(example: Example) -> list[str]:
    return [word for word in example.input_as(TextPair).first.split() if word.startswith("@")]


def _with_object(example: Example) -> list[str]:
    """Return the entities of the events with the object of the question."""
    pair = example.input_as(TextPair)
    thing = pair.second.split()[-3:]
    events = [event.split() for event in pair.first.split(" .")]
    return [event[0] for event in events if event[-3:] == thing]


def _shown(task: PairClassification, examples: Sequence[Example]) -> Iterator[Shown]:
    """Yield the attention over the first test documents."""
    settings = replace(task.prediction, trace=True)
    chosen = examples[:SHOWN]
    for example, answer in zip(chosen, task.predict(chosen, settings), strict=True):
        assert answer.trace is not None
        question = example.input_as(TextPair).second
        caption = f"{question}: {answer.output}, where {example.target} is right"
        yield Shown(caption, answer.trace)
