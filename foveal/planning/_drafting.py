"""Plan the run of a command from files or a recipe, and from the given settings."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from inspect import isfunction
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from ..bundles import load_bundle
from ..data import Example, InMemory, SourceSpec
from ..data.formats._dialogs import Dialogs
from ..data.formats._opening import ImageSourceSpec
from ..data.formats._rows import Rows
from ..data.formats._tables import AbstractTable
from ..data.streams._prepared import CORPUS, PreparedCorpus
from ..errors import SpecError
from ..specs import settings, with_setting
from ..specs._files import run_file, specs_of
from ..specs._settings import outside_specs
from ..tasks.base._text_spec import AbstractTextSpec
from ..training import Run
from ..training.checkpoints._inputs import inputs_of
from ._checks import check_data
from ._choices import Choice, Planned, chosen, load_plan
from ._draft import Draft
from ._files import open_files, open_same
from ._held_out import DATA, hold_out, keep
from ._plan import plan
from ._recommending import Recommendation, recommend
from ._recommending_dialogs import recommend_dialogs
from ._recommending_pictures import recommend_pictures
from ._signs import working

_TRAIN = "train."
_LONGEST_VALUE = 40  # characters that are printed
# Settings that replace the part with the attention, by all of their names.
_AROUND_ATTENTION = ("task", "task.model", "model", "task.model.decoder", "decoder")
_MOST_CHECKED = (
    200_000  # training examples whose data is checked before the first step, in about two seconds
)
_FEW = 20  # training examples; with fewer, a model can only memorize them


def given_settings(
    texts: Sequence[str],
    *,
    attention: str | None,
    minutes: float | None,
    seed: int | None,
    threads: int | None,
) -> list[str]:
    """Return all settings of the command. The short forms are expanded and come first, because `--set` may refer to
    the chosen attention; only a task, a model or a decoder comes before its attention.
    """
    given = [text for text in texts if text.partition("=")[0] in _AROUND_ATTENTION]
    texts = [text for text in texts if text not in given]
    if attention is not None:
        given.append(f"task.model.decoder.attention={attention}")
    if minutes is not None:
        given += ["training.epochs=none", f"training.minutes={minutes}"]
    if seed is not None:
        given.append(f"training.seed={seed}")
    if threads is not None:
        given.append(f"training.threads={threads}")
    given += texts
    return given


def recipe_specs(recipe: str | None) -> tuple[type, ...]:
    """Return the user-defined spec classes that the file of a recipe lists as SPECS."""
    if recipe is None:
        return ()
    return specs_of(run_file(recipe.partition(":")[0], f"--recipe {recipe}"), f"--recipe {recipe}")


def specs_file(recipe: str | None) -> Path | None:
    """Return the file of a recipe if it lists SPECS, for processes that must run it too; otherwise None."""
    if recipe is None or not recipe_specs(recipe):
        return None
    return Path(recipe.partition(":")[0]).resolve()


class Asked(NamedTuple):
    """The arguments of a command: files, rows or a recipe, and settings as path=value."""

    train: Sequence[str] | Rows
    dev: Sequence[str] | Rows
    test: Sequence[str]
    out: Path
    recipe: str | None
    given: Sequence[str]
    start_from: str | None = None


def draft_run(console: Console, asked: Asked) -> Draft:
    """Plan, check and explain the run of a command, without writing anything."""
    if asked.recipe:
        draft = Draft(_plan_from_recipe(asked.recipe))
    elif isinstance(asked.train, Rows):
        draft = _plan_from_rows(console, asked.train, asked.dev, asked.out)
    else:
        draft = _plan_from_files(console, asked, asked.train)
    if asked.start_from is not None:
        planned = _plan_from_bundle(
            console, draft.planned, asked.start_from, keeps_task=bool(asked.recipe)
        )
        draft = draft._replace(planned=planned)
    draft = draft._replace(epochs=draft.planned.run.training.epochs)
    draft = _with_all_given(draft, asked.given, recipe=asked.recipe)
    draft.check_model()
    if asked.recipe is None:
        draft = _with_trained_tokenizers(console, draft)
        _say_findings(console, draft)
    return draft


def _plan_from_rows(console: Console, train: Rows, dev: Sequence[str] | Rows, out: Path) -> Draft:
    """Plan a run for rows. The rows become files in the folder of the run."""
    console.print(train.reason, markup=False, soft_wrap=True)
    if not dev:
        return _plan_divided(console, InMemory(train.examples), out)
    held = dev.examples if isinstance(dev, Rows) else tuple(open_files(dev).source)
    parts = keep(train.examples, held, out / DATA)
    with working(console, "inferring the task from the rows"):
        planned = plan(parts.train, parts.dev, examples=train.examples)
    say_reasons(console, planned)
    choices = [Choice(part, "data", "rows, written here") for part in ("train", "dev")]
    return Draft(planned._replace(choices=(*planned.choices, *choices)), parts)


def _plan_divided(
    console: Console,
    whole: Iterable[Example],
    out: Path,
    *,
    files: SourceSpec | None = None,
    test: SourceSpec | None = None,
    by: Callable[[Iterable[Example]], Recommendation] = recommend,
) -> Draft:
    """Plan a run that holds out some training examples for validation."""
    with working(console, "splitting off validation examples"):
        parts = hold_out(whole, out / DATA, files=files)
    held_out = (
        f"no --dev: {parts.num_dev:,} of {parts.num_train + parts.num_dev:,} training examples become "
        f"the validation set, in {out / DATA}"
    )
    console.print(held_out, markup=False, soft_wrap=True)
    with working(console, "inferring the task from the files"):
        planned = plan(parts.train, parts.dev, test, examples=parts.train_examples, by=by)
    say_reasons(console, planned)
    choices = [Choice(part, "data", held_out) for part in ("train", "dev")]
    planned = planned._replace(choices=(*planned.choices, *choices))
    return Draft(planned, parts, {} if files is None else {"train": inputs_of(files)})


def _plan_from_files(console: Console, asked: Asked, train: Sequence[str]) -> Draft:
    """Plan a run for files, and print the inferred settings. Settings of the training files (train.target=2) also
    apply to validation and test files, and are applied here.
    """
    dev, test, out, given = asked.dev, asked.test, asked.out, asked.given
    if not train:
        raise SpecError(
            "expected training files or a recipe, got neither. Give a file, for example: foveal fit "
            "train.tsv --dev dev.tsv --out runs/first"
        )
    if isinstance(dev, Rows):
        raise SpecError(
            "got files for training and rows for validation, expected the same kind. Pass both as "
            "files, or both as rows."
        )
    if (Path(train[0]) / CORPUS).exists():
        return Draft(_plan_from_corpus(console, Path(train[0]), dev, test))
    opened = open_files(train)
    console.print(f"{' '.join(train)}: {opened.reason}", markup=False, soft_wrap=True)
    source = _with_columns(opened.source, given)
    by = recommend_pictures if isinstance(source, ImageSourceSpec) else recommend
    if isinstance(source, Dialogs):
        by = recommend_dialogs
    of_dev = open_same(source, dev, "dev") if dev else None
    of_test = open_same(source, test, "test") if test else None
    choices = [Choice(_path_of(text), "command", f"--set {text}") for text in _of_train(given)]
    if of_dev is not None:
        with working(console, "inferring the task from the files"):
            planned = plan(source, of_dev, of_test, by=by)
        say_reasons(console, planned)
        return Draft(planned._replace(choices=(*planned.choices, *choices)))
    return _plan_divided(console, source, out, files=source, test=of_test, by=by)


def _of_train(given: Sequence[str]) -> list[str]:
    return [text for text in given if text.startswith(_TRAIN)]


def _path_of(text: str) -> str:
    return text.partition("=")[0]


def _with_columns(source: SourceSpec, given: Sequence[str]) -> SourceSpec:
    """Return the source with the settings that were given for the training files."""
    for text in _of_train(given):
        path, _, value = text.removeprefix(_TRAIN).partition("=")
        source = with_setting(source, path, value)
    if isinstance(source, AbstractTable) and source.source == source.target:
        raise SpecError(
            f"train.source and train.target are the same column, {source.source!r}, expected two "
            f"columns. For example: --set train.source=0 --set train.target=1"
        )
    return source


def say_reasons(console: Console, planned: Planned) -> None:
    """Print the chosen settings with their values and reasons."""
    values = {setting.path: setting.text for setting in settings(planned.run)}
    by_reason = dict[str, list[str]]()
    for choice in planned.choices:
        value = values.get(choice.path, "")
        said = f"{choice.path}={value}" if 0 < len(value) <= _LONGEST_VALUE else choice.path
        by_reason.setdefault(choice.reason, []).append(said)
    for reason, chosen_settings in by_reason.items():
        names = ", ".join(chosen_settings)
        console.print(f"  {names}: {reason}", markup=False, soft_wrap=True)


def _plan_from_corpus(
    console: Console, folder: Path, dev: Sequence[str], test: Sequence[str]
) -> Planned:
    """Return the run for which a prepared corpus was made."""
    planned = load_plan(folder)
    corpus = planned.run.train
    assert isinstance(corpus, PreparedCorpus)
    if not dev:
        raise SpecError(
            f"{folder}: expected validation files, got none; a prepared corpus has no texts to split. "
            f"Add them: foveal fit {folder} --dev dev.tsv --out runs/first"
        )
    console.print(
        f"{folder}: a prepared corpus of {corpus.num_examples:,} examples",
        markup=False,
        soft_wrap=True,
    )
    run = replace(
        planned.run,
        train=replace(corpus, path=str(folder)),
        dev=open_same(corpus.like, dev, "dev"),
        test=open_same(corpus.like, test, "test") if test else None,
    )
    planned = planned._replace(run=run)
    say_reasons(console, planned)
    return planned


def _plan_from_recipe(text: str) -> Planned:
    """Return the run that a function in a file returns."""
    path, _, name = text.partition(":")
    name, option = name or "recipe", f"--recipe {text}"
    if not Path(path).is_file():
        raise SpecError(
            f"{option}: the Python file {path} does not exist. Use file.py:function, for example "
            f"recipes/g2p_low.py:recipe"
        )
    module = run_file(path, option)
    function = vars(module).get(name)
    run: Any = function() if callable(function) else None
    if not isinstance(run, Run):
        functions = [
            key
            for key, value in vars(module).items()
            if isfunction(value) and value.__module__ == module.__name__ and not key.startswith("_")
        ]
        raise SpecError(
            f"--recipe {text}: expected a function {name}() that returns a Run, got "
            f"{type(run).__name__}. {path} has {', '.join(functions)}."
        )
    paths = [setting.path for setting in settings(run)]
    return Planned(run, tuple(Choice(path, "recipe", f"set by {text}") for path in paths))


def _plan_from_bundle(
    console: Console, planned: Planned, folder: str, *, keeps_task: bool
) -> Planned:
    """Start the run from the weights of a model, with the settings of that model unless `keeps_task`."""
    run, reason = replace(planned.run, start_from=folder), f"--start-from {folder}"
    choices = chosen(planned.choices, "start_from", "command", reason)
    if keeps_task:
        return Planned(run, choices)
    task = load_bundle(folder, also=outside_specs(planned.run)).spec
    if task.kind != run.task.kind:
        raise SpecError(
            f"{reason}: expected a model for {run.task.kind}, the task of the files, got a model for "
            f"{task.kind}. Use files like the training files of this model, or remove --start-from."
        )
    console.print(
        f"Starting from the settings and weights of {folder}", markup=False, soft_wrap=True
    )
    others = [choice for choice in choices if not choice.path.startswith("task.")]
    paths = [setting.path for setting in settings(replace(run, task=task))]
    taken = [Choice(path, "command", reason) for path in paths if path.startswith("task.")]
    return Planned(replace(run, task=task), (*others, *taken))


def _with_all_given(draft: Draft, given: Sequence[str], *, recipe: str | None) -> Draft:
    """Apply all settings of the command, except the settings that `_plan_from_files` has applied."""
    planned = draft.planned
    if recipe is None and not isinstance(planned.run.train, PreparedCorpus):
        given = [text for text in given if not text.startswith(_TRAIN)]
    also = recipe_specs(recipe)
    for text in given:
        planned = with_given(planned, text, also)
    return draft._replace(planned=planned)


def with_given(planned: Planned, text: str, also: Sequence[type] = ()) -> Planned:
    """Change one setting. The prefixes task.model., task. and training. may be omitted."""
    path, sign, value = text.partition("=")
    if not sign:
        raise SpecError(
            f"--set: expected path=value, for example encoder.num_layers=2, got {text!r}. "
            f"Add the value after ="
        )
    whole = whole_path(planned.run, path)
    run = with_setting(planned.run, whole, value, also=also)
    return Planned(run, chosen(planned.choices, whole, "command", f"--set {text}"))


def whole_path(run: Run, path: str) -> str:
    """Return the full path of a setting whose prefix task.model., task. or training. may be omitted."""
    known = {setting.path for setting in settings(run)}
    groups = {known_path.rpartition(".")[0] for known_path in known}
    begun = (f"{start}{path}" for start in ("", "task.", "task.model.", "training."))
    return next((full for full in begun if full in known | groups), path)


def _with_trained_tokenizers(console: Console, draft: Draft) -> Draft:
    """Train the tokenizers that `--set` chose, because the checks of the data read their tokens."""
    run = draft.planned.run
    task = run.task
    if not isinstance(task, AbstractTextSpec) or isinstance(run.train, PreparedCorpus):
        return draft
    with working(console, "training the tokenizers"):
        trained = task.trained_on(draft.train())
    return draft._replace(planned=draft.planned._replace(run=replace(run, task=trained)))


def _say_findings(console: Console, draft: Draft) -> None:
    """Print problems of the data that a user should know before training."""
    run = draft.planned.run
    task = run.task
    source = task.tokenizer("source")
    if source is None or task.inputs.picture or isinstance(run.train, PreparedCorpus):
        return
    with working(console, "checking the data"):
        findings = check_data(
            draft.train(),
            draft.dev(),
            run.test,
            source_tokenizer=source,
            target_tokenizer=task.tokenizer("target"),
            max_train=_MOST_CHECKED,
        )
    num_train, lines = findings.num_examples["train"], findings.lines()
    if num_train < _FEW:
        number = "1 example" if num_train == 1 else f"{num_train} examples"
        lines.insert(0, f"train: {number}. A useful model needs some hundreds; add more data.")
    for line in lines:
        console.print(f"note: {line}", style="yellow", markup=False, soft_wrap=True)
