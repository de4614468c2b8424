"""Dependency parsing: attachment scores on UD treebanks, and how fast trees are found.

    python -m benchmarks.parsing fit --runs runs [--seeds 1 2 3]    train the missing runs
    python -m benchmarks.parsing score --runs runs                  the finished runs, to results/parsing.json
    python -m benchmarks.parsing speed --runs runs                  trees of EWT test, against supar, to parsing_speed.json

`fit` trains `recipes/parsing.py` and takes about 40 minutes for each seed of EWT on one core. `score` reads the test
scores of the runs: gold words, all words counted, labels with their subtypes. `speed` scores the arcs of the test
sentences once with the first EWT run, and times only the search for trees from these scores:

    foveal       `SpanningTree(arcs, mask=mask).argmax()`: the best tree with a single root, found by the C++
                 kernels of foveal-native, or in PyTorch operations without them
    supar tree   `MatrixTree(arcs, lengths).argmax`: the same tree
    supar        `BiaffineDependencyModel.decode(tree=True)`: the best head of each word and, for sentences where
                 these heads are not a tree, `MatrixTree`; supar's biaffine parser does the same
    supar check  the first half of `supar`: the best heads and the test whether they are a tree, an upper bound on
                 the speed of supar for any scores

The model that gives the scores was trained with the likelihood of whole trees, which does not determine a constant
on all arcs from the root. Its best heads are a tree less often than in a model trained word by word, like supar's.

Candidates run in one process with one thread, interleaved; see `benchmarks.timing`.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.distributions import SpanningTree
from foveal.tasks import Parsing
from recipes.parsing import DATA, TREEBANKS, file, part

from .native import without_kernels
from .results import Results, Row, digests
from .supar import load_supar
from .timing import Plan, Timing, compare, use_one_thread

SCORES, SPEEDS = Path("results/parsing.json"), Path("results/parsing_speed.json")
MADE_BY = "python -m benchmarks.parsing fit, then score and speed, --runs runs"
NAMES = {"ewt": "UD English EWT", "sequoia": "UD French Sequoia"}
TARGETS = {("ewt", "uas"): 87.5, ("ewt", "las"): 84.5}
BATCH_WORDS = 5000
NEVER = -1e32  # supar's score of an impossible arc


class Scored(NamedTuple):
    """The arc scores of a batch of sentences."""

    arcs: Tensor  # (B, n+1, n+1), [head, word]
    mask: Tensor  # (B, n)
    word_first: Tensor  # (B, n+1, n+1), [word, head]: supar's layout, padding is never a head


def fit(runs: Path, seeds: Sequence[int]) -> None:
    """Train every treebank with every seed; resume interrupted runs."""
    for name in TREEBANKS:
        for seed in seeds:
            run = runs / f"{name}_{seed}"
            words = ["--recipe", f"recipes/parsing.py:{name}", "--out", str(run)]
            words += ["--set", f"training.seed={seed}", "--set", "training.threads=1"]
            subprocess.run(
                [sys.executable, "-m", "foveal.cli", "fit", *words],
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                check=True,
            )


def scores(runs: Path, known: Sequence[Row]) -> list[Row]:
    """Return the attachment scores of each finished run, and their means over seeds.

    Args:
        runs: the folder of the runs.
        known: earlier rows; the scores of seeds whose runs are no longer there still count in the means.
    """
    rows = []
    for name in TREEBANKS:
        found = {
            int(path.parent.name.rpartition("_")[2]): json.loads(path.read_text("utf-8"))
            for path in sorted(runs.glob(f"{name}_*/metrics.json"))
        }
        for split in ("test", "dev"):
            for metric in ("uas", "las"):
                label = f"{NAMES[name]}, {metric.upper()} on the {split} file"
                values = {
                    row.seeds[0]: row.value
                    for row in known
                    if row.name.startswith(f"{label}, seed ")
                }
                values |= {seed: one[split][metric]["value"] for seed, one in found.items()}
                if values:
                    target = TARGETS.get((name, metric)) if split == "test" else None
                    rows += _rows(label, dict(sorted(values.items())), target)
    return rows


def _rows(label: str, values: Mapping[int, float], target: float | None) -> list[Row]:
    """Return the mean over seeds, and the score of each seed."""
    total = Row(
        name=label,
        value=mean(values.values()),
        unit="%",
        spread=(min(values.values()), max(values.values())) if len(values) > 1 else None,
        seeds=tuple(values),
        target=target,
        sense=None if target is None else ">=",
    )
    return [
        total,
        *(
            Row(name=f"{label}, seed {seed}", value=value, unit="%", seeds=(seed,))
            for seed, value in values.items()
        ),
    ]


def speed(run: Path) -> list[Row]:
    """Measure the sentences per second of each method on the same scores."""
    task = load_bundle(run)
    assert isinstance(task, Parsing)
    batches = list(_scored(task, list(part("ewt", "test"))))
    num_sentences = sum(len(batch.mask) for batch in batches)
    structs = load_supar()
    ways: dict[str, Callable[[Scored], Tensor]] = {
        "foveal": lambda batch: SpanningTree(batch.arcs, mask=batch.mask).argmax(),
        "supar tree": lambda batch: _supar_tree(structs, batch),
        "supar": lambda batch: _supar_decode(structs, batch),
    }
    _check_same(ways, batches)
    calls: dict[str, Callable[[], object]] = {
        name: lambda way=way: [way(batch) for batch in batches] for name, way in ways.items()
    }
    calls["supar check"] = lambda: [_bad(batch) for batch in batches]
    calls["foveal without foveal-native"] = without_kernels(calls["foveal"])
    warnings.filterwarnings("ignore", "foveal-native is not installed")  # from the call above
    plan = Plan(rounds=9, least_rounds=3, budget=60.0)
    found = compare(calls, reference="foveal", plan=plan)
    num_bad = sum(sum(_bad(batch)) for batch in batches)
    bad = Row(
        name="sentences of EWT test whose best heads are no tree",
        value=100 * num_bad / num_sentences,
        unit="%",
    )
    return [*(_rate(name, timing, num_sentences) for name, timing in found.items()), bad]


def _rate(name: str, timing: Timing, num_sentences: int) -> Row:
    rates = [num_sentences / seconds for seconds in timing.seconds]
    return Row(
        name=f"trees of given scores, EWT test: {name}",
        value=median(rates),
        unit="sentences/s",
        spread=(min(rates), max(rates)),
    )


def _scored(task: Parsing, examples: Sequence[Example]) -> Iterator[Scored]:
    """Yield the arc scores of all sentences, sorted by length, in supar's batches."""
    ordered = sorted(examples, key=task.size)
    start = 0
    with task.answering():
        while start < len(ordered):
            end, longest = start, 1
            while end < len(ordered):
                longest = max(longest, task.size(ordered[end]))
                if longest * (end + 1 - start) > BATCH_WORDS and end > start:
                    break
                end += 1
            encoded = [task.encode_source(example) for example in ordered[start:end]]
            batch = task.collate(encoded)
            arcs = task.parses(batch).tree.arcs.clone()
            # A tree uses neither padding nor the diagonal, where a model may have any score.
            heads = pad(batch.mask, (1, 0), value=True).unsqueeze(1)
            itself = torch.eye(arcs.shape[-1], dtype=torch.bool)
            word_first = arcs.mT.masked_fill(~heads | itself, NEVER).contiguous()
            yield Scored(arcs, batch.mask, word_first)
            start = end


def _supar_tree(structs: Any, batch: Scored) -> Tensor:
    scores = batch.word_first.clone()  # supar overwrites its input
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using a non-tuple sequence", UserWarning)
        heads = structs.MatrixTree(scores, batch.mask.sum(-1)).argmax
    return heads[:, 1:].masked_fill(~batch.mask, -1)


def _supar_decode(structs: Any, batch: Scored) -> Tensor:
    """Decode arcs like `supar.models.dep.BiaffineDependencyModel.decode` with tree=True."""
    bad = _bad(batch)
    found = batch.word_first.argmax(-1)[:, 1:].masked_fill(~batch.mask, -1)
    if any(bad):
        chosen = torch.tensor(bad)
        found[chosen] = _supar_tree(structs, Scored(*(part[chosen] for part in batch)))
    return found


def _bad(batch: Scored) -> list[bool]:
    """Return for each sentence whether the best heads of its words are not a tree."""
    heads, lengths = batch.word_first.argmax(-1).tolist(), batch.mask.sum(-1).tolist()
    return [not _is_tree(row[1 : length + 1]) for length, row in zip(lengths, heads, strict=True)]


def _is_tree(heads: list[int]) -> bool:
    """Check like `supar.utils.transform.CoNLL.istree`: one root, no self-loop, no cycle."""
    tarjan = sys.modules["supar.structs.fn"].tarjan
    if heads.count(0) != 1 or any(head == word for word, head in enumerate(heads, 1)):
        return False
    return next(tarjan(heads), None) is None


def _check_same(ways: dict[str, Callable[[Scored], Tensor]], batches: Sequence[Scored]) -> None:
    """Check that all methods find trees of the same score, up to rounding."""
    for batch in batches:
        tree = SpanningTree(batch.arcs.double(), mask=batch.mask)
        best = tree.score(ways["foveal"](batch))
        for name, way in ways.items():
            worst = (best - tree.score(way(batch))).abs().max()
            assert worst < 1e-3, f"{name} finds other trees, {worst} apart"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the subcommand: fit, score or speed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("fit", "score", "speed"))
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--out", type=Path, help="a file other than those in results/")
    given = parser.parse_args(arguments)
    use_one_thread()
    if given.what == "fit":
        fit(given.runs, given.seeds)
        return
    files = [file(name, split) for name in TREEBANKS for split in ("train", "dev", "test")]
    results = Results.here(MADE_BY, packages=("supar",))
    results, is_score = replace(results, data=digests(files, DATA)), given.what == "score"
    out = given.out or (SCORES if is_score else SPEEDS)
    results = results.continued_from(out, any_machine=is_score)
    rows = scores(given.runs, results.rows) if is_score else speed(given.runs / "ewt_1")
    for row in rows:
        print(f"{row.name}: {row.value:.2f} {row.unit}{'  MISSED' if row.misses else ''}")
    results.with_rows(rows).save(out)


if __name__ == "__main__":
    main()
