"""Learning to execute: correct outputs by length and nesting, for curricula and models.

    results/execute.json
    results/predictions/execute.json     the outputs of some programs of the last stage, with the kinds of their errors

For each case: the percentage of test programs with a correct output, for each length and nesting and for each operation of the
last stage; and the percentage of each kind of error among the errors on the last stage. Values are means over seeds with
the lowest and the highest.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from examples.support.programs import unscrambled
from foveal.bundles import load_bundle
from foveal.tasks import Transduction
from recipes import execute

from ..records._fitting import Cost, fitted_seeds
from ..results import Row
from ._comparison import UNIT, mean_row, spec_of, update

NAME = "execute"
NUM_TESTED = 300  # programs of each length and nesting
NUM_SHOWN = 12  # programs on the page: the first ones of the last stage
LABELS = {
    "none": "LSTM",
    "attention": "LSTM with attention",
    "transformer": "Transformer",
    "scrambled": "scrambled, LSTM with attention",
}
# The first sign in a program decides its group.
OPERATIONS = {"*": "products", "for": "loops", "if": "conditions", "": "sums and copies"}
ERRORS = (
    "not a number",
    "sign",
    "number of digits",
    "one digit",
    "digits in the middle",
    "last digits",
    "first digit",
)


class Answer(NamedTuple):
    """A test program, its output, and the output of a model."""

    program: str
    expected: str
    output: str

    @property
    def is_correct(self) -> bool:
        """Whether the whole output is correct."""
        return self.output == self.expected

    @property
    def operation(self) -> str:
        """The most difficult operation of the program."""
        return next(name for sign, name in OPERATIONS.items() if sign in self.program)


class Scored(NamedTuple):
    """The answers of one model, by stage."""

    stages: Sequence[Sequence[Answer]]
    minutes: float


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update both files with the cases that were fitted, each with its fitted seeds."""
    rows, specs, shown = list[Row](), dict[str, object](), dict[str, Sequence[Answer]]()
    for case in cases:
        folders = fitted_seeds(runs, NAME, case, seeds)
        if not folders:
            continue
        scored = [_scored(case, folder) for folder in folders.values()]
        rows += _rows(name_of(case), scored, tuple(folders))
        specs[case] = spec_of(execute.recipe(case))
        shown[case] = scored[0].stages[-1][:NUM_SHOWN]
        print(case, [round(_correct(each.stages[-1]), 1) for each in scored], flush=True)
    update(results / f"{NAME}.json", NAME, rows, spec=specs)
    _save_predictions(shown, results / f"predictions/{NAME}.json")


def name_of(case: str) -> str:
    """Return the name of a case in the table."""
    model, _, strategy = case.rpartition("_")
    return f"{LABELS[model]}, {strategy}"


def _scored(case: str, folder: Path) -> Scored:
    task = load_bundle(folder)
    assert isinstance(task, Transduction)
    is_scrambled = case.startswith("scrambled")
    stages = list[list[Answer]]()
    for stage in execute.programs("test", NUM_TESTED, is_scrambled=is_scrambled):
        examples = list(stage)
        texts = [
            (example.text, example.target or "", answer.output)
            for example, answer in zip(examples, task.predict(examples), strict=True)
        ]
        stages.append(
            [Answer(*map(unscrambled, each)) if is_scrambled else Answer(*each) for each in texts]
        )
    return Scored(stages, Cost.load(folder).processor_minutes)


def kind_of_error(expected: str, output: str) -> str:
    """Return how a wrong output differs from the expected one: the first kind of `ERRORS` that applies.

    "Digits in the middle" means that the first and the last digit are correct, "last digits" that the first is correct, and
    "first digit" that it is wrong.
    """
    digits, found = expected.strip("-."), output.strip("-.")
    if not found.isdecimal() or output not in {f"{found}.", f"-{found}."}:
        return "not a number"
    if output.startswith("-") != expected.startswith("-"):
        return "sign"
    if len(found) != len(digits):
        return "number of digits"
    wrong = [a != b for a, b in zip(digits, found, strict=True)]
    if sum(wrong) == 1:
        return "one digit"
    if wrong[0]:
        return "first digit"
    return "last digits" if wrong[-1] else "digits in the middle"


def _correct(answers: Sequence[Answer]) -> float:
    """Return the percentage of correct outputs."""
    return 100 * mean(answer.is_correct for answer in answers)


def _rows(name: str, scored: Sequence[Scored], seeds: Sequence[int]) -> Iterator[Row]:
    for number, (length, nesting) in enumerate(execute.STAGES):
        values = [_correct(each.stages[number]) for each in scored]
        yield mean_row(f"{name}: length {length}, nesting {nesting}", values, UNIT, seeds)
    yield mean_row(f"{name}: CPU minutes", [each.minutes for each in scored], "min", seeds)
    for operation in OPERATIONS.values():
        of_seeds = [
            [answer for answer in each.stages[-1] if answer.operation == operation]
            for each in scored
        ]
        values = [_correct(answers) for answers in of_seeds]
        yield mean_row(f"operations, {name}: {operation}", values, UNIT, seeds)
    errors = [_errors(each.stages[-1]) for each in scored]
    for kind in ERRORS:
        values = [100 * each[kind] / max(1, each.total()) for each in errors]
        yield mean_row(f"errors, {name}: {kind}", values, UNIT, seeds)


def _errors(answers: Sequence[Answer]) -> Counter[str]:
    """Count the errors of each kind."""
    return Counter(
        kind_of_error(answer.expected, answer.output) for answer in answers if not answer.is_correct
    )


def _save_predictions(shown: Mapping[str, Sequence[Answer]], path: Path) -> None:
    """Write the outputs of all cases for the same programs; the file keeps the outputs of its other cases."""
    if not shown:
        return
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    kept = {(each["program"], each["expected"]): each["outputs"] for each in earlier}
    programs = list[dict[str, object]]()
    for answers in zip(*shown.values(), strict=True):
        first = answers[0]
        outputs = dict(kept.get((first.program, first.expected), {})) | {
            name_of(case): {
                "output": answer.output,
                "error": None
                if answer.is_correct
                else kind_of_error(answer.expected, answer.output),
            }
            for case, answer in zip(shown, answers, strict=True)
        }
        programs.append({"program": first.program, "expected": first.expected, "outputs": outputs})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(programs, indent=1) + "\n", encoding="utf-8")
