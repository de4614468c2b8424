"""The run that a command calls for: from files or a recipe, and settings that were given."""

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ..data import CORPUS, ImageSourceSpec, PreparedCorpus, SourceSpec, check_data
from ..errors import SpecError
from ..specs import settings, with_setting
from ..tasks import PictureTaskSpec, TransductionSpec, load_bundle
from ..training import Choice, Planned, Run, chosen, hold_out, load_plan, plan
from ._files import open_files, open_like


def given_settings(
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


def plan_from_files(
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
    if (Path(train[0]) / CORPUS).exists():
        return _plan_from_corpus(console, Path(train[0]), dev, test)
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
    say_reasons(console, planned, without=held_out)
    return planned


def say_reasons(console: Console, planned: Planned, *, without: str | None = None) -> None:
    """Why everything is as it is, but for what has been said already."""
    for reason in dict.fromkeys(choice.reason for choice in planned.choices):
        if reason != without:
            console.print(f"  {reason}", markup=False, soft_wrap=True)


def _plan_from_corpus(
    console: Console, folder: Path, dev: Sequence[str], test: Sequence[str]
) -> Planned:
    """The run that a prepared corpus was made for."""
    planned = load_plan(folder)
    corpus = planned.run.train
    assert isinstance(corpus, PreparedCorpus)
    if not dev:
        raise SpecError(
            f"{folder}: a prepared corpus has no texts to set apart, expected files for validation. Give "
            f"them: sightline fit {folder} --dev dev.tsv --out runs/first"
        )
    console.print(
        f"{folder}: a prepared corpus of {corpus.num_examples:,} examples",
        markup=False,
        soft_wrap=True,
    )
    sources = [open_like(corpus.like, files) if files else None for files in (dev, test)]
    run = replace(
        planned.run, train=replace(corpus, path=str(folder)), dev=sources[0], test=sources[1]
    )
    planned = planned._replace(run=run)
    say_reasons(console, planned)
    return planned


def plan_from_recipe(text: str) -> Planned:
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


def plan_from_bundle(
    console: Console, planned: Planned, folder: str, *, keeps_task: bool
) -> Planned:
    """The run, begun with the weights of a model, and with the model's settings unless it keeps its own."""
    run, reason = replace(planned.run, start_from=folder), f"--start-from {folder}"
    choices = chosen(planned.choices, "start_from", "command", reason)
    if keeps_task:
        return Planned(run, choices)
    task = load_bundle(folder).spec
    if task.kind != run.task.kind:
        raise SpecError(
            f"{reason}: the model there is for {task.kind}, and the files call for {run.task.kind}. Give files "
            f"like those that it was trained on, or leave --start-from out."
        )
    console.print(
        f"{folder}: its settings and its weights are begun with", markup=False, soft_wrap=True
    )
    others = [choice for choice in choices if not choice.path.startswith("task.")]
    paths = [setting.path for setting in settings(replace(run, task=task))]
    taken = [Choice(path, "command", reason) for path in paths if path.startswith("task.")]
    return Planned(replace(run, task=task), (*others, *taken))


def with_given(planned: Planned, text: str) -> Planned:
    """One setting changed. The beginnings task. and training. may be left out."""
    path, sign, value = text.partition("=")
    if not sign:
        raise SpecError(f"--set {text}: expected path=value, as in encoder.num_layers=2")
    whole = whole_path(planned.run, path)
    run = with_setting(planned.run, whole, value)
    return Planned(run, chosen(planned.choices, whole, "command", f"--set {text}"))


def whole_path(run: Run, path: str) -> str:
    """The path of a setting of which the beginning task. or training. may have been left out."""
    known = {setting.path for setting in settings(run)}
    groups = {known_path.rpartition(".")[0] for known_path in known}
    return next(
        (full for full in (path, f"task.{path}", f"training.{path}") if full in known | groups),
        path,
    )


def say_findings(console: Console, run: Run) -> None:
    """What a user would want to know of the data before training on it."""
    task, train = run.task, run.train
    if isinstance(task, PictureTaskSpec) or isinstance(train, PreparedCorpus):
        return
    with console.status("looking through the data"):
        findings = check_data(
            train,
            run.dev,
            run.test,
            source_tokeniser=task.source,
            target_tokeniser=task.target if isinstance(task, TransductionSpec) else None,
        )
    for line in findings.lines():
        console.print(f"note: {line}", style="yellow", markup=False, soft_wrap=True)
