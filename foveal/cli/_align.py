"""`foveal align`: align the words, or tokens, of pairs of texts.

    source <TAB> target <TAB> 0-0 1-2      --format tsv
    0-0 1-2                                --format pharaoh
    {"source": [...], "target": [...], "links": [[0, 0, 0.98], ...]}      --format jsonl

i-j links word i of the source to word j of the target, both counted from 0. Links go to the standard
output; notes and scores go to the standard error. With `--ctc`, the command aligns texts with recordings.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from ..bundles import load_bundle
from ..data import Example
from ..data.formats._links import read_fast_align, read_gold
from ..errors import ValueRangeError
from ..inspection import align
from ..inspection.aligning._word_alignment import Aligned
from ..metrics import alignment_scores
from ..metrics._alignment_scores import AlignmentScores
from ..planning._files import open_files
from ..specs._files import specs_in
from ..tasks import AbstractTask
from ._align_speech import align_speech
from ._bars import answering_bar
from ._speech import explaining
from ._threads import use_threads

_AT_ONCE = 4096  # pairs


def command(
    bundle: Positional[Path],
    files: Positional[tuple[str, ...]],
    /,
    *,
    ctc: bool = False,
    reverse: Path | None = None,
    by: Literal["posterior", "argmax"] = "posterior",
    threshold: float = 0.5,
    symmetrize: Literal["intersection", "union", "grow-diag-final", "product"] = "grow-diag-final",
    units: Literal["words", "symbols"] | None = None,
    gold: str | None = None,
    gold_first: Literal[0, 1] | None = None,
    output: Annotated[Literal["tsv", "pharaoh", "jsonl"], arg(name="format")] = "tsv",
    with_specs: Path | None = None,
    threads: int | None = None,
) -> None:
    """Align the words of text pairs by the attention of a model, or texts with recordings by CTC.

    The command prints the links, or the time spans of tokens, to the standard output, and notes and scores to the standard
    error.

    Args:
        bundle: The folder of a model that `foveal fit` saved, from sources to targets.
        files: Text pairs, in the format of the training files or as source ||| target, one pair per line; with --ctc, lists
            of recordings and texts.
        ctc: Print the time span and the confidence of each token in its recording (forced alignment).
        reverse: A model from targets to sources. The command then merges the links of both models.
        by: Link by posterior probability, or by the most probable selection.
        threshold: The minimum posterior probability of a link.
        symmetrize: How to merge the links of both models.
        units: Link words or tokens. Defaults to words, or to tokens if an output is one word, and with --ctc.
        gold: A file with the gold links of these pairs, to score the predicted links.
        gold_first: The index of the first word in the gold file. Detected by default.
        output: Print each pair with its links, only the links, or JSON with probabilities; with --ctc, a line for each
            token, or JSON.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
        threads: The number of threads that torch uses. Defaults to OMP_NUM_THREADS, or to one per core.
    """
    use_threads(threads)
    also = specs_in(with_specs)
    if ctc:
        _refuse_with_ctc(reverse=reverse, gold=gold)
        align_speech(bundle, files, units=units, output=output, also=also)
        return
    task = load_bundle(bundle, also=also)
    other = None if reverse is None else load_bundle(reverse, also=also)
    source = _pairs(files)
    kept: list[Aligned] = []
    with answering_bar(None, is_quiet=False) as answered:
        for some in _parts(source.examples, _AT_ONCE):
            aligned = align(
                *(task, some),
                by=by,
                threshold=threshold,
                units=units,
                reverse=other,
                symmetrization=symmetrize,
            )
            for example, pair in zip(some, aligned, strict=True):
                sys.stdout.write(_line(example, pair, output) + "\n")
            sys.stdout.flush()
            answered(len(some))
            kept += aligned if gold is not None else ()
    scored = None if gold is None else _scored(kept, gold, gold_first)
    console = explaining(stderr=True)
    _say(console, task, source.reason, by, threshold, symmetrize if other is not None else None)
    if scored is not None:
        console.print(scored.reason, markup=False, soft_wrap=True)
        console.print(_table(scored.scores))


def _refuse_with_ctc(**given: object) -> None:
    """Raise an error for options that need text pairs."""
    for name, value in given.items():
        if value is not None:
            raise ValueRangeError(
                f"align: --{name} needs pairs of texts, got --ctc, which aligns a text with a recording. Omit one of them."
            )


class _Pairs(NamedTuple):
    """The pairs to align, and their file format."""

    examples: Iterable[Example]
    reason: str


def _pairs(files: Sequence[str]) -> _Pairs:
    barred = read_fast_align(files[0]) if len(files) == 1 else None
    if barred is not None:
        return _Pairs(barred, "source ||| target on each line")
    opened = open_files(files)
    return _Pairs(opened.source, opened.reason)


def _parts(examples: Iterable[Example], size: int) -> Iterator[list[Example]]:
    rest = iter(examples)
    while some := list(islice(rest, size)):
        yield some


def _line(example: Example, pair: Aligned, output: Literal["tsv", "pharaoh", "jsonl"]) -> str:
    if output == "pharaoh":
        return pair.pharaoh
    if output == "tsv":
        return "\t".join((example.text, example.target or "", pair.pharaoh))
    links = [[i, j, round(pair.weights[j][i], 4)] for i, j in sorted(pair.links)]
    data: dict[str, Any] = {"source": pair.sources, "target": pair.targets, "links": links}
    return json.dumps(data, ensure_ascii=False)


def _say(
    console: Console,
    task: AbstractTask[Any],
    reason: str,
    by: str,
    threshold: float,
    symmetrization: str | None,
) -> None:
    """Print how the links were made."""
    attention = task.spec.model.decoder.attention_kind
    rule = "the most probable selection" if by == "argmax" else f"probability {threshold:g} or more"
    both = "" if symmetrization is None else f", both directions merged by {symmetrization}"
    text = f"{reason}; links from {attention} attention: {rule}{both}"
    console.print(text, markup=False, soft_wrap=True)


class _Scored(NamedTuple):
    """The scores, and the format of the gold file."""

    scores: AlignmentScores
    reason: str


def _scored(pairs: Sequence[Aligned], gold: str, first: Literal[0, 1] | None) -> _Scored:
    sizes = [(len(pair.sources), len(pair.targets)) for pair in pairs]
    if not sizes:
        raise ValueRangeError(
            "align: expected at least one text pair to score, got none. Check the input files."
        )
    known = read_gold(gold, sizes, first=first)
    scores = alignment_scores([pair.links for pair in pairs], known.gold)
    return _Scored(scores, f"{gold}: {known.reason}")


def _table(scores: AlignmentScores) -> Table:
    table = Table("score", "value", "95 % interval", box=None, padding=(0, 2, 0, 0))
    rows = {
        "AER": scores.aer,
        "precision": scores.precision,
        "recall": scores.recall,
        "F1": scores.f1,
    }
    for name, metric in rows.items():
        table.add_row(name, f"{metric.value:.2f}", f"{metric.low:.2f} to {metric.high:.2f}")
    table.add_row("links", f"{scores.num_links:,}", "")
    known = f"{scores.num_sure:,} sure"
    if scores.num_possible > scores.num_sure:
        known += f", {scores.num_possible - scores.num_sure:,} more possible"
    table.add_row("gold links", known, "")
    return table
