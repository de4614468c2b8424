"""Sequences longer than the training sequences: the fraction of right outputs by length.

    results/memory.json          figures
    results/shown/memory.json    weights of the heads

For each task and mechanism: the percentage of sequences whose output is right, mean over the seeds that were fitted,
with the lowest and the highest. Sequences have at most 20 letters in training, and 20, 40, 60 or 100 in the test.
`score` updates the rows of the cases that were fitted; the file keeps the rows of the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from foveal.attention import AttentionTrace
from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.inspection import explain
from foveal.models import Tagger
from foveal.networks import CellState, NTMCell, TextEncoder
from foveal.tasks import Tagging
from recipes import memory

from ..records._fitting import Cost, fitted_seeds
from ..results import Row
from ._comparison import UNIT, mean_row, spec_of, update
from ._shown import Shown, save_shown

NAME = "memory"
LENGTHS = (20, 40, 60, 100)
SIZE = 200  # test sequences of each length
AIMS = {("copy_shift", 100): 95.0}
DRAWN = 30  # letters of a sequence in a picture, more than in training


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update the figures of the cases that were fitted, each with its fitted seeds."""
    rows, specs = list[Row](), dict[str, object]()
    for case in cases:
        folders = fitted_seeds(runs, NAME, case, seeds)
        if not folders:
            continue
        name, fitted = case.replace("_", ", "), tuple(folders)
        for length in LENGTHS:
            examples = tests(case, length)
            values = [right(folder, examples) for folder in folders.values()]
            aim = AIMS.get((case, length))
            rows.append(mean_row(f"{name}: {length}", values, UNIT, fitted, aim))
            print(rows[-1].name, values, flush=True)
        minutes = [Cost.load(folder).processor_minutes for folder in folders.values()]
        rows.append(mean_row(f"{name}: CPU minutes", minutes, "min", fitted))
        specs[case] = spec_of(memory.recipe(case))
        shown = list(_shown(case, next(iter(folders.values()))))
        if shown:
            save_shown(results, NAME, case, shown)
    update(results / f"{NAME}.json", NAME, rows, spec=specs)


def tests(case: str, length: int) -> list[Example]:
    """Draw the test sequences of one length."""
    source = memory.recipe(case).test
    assert isinstance(source, memory.Sequences)
    return list(replace(source, shortest=length, longest=length, size=SIZE, seed=1000 + length))


def right(folder: Path, examples: Sequence[Example]) -> float:
    """Return the percentage of examples whose predicted output is the target."""
    answers = load_bundle(folder).predict(examples)
    pairs = zip(answers, examples, strict=True)
    return 100 * sum(answer.output == example.target for answer, example in pairs) / len(examples)


def _shown(case: str, folder: Path) -> Iterator[Shown]:
    """Yield the weights of the attention, or of the heads of a Neural Turing Machine, on one test sequence."""
    task, example = load_bundle(folder), tests(case, DRAWN)[0]
    if isinstance(task, Tagging):
        assert isinstance(task.model, Tagger)
        assert isinstance(task.model.encoder, TextEncoder)
        cell = task.model.encoder.stack.cells_in_order()[0]
        if isinstance(cell, NTMCell):
            tokens = torch.tensor(task.encode(example).source)
            with torch.no_grad():
                yield from _heads(cell, task.model.encoder.embedding(tokens), example)
        return
    explained = explain(task, Example(example.source))
    assert explained.trace is not None
    is_right = explained.output == example.target
    yield Shown(f"{case}: the output is {'right' if is_right else 'wrong'}", explained.trace)


def _heads(cell: NTMCell, inputs: Tensor, example: Example) -> Iterator[Shown]:
    """Yield the weights of the write head and of the read head over the rows, up to the last row in use."""
    assert isinstance(example.source, str)
    states = list[CellState]()
    for vector in inputs:
        states.append(cell(vector, states[-1] if states else cell.start([])))
    heads = [cell.heads(state) for state in states]
    most = DRAWN + 2
    for name, weights in (
        ("write head", [each.write[0, :most] for each in heads]),
        ("read head", [each.read[0, :most] for each in heads]),
    ):
        trace = AttentionTrace(
            kind=name,
            sources=tuple(map(str, range(most))),
            targets=tuple(example.source.split()),
            weights=tuple(tuple(row.tolist()) for row in weights),
        )
        yield Shown(f"{name}: rows of the memory from left to right, inputs downward", trace)
