"""Dialog models that read the last utterance, all turns, or turns of words, with and without attention.

    results/dialog.json
    results/shown/dialog.json     the attention of one response about a film

`film` and `sgd`: perplexity of a token of the response, BLEU and distinct-1 and distinct-2 of the answers of greedy
search, mean over seeds with the lowest and the highest, on all test responses. `facts`: percent of right answers, for
all questions and for each distance of the fact. All have the CPU minutes of training.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.metrics import bleu, distinct_n, perplexity
from foveal.tasks import PredictionSpec, Transduction
from recipes import dialog

from ..records._fitting import Cost, fitted_seeds
from ..records._scoring import source_files
from ..results import Row, digests
from ._comparison import mean_row, spec_of, update
from ._shown import Shown, save_shown

NAME = "dialog"
LABELS = {
    "last": "last utterance",
    "flat": "flat",
    "flat_attention": "flat with attention",
    "levels": "two levels",
    "levels_attention": "two levels with attention",
}
_AT_ONCE = 64
_SHOWN = "levels_attention"


class Scored(NamedTuple):
    """The figures of one fitted model, by name, in the order of the table."""

    figures: dict[str, tuple[float, str]]


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update results/dialog.json with the cases that were fitted, each with its fitted seeds."""
    rows, specs, files = list[Row](), dict[str, object](), list[Path]()
    for case in cases:
        folders = fitted_seeds(runs, NAME, case, seeds)
        if not folders:
            continue
        run = dialog.recipe(case)
        assert run.test is not None
        examples = list[Example](run.test)
        scored = [_scored(case, examples, folder) for folder in folders.values()]
        rows += _rows(case, scored, tuple(folders))
        specs[case] = spec_of(run)
        files += [file for part in (run.train, run.dev, run.test) for file in source_files(part)]
        print(case, list(folders), scored[0].figures, flush=True)
        if case == f"film_{_SHOWN}":
            save_shown(results, NAME, case, _example(next(iter(folders.values())), examples))
    data = digests(sorted(set(files)), dialog.ROOT)
    update(results / f"{NAME}.json", NAME, rows, data=data, spec=specs)


def _scored(case: str, examples: Sequence[Example], folder: Path) -> Scored:
    task = load_bundle(folder)
    assert isinstance(task, Transduction)
    outputs = [answer.output for answer in task.predict(examples)]
    references = [task.reference(example) for example in examples]
    if case.startswith("facts"):
        figures = dict(_by_distance(references, outputs))
    else:
        figures = {
            "perplexity": (perplexity(*_log_probs(task, examples)).value, ""),
            "BLEU": (bleu(references, outputs, tokenize="none").value, "BLEU"),
            "distinct-1": (distinct_n(outputs, 1), "%"),
            "distinct-2": (distinct_n(outputs, 2), "%"),
        }
    parameters = sum(weights.numel() for weights in task.model.parameters())
    minutes = Cost.load(folder).processor_minutes
    return Scored(figures | {"parameters": (parameters, ""), "CPU minutes": (minutes, "min")})


def _by_distance(
    references: Sequence[str], outputs: Sequence[str]
) -> Iterator[tuple[str, tuple[float, str]]]:
    """Yield the percentage of right answers, for all questions and by distance."""
    lines = (dialog.FOLDER / "facts_test.jsonl").read_text(encoding="utf-8").splitlines()
    distances = [json.loads(line)["distance"] for line in lines]
    rights = [said == right for said, right in zip(outputs, references, strict=True)]
    yield "right", (100 * sum(rights) / len(rights), "%")
    for distance in sorted(set(distances)):
        some = [right for right, k in zip(rights, distances, strict=True) if k == distance]
        yield f"k = {distance}", (100 * sum(some) / len(some), "%")


@torch.no_grad()
def _log_probs(task: Transduction, examples: Sequence[Example]) -> tuple[list[float], list[int]]:
    """Return the log-probability of each response, and its number of tokens including the end token."""
    found, numbers = list[float](), list[int]()
    with task.answering():
        for start in range(0, len(examples), _AT_ONCE):
            batch = task.collate([task.encode(one) for one in examples[start : start + _AT_ONCE]])
            found += task.forced(batch).log_prob.tolist()
            numbers += batch.mask.sum(1).tolist()
    return found, numbers


def _rows(case: str, scored: Sequence[Scored], seeds: Sequence[int]) -> Iterator[Row]:
    corpus, _, system = case.partition("_")
    for name, (_, unit) in scored[0].figures.items():
        values = [each.figures[name][0] for each in scored]
        yield mean_row(f"{corpus}, {LABELS[system]}: {name}", values, unit, seeds)


def _example(folder: Path, examples: Sequence[Example]) -> list[Shown]:
    """Return the attention of one response: its mean over all steps, and the steps of words from earlier turns.

    The rule takes responses to four to six turns about films that repeat at least two words of a turn before the last
    one. The example is the one whose output shares the largest fraction of words with its reference.
    """
    task = load_bundle(folder)
    assert isinstance(task, Transduction)
    some = [example for example in examples if _is_shown(example)]
    found = task.predict(some, PredictionSpec(beam_size=1, trace=True))
    best = max(range(len(some)), key=lambda n: _overlap(some[n], found[n].output))
    trace, said = found[best].trace, found[best].output
    assert trace is not None
    weights = np.array(trace.weights)
    whole = replace(trace, targets=(said,), weights=(tuple(weights.mean(0).tolist()),))
    steps = [n for n, word in enumerate(trace.targets) if word in _repeated(some[best], said)][:4]
    words = replace(
        trace,
        targets=tuple(trace.targets[n] for n in steps),
        weights=tuple(trace.weights[n] for n in steps),
    )
    caption = f"The model answers: {said} (reference: {some[best].target})"
    return [Shown(caption, whole), *([Shown(caption, words)] if steps else [])]


def _is_shown(example: Example) -> bool:
    turns = str(example.source)
    is_film = any(word in turns for word in ("movie", "film"))
    return (
        4 <= turns.count("\n") + 1 <= 6
        and is_film
        and len(_repeated(example, example.target or "")) >= 2
    )


def _repeated(example: Example, answer: str) -> set[str]:
    """Return the longer words of an answer that occur in a turn, but not in the last one."""
    *before, last = str(example.source).split("\n")
    said = {word for turn in before for word in turn.split()} - set(last.split())
    return {word for word in answer.split() if len(word) > 3} & said


def _overlap(example: Example, output: str) -> float:
    right, said = set((example.target or "").split()), set(output.split())
    return len(right & said) / max(1, len(right | said))
