"""Does attention find the alignment, where the alignment is known?

    python -m benchmarks.alignment                                all of it, an hour or two
    python -m benchmarks.alignment digits --kinds softmax segment --seeds 1 2 --keep runs/alignment
    python -m benchmarks.alignment --tanaka runs/tanaka           a translation model on gold links

Models that differ only in their attention are trained on the formulas, commands and digits of
`examples.support.known_alignments`, without the alignments. With teacher forcing, their attention becomes links by
the rule of `foveal align`. The benchmark scores these links and the accuracy of the model's free-running outputs.

`one step later` links a token to the positions attended to by the next step, which has the token as its
input. If that alignment were better, attention would lag by a step.

A run that is already in the folder of `--keep` is scored, not trained again.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any, NamedTuple

from examples.support import DATA
from examples.support.formulas import draw_examples
from examples.support.known_alignments import Known, align_formula, draw_digits, read_commands
from foveal.attention import AttentionTrace
from foveal.bundles import load_bundle
from foveal.data import Example, WhitespaceSpec, tsv
from foveal.data.formats._links import Link, read_fast_align, read_gold
from foveal.data.tokenizers._words import split_words
from foveal.inspection import align, forced_traces
from foveal.metrics import alignment_scores
from foveal.metrics._alignment_scores import AlignmentScores
from foveal.metrics._intervals import Metric
from foveal.models import (
    AttentionSpec,
    BilinearSpec,
    DecoderSpec,
    HardSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SigmoidSpec,
    SoftmaxSpec,
    TextEncoderSpec,
)
from foveal.tasks import AbstractTask, PredictionSpec, Transduction, TransductionSpec
from foveal.training import Run, TrainingSpec

from .results import Results, Row, digest
from .timing import use_one_thread

OUT = Path("results/alignment.json")
KYOTO = ("align_gold_jaen/jaen.src-tgt", "align_gold_jaen/jaen.gold")
SCAN = "scan/tasks_{}_simple.txt.gz"
NUM_TESTED = 300
SHORT = 12  # words, about the longest sentence in the training set of a Tanaka model

KINDS: dict[str, AttentionSpec] = {
    "softmax": SoftmaxSpec(scorer=BilinearSpec()),
    "sigmoid": SigmoidSpec(scorer=BilinearSpec()),
    "segment": SegmentSpec(scorer=BilinearSpec()),
    "hard": HardSpec(scorer=BilinearSpec()),
    "latent_hard": LatentHardSpec(scorer=BilinearSpec()),
    "monotone": LatentMonotoneSpec(scorer=BilinearSpec()),
}


class Pairs(NamedTuple):
    """The training pairs and the test pairs."""

    train: Sequence[Known]
    test: Sequence[Known]


class Case(NamedTuple):
    """A kind of pairs, and the number of training steps."""

    title: str
    pairs: Callable[[], Pairs]
    steps: int
    data: tuple[str, ...] = ()  # files, below the data folder


@cache
def formulas() -> Pairs:
    """Prefix to infix notation, as in examples/prefix_to_infix.py: depths 2 to 4."""
    known = draw_examples(range(2, 5), 5000, Random(0))
    unseen = draw_examples(range(2, 5), NUM_TESTED // 3, Random(1), unlike=known)
    return Pairs(*([align_formula(one.text) for one in some] for some in (known, unseen)))


@cache
def commands() -> Pairs:
    """SCAN, the simple split; the test pairs are evenly spaced in its test file."""
    train, test = (list(read_commands(DATA / SCAN.format(part))) for part in ("train", "test"))
    return Pairs(train, test[:: len(test) // NUM_TESTED][:NUM_TESTED])


@cache
def digits() -> Pairs:
    """Digits and the letters of their names."""
    drawn = draw_digits(5500, Random(0))
    return Pairs(drawn[500:], drawn[:NUM_TESTED])


CASES = {
    "formulas": Case("prefix to infix", formulas, 600),
    "commands": Case("SCAN", commands, 800, tuple(SCAN.format(part) for part in ("train", "test"))),
    "digits": Case("digits to letters", digits, 300),
}


def run_of(attention: AttentionSpec, train: Path, steps: int, seed: int) -> Run:
    """Return a run with the same model and budget for every kind of attention."""
    return Run(
        task=TransductionSpec(
            source=WhitespaceSpec(),
            target=WhitespaceSpec(),
            outputs="texts",
            label_smoothing=0.0,
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=32, hidden_size=64, dropout=0.1),
                decoder=DecoderSpec(
                    embedding_size=32, hidden_size=128, dropout=0.1, attention=attention
                ),
            ),
            prediction=PredictionSpec(beam_size=1),
        ),
        train=tsv(str(train)),
        training=TrainingSpec(
            steps=steps, batch_size=64, learning_rate=4e-3, warmup_steps=100, seed=seed
        ),
    )


def trained(case: str, kind: str, seed: int, folder: Path) -> Transduction:
    """Return the model of one case, kind and seed, from the folder if it is already there."""
    out, train = folder / f"{case}-{kind}-{seed}", folder / f"{case}.tsv"
    if not (out / "metrics.json").exists():
        if not train.exists():
            pairs = [known.example for known in CASES[case].pairs().train]
            lines = [f"{pair.source}\t{pair.target}\n" for pair in pairs]
            train.write_text("".join(lines), encoding="utf-8")
        run_of(KINDS[kind], train, CASES[case].steps, seed).fit(out, device="cpu")
    task = load_bundle(out)
    assert isinstance(task, Transduction)
    return task


def scores_of(task: Transduction, test: Sequence[Known]) -> dict[str, Metric]:
    """Return the scores of one model by name."""
    examples, gold = [known.example for known in test], [known.gold for known in test]
    found = alignment_scores([pair.links for pair in align(task, examples)], gold)
    traces = forced_traces(task, examples)
    best, later = (
        alignment_scores([_selected(trace, steps) for trace in traces], gold) for steps in (0, 1)
    )
    return {
        "exact match": task.evaluate(examples).metrics["exact_match"],
        "AER": found.aer,
        "precision": found.precision,
        "recall": found.recall,
        "AER by argmax": best.aer,
        "AER by argmax, one step later": later.aer,
    }


def _selected(trace: AttentionTrace, steps: int) -> set[Link]:
    """Link each token to the positions selected by the step that wrote it, or by a step `steps` later.

    Each token gets the links of argmax, because tokens are words here.
    """
    assert trace.best is not None
    rows = trace.best[steps : steps + len(trace.targets) - 1]
    return {(i, j) for j, row in enumerate(rows) for i, chosen in enumerate(row) if chosen}


def measure(case: str, kind: str, seeds: Sequence[int], folder: Path) -> list[Row]:
    """Return the rows of one case and one kind of attention.

    The spread is over seeds; with a single seed, it is the 95 % interval over the test pairs.
    """
    test = CASES[case].pairs().test
    found = [scores_of(trained(case, kind, seed, folder), test) for seed in seeds]
    rows = []
    for name in found[0]:
        values = [scores[name].value for scores in found]
        interval = found[0][name].low, found[0][name].high
        rows.append(
            Row(
                name=f"{CASES[case].title}, {kind}: {name}",
                value=mean(values),
                unit="%",
                spread=(min(values), max(values)) if len(values) > 1 else interval,
                seeds=tuple(seeds),
            )
        )
    return rows


def measure_translation(run: Path) -> list[Row]:
    """Score a Japanese-English model on gold links of another domain (Kyoto articles of Wikipedia)."""
    examples = list(read_fast_align(str(DATA / KYOTO[0])) or ())
    task = load_bundle(run)
    sizes = [_size(example) for example in examples]
    gold = read_gold(str(DATA / KYOTO[1]), sizes).gold
    rules: dict[str, Sequence[frozenset[Link]]] = {
        "posterior 0.5": [pair.links for pair in align(task, examples)],
        "posterior 0.25": [pair.links for pair in align(task, examples, threshold=0.25)],
        "argmax": [pair.links for pair in align(task, examples, by="argmax")],
        "the diagonal, without a model": [diagonal(*size) for size in sizes],
    }
    rows = [_unknown(task, examples)]
    short = [n for n, (_, num_targets) in enumerate(sizes) if num_targets <= SHORT]
    for rule, links in rules.items():
        rows += _translation_rows(rule, alignment_scores(links, gold))
        some = alignment_scores([links[n] for n in short], [gold[n] for n in short])
        rows += _translation_rows(f"{rule}, targets of up to {SHORT} words", some)
    return rows


def _unknown(task: AbstractTask[Any], examples: Sequence[Example]) -> Row:
    """Return the fraction of unknown tokens, a measure of how far the texts are from the training set."""
    known = task.vocabularies.target
    symbols = [word for e in examples for word in task.spec.target.encode(e.target or "")]
    share = mean(known is None or symbol not in known for symbol in symbols)
    name = "Japanese to English, Kyoto: target symbols that the model does not know"
    return Row(name=name, value=100 * share, unit="%")


def _translation_rows(rule: str, scores: AlignmentScores) -> list[Row]:
    figures = {"AER": scores.aer, "precision": scores.precision, "recall": scores.recall}
    return [
        Row(
            name=f"Japanese to English, Kyoto gold links, {rule}: {name}",
            value=metric.value,
            unit="%",
            spread=(metric.low, metric.high),
        )
        for name, metric in figures.items()
    ]


def _size(example: Example) -> tuple[int, int]:
    return len(split_words(example.text)), len(split_words(example.target or ""))


def diagonal(num_sources: int, num_targets: int) -> frozenset[Link]:
    """Link each target word to the source word at the same relative position."""
    return frozenset(
        (min(num_sources - 1, (2 * j + 1) * num_sources // (2 * num_targets)), j)
        for j in range(num_targets)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, align, score and write; earlier rows that are not measured again are kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; by default all")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--keep", type=Path, help="leave the runs here, and use those there are")
    parser.add_argument("--tanaka", type=Path, help="score this ja-en model on gold links alone")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    if unknown := set(given.cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    use_one_thread()
    results = Results.here("python -m benchmarks.alignment").continued_from(given.out)
    data = dict(Results.load(given.out).data) if given.out.exists() else {}
    with ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        if given.tanaka is not None:
            data |= {path: digest(DATA / path) for path in KYOTO}
            results = replace(results.with_rows(measure_translation(given.tanaka)), data=data)
            results.save(given.out)
            return
        for case in given.cases or CASES:
            data |= {path: digest(DATA / path) for path in CASES[case].data}
            for kind in given.kinds:
                rows = measure(case, kind, given.seeds, folder)
                results = replace(results.with_rows(rows), data=data)
                results.save(given.out)
                print(*(f"{row.name}: {row.value:.1f}" for row in rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
