"""Entailment: the accuracy of each model, and the gains from heads and from trees.

    results/entailment_sick.json     a row of the table for each case, and for each difference
    results/entailment_snli.json     the same table for the other corpus
    results/word_by_word_sick.json   the recurrent networks with and without attention; for snli as well
    results/given_heads.json         the accuracy of the parser whose heads the case "parent" reads
    results/induced_parses.json      the heads induced by training on SICK, compared with a treebank
    results/shown/entailment.json    attention to show

Cases that were not fitted keep their rows from the existing file. The difference of two cases compares their means over seeds on the same pairs; its spread is the interval of
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
from recipes import entailment, given_heads, parsing

from ..records._fitting import Cost, fitted
from ..results import Results, Row, digests
from ._comparison import UNIT, difference_rows, mean_row, spec_of, update
from ._induced_parses import PARSES, parse_rows
from ._shown import Shown, save_shown

NAME = "entailment"
COMMONEST = "the commonest label: accuracy"
# Accuracy in Kim et al. 2017. Not targets: of SNLI, only development and test pairs are available here, so our models learn
# from a twelfth of the pairs, and those from other corpora, without pretrained vectors.
PUBLISHED = {"none": 85.8, "parent": 86.1, "soft_bounded": 86.2, "tree_bounded": 86.8}
SOURCE = (
    "Kim et al. 2017, table 4, the same test pairs: trained on the 550,000 pairs of SNLI, with GloVe vectors; here on "
    "44,000 pairs of other corpora, without them"
)
# Pairs of kinds of heads; the second should be the better one.
COMPARED = (
    ("none", "soft"),
    ("none", "tree"),
    ("soft", "tree"),
    ("none", "parent"),
    ("soft", "parent"),
    ("tree", "parent"),
    ("soft_bounded", "tree_bounded"),
    ("soft_bounded", "soft"),
    ("tree_bounded", "tree"),
    ("conditional", "last_word"),
    ("conditional", "word_by_word"),
    ("last_word", "word_by_word"),
)
SHOWN = ("sick_tree", "sick_soft", "sick_parent", "sick_word_by_word")
PARSER = "given_heads"
# The forms in each file of a corpus.
FILES = {NAME: (*entailment.HEADS, entailment.PARENT), "word_by_word": tuple(entailment.READERS)}
PARSED, TREEBANK = "sick", DATA / "ud_english_ewt/en_ewt-ud-dev.conllu.gz"


class Scored(NamedTuple):
    """The scores of one case."""

    accuracies: Sequence[Statistics]  # for each seed
    f1s: Sequence[float]
    parameters: int
    costs: Sequence[Cost]


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write the file of each corpus of these cases."""
    made = Results.here(f"python -m benchmarks.lectures score {NAME}", packages=["foveal-native"])
    for corpus in entailment.CORPORA:
        scored, parses = dict[str, Scored](), list[Row]()
        for case in (case for case in cases if case.startswith(corpus)):
            folders = fitted(runs, NAME, case, seeds)
            if not folders:
                continue
            tasks, heads = [_task(folder) for folder in folders], case.partition("_")[2]
            scored[heads] = _scored(case, tasks, [Cost.load(folder) for folder in folders])
            found = mean(each.value for each in scored[heads].accuracies)
            print(f"{case}: {found:.2f}", flush=True)
            if corpus == PARSED and entailment.HEADS.get(heads) is not None:
                parses += parse_rows(case, tasks, seeds)
            if case in SHOWN:
                save_shown(results, NAME, case, [*_shown(case, tasks[0])])
        for name, forms in FILES.items():
            chosen = {form: scored[form] for form in forms if form in scored}
            if chosen:
                _save(name, corpus, chosen, seeds, made, results)
        if entailment.PARENT in scored:
            _save_parser(made, results)
        if parses:
            data = digests([TREEBANK], DATA)
            out = results / f"{PARSES}.json"
            update(out, NAME, parses, data=data, packages=["foveal-native"])


def write_references(results: Path) -> None:
    """Add the figures of the paper to the models tested on SNLI, which have no targets."""
    path = results / f"{NAME}_snli.json"
    if not path.exists():  # only the other corpus was scored
        return
    found = Results.load(path)
    measured = {row.name.partition(": ")[0] for row in found.rows}
    published = [
        Row(name=f"{heads}: Kim et al. 2017", value=value, unit=UNIT, kind="paper", source=SOURCE)
        for heads, value in PUBLISHED.items()
        if heads in measured
    ]
    found.with_references({}, published).save(path)


def _save(
    name: str,
    corpus: str,
    scored: Mapping[str, Scored],
    seeds: Sequence[int],
    made: Results,
    results: Path,
) -> None:
    """Write the file of one corpus."""
    rows = [row for heads in scored for row in _rows(heads, scored[heads], seeds)]
    rows += _differences(scored, seeds)
    files = [path for part in ("train", "dev", "test") for path in entailment.files(corpus, part)]
    data = digests(files, entailment.DATA)
    spec = {heads: spec_of(entailment.recipe(f"{corpus}_{heads}")) for heads in scored}
    path = results / f"{name}_{corpus}.json"
    if path.exists():
        before = Results.load(path)
        rows = merged(before.rows, rows)
        spec = {**before.spec, **spec}
    rows = [row for row in rows if row.name != COMMONEST]
    rows.append(_commonest(corpus))
    replace(made.with_rows(rows), data=data, spec=spec).save(path)


def merged(before: Sequence[Row], now: Sequence[Row]) -> list[Row]:
    """Return the rows of both, a new one in the place of an old one with the same name, figures before differences."""
    new = {row.name: row for row in now}
    rows = [new.pop(row.name, row) for row in before] + [*new.values()]
    return sorted(rows, key=lambda row: " - " in row.name.partition(":")[0])


def _save_parser(made: Results, results: Path) -> None:
    """Write the accuracy of the parser on the lowercased treebank."""
    found = load_bundle(given_heads.PARSER).evaluate(list(given_heads.part("test"))).statistics
    rows = [
        Row(name=f"parser: {name.upper()}", value=found[name].value, unit=UNIT, seeds=(1,))
        for name in ("uas", "las")
    ]
    data = digests([parsing.file("ewt", part) for part in ("train", "dev", "test")], DATA)
    spec = {"parser": spec_of(given_heads.parser())}
    replace(made.with_rows(rows), data=data, spec=spec).save(results / f"{PARSER}.json")


def _task(folder: Path) -> PairClassification:
    task = load_bundle(folder)
    assert isinstance(task, PairClassification)
    return task


def _scored(case: str, tasks: Sequence[PairClassification], costs: Sequence[Cost]) -> Scored:
    examples = _examples(case)
    evaluations: list[Evaluation] = [task.evaluate(examples) for task in tasks]
    return Scored(
        accuracies=[each.statistics["accuracy"] for each in evaluations],
        f1s=[each.statistics["macro_f1"].value for each in evaluations],
        parameters=sum(weights.numel() for weights in tasks[0].model.parameters()),
        costs=costs,
    )


def _examples(case: str) -> list[Example]:
    """Return the test pairs of a case, with heads if it reads them."""
    corpus, _, form = case.partition("_")
    return list(entailment.part(corpus, "test", headed=form == entailment.PARENT))


def _rows(heads: str, scored: Scored, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the figures of a case; in their names, the table row comes before the colon, the column after."""
    accuracies = [each.value for each in scored.accuracies]
    yield mean_row(f"{heads}: accuracy", accuracies, UNIT, seeds)
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
    return Row(name=COMMONEST, value=share, unit=UNIT)


def _shown(case: str, task: PairClassification) -> Iterator[Shown]:
    """Yield the attention between the words of two texts, and the heads within each, for two test pairs."""
    settings = replace(task.prediction, trace=True)
    examples = [_first(case, label) for label in ("entailment", "contradiction")]
    for example, answer in zip(examples, task.predict(examples, settings), strict=True):
        pair = example.input_as(TextPair)
        first, second = pair.first, pair.second
        texts = " / ".join(" ".join(text) for text in task.texts(example))
        said = f"{texts}: {answer.output}, where {example.target} is right"
        own = (*task.self_attentions(first), *task.self_attentions(second))
        for trace in (answer.trace, *own):
            if trace is not None:
                yield Shown(said, trace)


def _first(case: str, label: str) -> Example:
    """Return the first test pair with this label whose texts have 6 to 12 words, few enough to draw."""
    for example in _examples(case):
        pair = example.input_as(TextPair)
        if example.target == label and all(
            6 <= len(text.split()) <= 12 for text in (pair.first, pair.second)
        ):
            return example
    raise AssertionError(label)
