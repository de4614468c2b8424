"""Hypotheses that follow from a premise: perplexity, and the fraction that a classifier judges entailed.

    results/hypotheses.json           a row of the table for each case, and the error rates of the judge
    results/shown/hypotheses.json     the attention while some hypotheses are written

The judge is wrong about many pairs. The table therefore also has its accuracy on real pairs, the fraction of
real entailed hypotheses that it judges entailed, and the same for real hypotheses of another premise. A hypothesis such as
"a person is outside" follows from many premises: the table also has the fraction judged entailed by the next premise,
and the fraction of hypotheses that are different.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from foveal.bundles import load_bundle
from foveal.data import Example, TextPair
from foveal.tasks import PairClassification, Transduction
from recipes import hypotheses

from ..records._fitting import Cost, fitted_seeds, folder_of
from ..records._scoring import source_files
from ..results import Row, digests
from ._comparison import UNIT, mean_row, spec_of, update
from ._shown import Shown, save_shown

NAME = "hypotheses"
JUDGED = 1000  # different premises of the test file for which hypotheses are written
SHOWN = 3
_BATCH = 64


class Written(NamedTuple):
    """The hypotheses of one case and seed."""

    perplexity: float  # of the real hypotheses
    judged: float  # percentage that the judge calls entailed
    elsewhere: float  # the same, with the next premise instead of their own
    different: float  # percentage of hypotheses that are different


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update results/hypotheses.json with the cases that were fitted, each with its fitted seeds."""
    judge = load_bundle(folder_of(runs, NAME, hypotheses.JUDGE, 1))
    assert isinstance(judge, PairClassification)
    examples = list[Example](hypotheses.part("test"))
    rows, specs = [*_judge_rows(judge, examples)], {}
    for case in hypotheses.BRIDGES:
        folders = fitted_seeds(runs, NAME, case, seeds)
        if case not in cases or not folders:
            continue
        tasks = [_task(folder) for folder in folders.values()]
        found = [_written(task, judge, examples) for task in tasks]
        print(case, *found, flush=True)
        rows += _rows(case, found, tasks[0], tuple(folders.values()), tuple(folders))
        specs[case] = spec_of(hypotheses.recipe(case))
        if case == "attention":
            save_shown(results, NAME, case, [*_shown(tasks[0], judge, examples)])
    specs[hypotheses.JUDGE] = spec_of(hypotheses.recipe(hypotheses.JUDGE))
    parts = (hypotheses.part(name, all_labels=True) for name in ("train", "dev", "test"))
    files = [file for part in parts for file in source_files(part)]
    data = digests(files, hypotheses.FOLDER)
    update(results / f"{NAME}.json", NAME, rows, data=data, spec=specs)


def _task(folder: Path) -> Transduction:
    task = load_bundle(folder)
    assert isinstance(task, Transduction)
    return task


def _written(task: Transduction, judge: PairClassification, examples: Sequence[Example]) -> Written:
    premises = _premises(examples)
    outputs = [found.output for found in task.predict([Example(text) for text in premises])]
    return Written(
        perplexity=_perplexity(task, examples),
        judged=_judged(judge, premises, outputs),
        elsewhere=_judged(judge, [*premises[1:], premises[0]], outputs),
        different=100 * len(set(outputs)) / len(outputs),
    )


def _premises(examples: Sequence[Example]) -> list[str]:
    return list(dict.fromkeys(example.text for example in examples))[:JUDGED]


def _perplexity(task: Transduction, examples: Sequence[Example]) -> float:
    """Return the perplexity of the real hypotheses, with the end token."""
    total, count = 0.0, 0
    with task.answering(), torch.no_grad():
        for start in range(0, len(examples), _BATCH):
            batch = task.collate([task.encode(each) for each in examples[start : start + _BATCH]])
            forced = task.forced(batch)
            total += float(forced.log_prob.sum())
            count += forced.num_symbols
    return math.exp(-total / count)


def _judged(judge: PairClassification, premises: Sequence[str], written: Sequence[str]) -> float:
    """Return the percentage of hypotheses that the judge calls entailed."""
    pairs = [Example(TextPair(*pair)) for pair in zip(premises, written, strict=True)]
    answers = [found.output for found in judge.predict(pairs)]
    return 100 * answers.count(hypotheses.ENTAILED) / len(answers)


def _judge_rows(judge: PairClassification, examples: Sequence[Example]) -> Iterator[Row]:
    """Yield the accuracy of the judge, and its judgments of real hypotheses."""
    labeled = list(hypotheses.part("test", all_labels=True))
    accuracy = judge.evaluate(labeled).value
    yield Row(name="judge: accuracy on SNLI", value=accuracy, unit=UNIT, seeds=(1,))
    yield Row(name="judge: error rate on SNLI", value=100 - accuracy, unit=UNIT, seeds=(1,))
    premises = [example.text for example in examples]
    real = [example.target or "" for example in examples]
    others = [*real[1:], real[0]]
    not_entailed = [each for each in labeled if each.target != hypotheses.ENTAILED]
    pairs = [each.input_as(TextPair) for each in not_entailed]
    wrong = _judged(judge, [pair.first for pair in pairs], [pair.second for pair in pairs])
    for name, value in (
        ("real entailed hypotheses", _judged(judge, premises, real)),
        ("real hypotheses that are not entailed", wrong),
        ("real hypotheses of the next premise", _judged(judge, premises, others)),
    ):
        yield Row(name=f"{name}: judged entailed", value=value, unit=UNIT, seeds=(1,))


def _rows(
    case: str,
    found: Sequence[Written],
    task: Transduction,
    folders: Sequence[Path],
    seeds: Sequence[int],
) -> Iterator[Row]:
    """Yield the figures of a case; in their names, the table row comes before the colon, the column after."""
    yield mean_row(f"{case}: perplexity", [each.perplexity for each in found], "", seeds)
    yield mean_row(f"{case}: judged entailed", [each.judged for each in found], UNIT, seeds)
    elsewhere = [each.elsewhere for each in found]
    yield mean_row(f"{case}: judged entailed by the next premise", elsewhere, UNIT, seeds)
    yield mean_row(f"{case}: different", [each.different for each in found], UNIT, seeds)
    parameters = sum(weights.numel() for weights in task.model.parameters())
    yield mean_row(f"{case}: parameters", [parameters], "", seeds)
    minutes = [Cost.load(folder).processor_minutes for folder in folders]
    yield mean_row(f"{case}: processor minutes", minutes, "min", seeds)


def _shown(
    task: Transduction, judge: PairClassification, examples: Sequence[Example]
) -> Iterator[Shown]:
    """Yield the attention for the first premises of at most 12 words."""
    premises = [text for text in _premises(examples) if len(text.split()) <= 12][:SHOWN]
    settings = replace(task.prediction, trace=True)
    for premise, answer in zip(
        premises, task.predict([Example(text) for text in premises], settings), strict=True
    ):
        (judgment,) = judge.predict([Example(TextPair(premise, answer.output))])
        assert answer.trace is not None
        caption = f"{premise} / {answer.output}: judged {judgment.output}"
        yield Shown(caption, answer.trace)
