"""Entailment: the accuracy of each model, and the gains from heads and from trees.

    results/entailment_sick.json     a row of the table for each case, and for each difference
    results/entailment_snli.json     the same table for the other corpus
    results/induced_parses.json      the heads induced by training on SICK, compared with a treebank
    results/shown/entailment.json    attention to show

The difference of two cases compares their means over seeds on the same pairs; its spread is the interval of
the paired bootstrap.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from examples.support import DATA
from foveal.bundles import load_bundle
from foveal.data import Example, TextPair
from foveal.metrics import Statistics
from foveal.tasks import Evaluation, PairClassification
from recipes import entailment

from ..records._fitting import COST, Cost, folder_of
from ..results import Results, Row, digests
from ._comparison import UNIT, difference_rows, mean_row, spec_of
from ._induced_parses import PARSES, parse_rows
from ._shown import Shown, save_shown

NAME = "entailment"
# Kim et al. 2017, table 4, accuracy on SNLI after training on all 550,000 pairs, with GloVe vectors.
PUBLISHED = {"snli_none": 85.8, "snli_soft_bounded": 86.2, "snli_tree_bounded": 86.8}
# Pairs of kinds of heads; the second should be the better one.
COMPARED = (
    ("none", "soft"),
    ("none", "tree"),
    ("soft", "tree"),
    ("soft_bounded", "tree_bounded"),
    ("soft_bounded", "soft"),
    ("tree_bounded", "tree"),
)
SHOWN = ("sick_tree", "sick_soft")
PARSED, TREEBANK = "sick", DATA / "ud_english_ewt/en_ewt-ud-dev.conllu.gz"


class Scored(NamedTuple):
    """The scores of one case."""

    accuracies: Sequence[Statistics]  # for each seed
    f1s: Sequence[float]
    parameters: int
    costs: Sequence[Cost]


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write the whole file of each corpus of these cases; cases that were not fitted are left out."""
    made = Results.here(f"python -m benchmarks.lectures score {NAME}", packages=["foveal-native"])
    for corpus in entailment.CORPORA:
        scored, parses = dict[str, Scored](), list[Row]()
        for case in (case for case in cases if case.startswith(corpus)):
            folders = [folder_of(runs, NAME, case, seed) for seed in seeds]
            if not all((folder / COST).exists() for folder in folders):
                continue
            tasks, heads = [_task(folder) for folder in folders], case.partition("_")[2]
            scored[heads] = _scored(case, tasks, [Cost.load(folder) for folder in folders])
            found = mean(each.value for each in scored[heads].accuracies)
            print(f"{case}: {found:.2f}", flush=True)
            if corpus == PARSED and heads != "none":
                parses += parse_rows(case, tasks, seeds)
            if case in SHOWN:
                save_shown(results, NAME, case, [*_shown(case, tasks[0])])
        if scored:
            _save(corpus, scored, seeds, made, results)
        if parses:
            data = digests([TREEBANK], DATA)
            replace(made.with_rows(parses), data=data).save(results / f"{PARSES}.json")


def _save(
    corpus: str,
    scored: Mapping[str, Scored],
    seeds: Sequence[int],
    made: Results,
    results: Path,
) -> None:
    """Write the file of one corpus."""
    rows = [row for heads in scored for row in _rows(corpus, heads, scored[heads], seeds)]
    rows += [*_differences(scored, seeds), _commonest(corpus)]
    files = [path for part in ("train", "dev", "test") for path in entailment.files(corpus, part)]
    data = digests(files, entailment.DATA)
    spec = {heads: spec_of(entailment.recipe(f"{corpus}_{heads}")) for heads in scored}
    replace(made.with_rows(rows), data=data, spec=spec).save(results / f"{NAME}_{corpus}.json")


def _task(folder: Path) -> PairClassification:
    task = load_bundle(folder)
    assert isinstance(task, PairClassification)
    return task


def _scored(case: str, tasks: Sequence[PairClassification], costs: Sequence[Cost]) -> Scored:
    examples = list(entailment.part(case.partition("_")[0], "test"))
    evaluations: list[Evaluation] = [task.evaluate(examples) for task in tasks]
    return Scored(
        accuracies=[each.statistics["accuracy"] for each in evaluations],
        f1s=[each.statistics["macro_f1"].value for each in evaluations],
        parameters=sum(weights.numel() for weights in tasks[0].model.parameters()),
        costs=costs,
    )


def _rows(corpus: str, heads: str, scored: Scored, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the figures of a case; in their names, the table row comes before the colon, the column after."""
    aim = PUBLISHED.get(f"{corpus}_{heads}")
    accuracies = [each.value for each in scored.accuracies]
    yield mean_row(f"{heads}: accuracy", accuracies, UNIT, seeds, aim)
    yield mean_row(f"{heads}: macro F1", scored.f1s, UNIT, seeds)
    yield mean_row(f"{heads}: parameters", [scored.parameters], "", seeds)
    minutes = [cost.processor_minutes for cost in scored.costs]
    yield mean_row(f"{heads}: processor minutes", minutes, "min", seeds)


def _differences(scored: Mapping[str, Scored], seeds: Sequence[int]) -> Iterator[Row]:
    for first, second in COMPARED:
        pair = scored.get(first), scored.get(second)
        if pair[0] is not None and pair[1] is not None:
            name = f"{second} - {first}"
            yield from difference_rows(name, pair[0].accuracies, pair[1].accuracies, seeds)


def _commonest(corpus: str) -> Row:
    """Return the accuracy of the most common label."""
    labels = Counter(example.target for example in entailment.part(corpus, "test"))
    share = 100 * labels.most_common(1)[0][1] / labels.total()
    return Row(name="the commonest label: accuracy", value=share, unit=UNIT)


def _shown(case: str, task: PairClassification) -> Iterator[Shown]:
    """Yield the attention between the words of two texts, and the heads within each, for two test pairs."""
    settings = replace(task.prediction, trace=True)
    examples = [_first(case, label) for label in ("entailment", "contradiction")]
    for example, answer in zip(examples, task.predict(examples, settings), strict=True):
        pair = example.input_as(TextPair)
        first, second = pair.first, pair.second
        said = f"{first} / {second}: {answer.output}, where {example.target} is right"
        own = (*task.self_attentions(first), *task.self_attentions(second))
        for trace in (answer.trace, *own):
            if trace is not None:
                yield Shown(said, trace)


def _first(case: str, label: str) -> Example:
    """Return the first test pair with this label whose texts have 6 to 12 words, few enough to draw."""
    for example in entailment.part(case.partition("_")[0], "test"):
        pair = example.input_as(TextPair)
        if example.target == label and all(
            6 <= len(text.split()) <= 12 for text in (pair.first, pair.second)
        ):
            return example
    raise AssertionError(label)
