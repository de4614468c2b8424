"""Context of language models: the answer by its distance on generated lines, and the perplexity of plays.

    results/context.json    for each network: the fraction of right answers by distance, or the perplexity

Each generated test line is read from the initial state. Its distance is the number of characters from the key to `=`,
which is the last character before the answer. Every case has the seeds that were fitted.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from foveal.bundles import load_bundle
from foveal.data import END, Example
from foveal.tasks import LanguageModeling
from recipes import context

from ..records._fitting import Cost, fitted_seeds
from ..results import Row, digests
from ._comparison import mean_row, spec_of, update

NAME = "context"


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update results/context.json with the cases that were fitted, each with its fitted seeds."""
    rows, specs = list[Row](), dict[str, object]()
    for case in context.CASES:
        folders = fitted_seeds(runs, NAME, case, seeds)
        if case not in cases or not folders:
            continue
        run = context.recipe(case)
        assert run.test is not None
        rows += _rows(case, list[Example](run.test), tuple(folders.values()), tuple(folders))
        specs[case] = spec_of(run)
        print(
            case,
            [f"{row.name}: {row.value:.3g}" for row in rows if row.name.startswith(_title(case))],
        )
    data = digests([context.PLAYS], context.DATA)
    update(results / f"{NAME}.json", NAME, rows, data=data, spec=specs)


def _rows(
    case: str, examples: Sequence[Example], folders: Sequence[Path], seeds: Sequence[int]
) -> Iterator[Row]:
    """Yield the figures of a network; the table has the text before the colon in its rows."""
    name, tasks = _title(case), [_loaded(folder) for folder in folders]
    if case.startswith("distance"):
        right = [_right_by_distance(task, examples) for task in tasks]
        for distance in context.DISTANCES:
            values = [found[distance] for found in right]
            yield mean_row(f"{name}: distance {distance}", values, "%", seeds)
    else:
        values = [task.evaluate(examples).statistics["perplexity"].value for task in tasks]
        yield mean_row(f"{name}: perplexity", values, "", seeds)
    size = sum(weights.numel() for weights in tasks[0].model.parameters())
    yield Row(name=f"{name}: parameters", value=size, unit="", seeds=tuple(seeds))
    minutes = [Cost.load(folder).processor_minutes for folder in folders]
    yield mean_row(f"{name}: processor minutes", minutes, "min", seeds)


def _loaded(folder: Path) -> LanguageModeling:
    task = load_bundle(folder)
    assert isinstance(task, LanguageModeling)
    return task


def _right_by_distance(task: LanguageModeling, examples: Sequence[Example]) -> dict[int, float]:
    """Return the percentage of right answers for each distance."""
    by_length = dict[int, list[list[int]]]()
    for example in examples:
        numbers = [END, *task.encode(example).source[:-1]]
        by_length.setdefault(len(numbers), []).append(numbers)
    found = dict[int, float]()
    with task.answering():
        for length, lines in by_length.items():
            tokens = torch.tensor(lines)
            guesses = task.model(tokens[:, :-1]).log_probs[:, -1].argmax(-1)
            # END, the key, letters, the mark and the answer
            found[length - 3] = 100 * (guesses == tokens[:, -1]).float().mean().item()
    return found


def _title(case: str) -> str:
    text, _, name = case.partition("_")
    return f"{text}, {name.replace('_', ' of ')}"
