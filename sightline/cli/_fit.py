"""`sightline fit`: from files to a model, without any configuration; or with all of it."""

import importlib.util
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, UseAppendAction, arg

from ..data import ImageSourceSpec, SourceSpec, check_data
from ..errors import SpecError
from ..inspection import Finding, Watch, vital_signs
from ..specs import settings, with_setting
from ..tasks import PictureTaskSpec, TransductionSpec
from ..training import (
    Choice,
    Display,
    Outcome,
    Planned,
    Run,
    TensorBoardWriter,
    chosen,
    hold_out,
    load_plan,
    plan,
    process_group,
)
from ._bars import waiting
from ._files import open_files, open_like
from ._report import write_report


def command(
    train: Positional[tuple[str, ...]] = (),
    /,
    *,
    dev: tuple[str, ...] = (),
    test: tuple[str, ...] = (),
    out: Path,
    recipe: str | None = None,
    attention: str | None = None,
    settings_given: Annotated[UseAppendAction[tuple[str, ...]], arg(name="set")] = (),
    minutes: float | None = None,
    seed: int | None = None,
    fresh: bool = False,
    tensorboard: bool = False,
) -> None:
    """Train a model from files, or go on with a run that was interrupted.

    What the task is, how texts are cut into symbols and how large the model should be is found out
    from the files, and said.

    Args:
        train: files to learn from: tab-separated, JSON lines, CoNLL-U or plain text; plain, gzip or
            zstd. A pattern in quotes stands for many files.
        dev: files that tell the best weights; without, a tenth of the training examples is set apart.
        test: files for the score at the end.
        out: the folder of the run, which becomes a model that other commands take.
        recipe: a run written down, as file.py:function, instead of files.
        attention: how the decoder reads the source: softmax, segment, sigmoid, local, sparsemax, hard,
            exact_hard, monotone, multi_head or none.
        settings_given: one setting as path=value, for example encoder.num_layers=2; may be repeated.
            `sightline explain-config` lists all.
        minutes: stop after so long; the learning rate is planned for it.
        seed: of weights, order and dropout.
        fresh: start again in a folder that has a run.
        tensorboard: write event files for TensorBoard too.
    """
    given = _given(settings_given, attention=attention, minutes=minutes, seed=seed)
    with process_group() as group:
        console = Console(highlight=False, quiet=not group.is_first)
        if group.is_first:
            planned = (
                _from_recipe(recipe) if recipe else _from_files(console, train, dev, test, out)
            )
            for text in given:
                planned = _with_setting(planned, text)
            if recipe is None:
                _say_findings(console, planned.run)
            planned.save(out)
        group.agree([0.0])  # the others read what process 0 has planned
        writers = (TensorBoardWriter(out / "tensorboard"),) if tensorboard else ()
        run = load_plan(out).run
        watch = Watch(partial(_say_alarm, console), run.task, run.training)
        with waiting(console, "counting the symbols of the training files") as first_word:
            outcome = run.fit(
                out,
                listeners=(first_word, Display(console), *writers, watch),
                probes=(vital_signs,),
                resume=not fresh,
            )
        if group.is_first:
            _say_outcome(console, outcome)
            _write_report(console, out)


def _given(
    texts: Sequence[str], *, attention: str | None, minutes: float | None, seed: int | None
) -> list[str]:
    """All settings of the command, the short forms written out and first: what --set says may be about
    the attention that was chosen.
    """
    given = list[str]()
    if attention is not None:
        given.append(f"task.decoder.attention={attention}")
    if minutes is not None:
        given += ["training.epochs=none", f"training.minutes={minutes}"]
    if seed is not None:
        given.append(f"training.seed={seed}")
    given += texts
    return given


def _from_files(
    console: Console,
    train: Sequence[str],
    dev: Sequence[str],
    test: Sequence[str],
    out: Path,
) -> Planned:
    """The run that the files call for; what was found out is said."""
    if not train:
        raise SpecError(
            "there is nothing to learn from: got neither files nor a recipe. "
            "Give a file, as in: sightline fit train.tsv --dev dev.tsv --out runs/first"
        )
    opened = open_files(train)
    console.print(f"{' '.join(train)}: {opened.reason}", markup=False, soft_wrap=True)
    if isinstance(opened.source, ImageSourceSpec):
        raise SpecError(
            f"{train[0]} names images, and what to make of images is not found out by itself, expected "
            f"texts. Write the run as a function, and pass it as --recipe file.py:function."
        )
    sources: list[SourceSpec | None] = [
        open_like(opened.source, files) if files else None for files in (dev, test)
    ]
    source, held_out = opened.source, None
    if sources[0] is None:
        with console.status("setting some examples apart"):
            parts = hold_out(source, out / "data")
        source, sources[0] = parts.train, parts.dev
        held_out = (
            f"no --dev: {parts.num_dev:,} of {parts.num_train + parts.num_dev:,} examples are set "
            f"apart, in {out / 'data'}"
        )
        console.print(held_out, markup=False, soft_wrap=True)
    with console.status("finding out what the files are for"):
        planned = plan(source, *sources)
    if held_out is not None:
        planned = planned._replace(
            choices=(
                *planned.choices,
                Choice("train", "data", held_out),
                Choice("dev", "data", held_out),
            )
        )
    for reason in dict.fromkeys(choice.reason for choice in planned.choices):
        if reason != held_out:
            console.print(f"  {reason}", markup=False, soft_wrap=True)
    return planned


def _from_recipe(text: str) -> Planned:
    """The run that a function in a file returns."""
    path, _, name = text.partition(":")
    name = name or "recipe"
    spec = importlib.util.spec_from_file_location("recipe", path)
    if not Path(path).is_file() or spec is None or spec.loader is None:
        raise SpecError(
            f"--recipe {text}: there is no Python file {path}. Give file.py:function, as in "
            f"recipes/g2p_low.py:recipe"
        )
    module = importlib.util.module_from_spec(spec)
    # A recipe may import what lies beside its folder, as with `python -m` from there.
    sys.path.append(str(Path.cwd()))
    spec.loader.exec_module(module)
    function = vars(module).get(name)
    run = function() if callable(function) else None
    if not isinstance(run, Run):
        functions = [key for key, value in vars(module).items() if callable(value)]
        raise SpecError(
            f"--recipe {text}: expected a function {name}() that returns a Run, got "
            f"{type(run).__name__}. {path} has {', '.join(functions)}."
        )
    paths = [setting.path for setting in settings(run)]
    return Planned(run, tuple(Choice(path, "recipe", f"{text} says so") for path in paths))


def _with_setting(planned: Planned, text: str) -> Planned:
    """One setting changed. The beginnings task. and training. may be left out."""
    path, sign, value = text.partition("=")
    if not sign:
        raise SpecError(f"--set {text}: expected path=value, as in encoder.num_layers=2")
    known = {setting.path for setting in settings(planned.run)}
    groups = {known_path.rpartition(".")[0] for known_path in known}
    whole = next(
        (full for full in (path, f"task.{path}", f"training.{path}") if full in known | groups),
        path,
    )
    run = with_setting(planned.run, whole, value)
    return Planned(run, chosen(planned.choices, whole, "command", f"--set {text}"))


def _say_findings(console: Console, run: Run) -> None:
    """What a user would want to know of the data before training on it."""
    task = run.task
    if isinstance(task, PictureTaskSpec):
        return
    with console.status("looking through the data"):
        findings = check_data(
            run.train,
            run.dev,
            run.test,
            source_tokeniser=task.source,
            target_tokeniser=task.target if isinstance(task, TransductionSpec) else None,
        )
    for line in findings.lines():
        console.print(f"note: {line}", style="yellow", markup=False, soft_wrap=True)


def _say_alarm(console: Console, finding: Finding) -> None:
    """What the doctor thinks of a run that still goes on."""
    console.print(
        f"{finding.name}: {finding.text} What helps: {finding.remedy}",
        style="red",
        markup=False,
        soft_wrap=True,
    )


def _write_report(console: Console, out: Path) -> None:
    """The page of the run. The model is there already, and no page is worth losing it."""
    try:
        with console.status("writing the report"):
            path = write_report(out, is_quiet=True)
    except Exception as error:
        console.print(f"note: no report: {error}", style="yellow", markup=False, soft_wrap=True)
    else:
        console.print(f"{path} shows how it went", markup=False, soft_wrap=True)


def _say_outcome(console: Console, outcome: Outcome) -> None:
    rows = [("dev", outcome.metrics), ("test", outcome.test)]
    table = Table("", "score", "value", "95 % interval", "", box=None, padding=(0, 2, 0, 0))
    for name, metrics in rows:
        for score, metric in metrics.items():
            interval = f"{metric.low:.2f} to {metric.high:.2f}"
            table.add_row(name, score, f"{metric.value:.2f}", interval, metric.signature)
    if table.row_count:
        console.print(table)
    console.print(
        f"{outcome.folder} is ready: sightline predict {outcome.folder} < words.txt",
        markup=False,
        soft_wrap=True,
    )
