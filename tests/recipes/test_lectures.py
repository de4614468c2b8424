"""The experiments of the lectures, from their data to their tables, with models trained for a few
steps.
"""

import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.lectures.__main__ import EXPERIMENTS, main
from benchmarks.results import Results
from foveal.data import tsv
from foveal.models import WordEncoderSpec
from foveal.specs import from_json, to_json
from foveal.tasks import TransductionSpec
from foveal.training import Run
from recipes import (
    babi,
    delay,
    documents,
    entailment,
    execute,
    hypotheses,
    memory,
    spoken_digits,
    table,
    tree_transduction,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120


@pytest.fixture
def formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with a few formulas."""
    monkeypatch.setattr(tree_transduction, "FOLDER", tmp_path / "cache/formulas")
    monkeypatch.setattr(tree_transduction, "NUM_TRAIN", 20)
    monkeypatch.setattr(tree_transduction, "NUM_DEV", 3)
    monkeypatch.setattr(tree_transduction, "NUM_TEST", 4)
    tree_transduction.part("train")
    return tmp_path / "cache/formulas"


@pytest.fixture
def premises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the pairs of entailment, which a trained parser must parse for one of the cases."""
    for recipe in (entailment, hypotheses):
        monkeypatch.setattr(recipe, "part", lambda *_, **__: tsv(tmp_path / "pairs.tsv"))


@pytest.fixture
def few_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write only the first documents of each part: all of them take half a minute."""
    write = documents.write
    monkeypatch.setattr(documents, "FOLDER", tmp_path / "cache/documents")
    monkeypatch.setattr(documents, "write", lambda path, found: write(path, islice(found, 3)))


@pytest.fixture
def few_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write only a few recordings of each part: all of them take almost a minute."""
    monkeypatch.setattr(spoken_digits, "FOLDER", tmp_path / "cache/spoken_digits")
    monkeypatch.setattr(spoken_digits, "NUM_STRINGS", dict.fromkeys(spoken_digits.NUM_STRINGS, 2))


@pytest.fixture
def stories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with short stories, the same for every task."""
    folder = tmp_path / "cache/babi"
    (folder / "en-valid").mkdir(parents=True)
    lines = []
    for n in range(24):
        who, where = ("Ann", "Bob", "Eve")[n % 3], ("hall", "barn")[n % 2]
        lines += [
            f"1 {who} took the cup.",
            f"2 {who} went to the {where}.",
            "3 Pat slept.",
            f"4 Where is the cup?\t{where}\t1 2",
        ]
    for task in babi.TASKS:
        for part in ("train", "valid", "test"):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"en-valid/qa{task}_{part}.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(babi, "FOLDER", folder)
    monkeypatch.setattr(babi, "ARCHIVE", folder / "en-valid/qa2_train.txt")
    return folder


def short(run: Run) -> Run:
    """Train a small model for two steps."""
    task = run.task
    if isinstance(task, TransductionSpec):
        model = task.model
        assert isinstance(model.encoder, WordEncoderSpec)
        states = model.encoder.states and replace(model.encoder.states, hidden_size=4)
        task = replace(
            task,
            model=replace(
                model,
                encoder=replace(model.encoder, embedding_size=4, states=states),
                decoder=replace(model.decoder, embedding_size=4, hidden_size=4),
            ),
            prediction=replace(task.prediction, max_length=10),
        )
    return replace(
        run, task=task, training=replace(run.training, epochs=None, steps=2, batch_size=8)
    )


def fitted_and_scored(
    name: str, cases: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Results:
    """Run the commands that fit and score the whole experiment."""
    experiment = EXPERIMENTS[name]
    runs = experiment._replace(run=lambda case: short(experiment.run(case)))
    monkeypatch.setitem(EXPERIMENTS, name, runs)
    rest = ["--runs", str(folder / "runs"), "--cases", *cases, "--seeds", "1", "2"]
    main(["fit", name, *rest])
    main(["score", name, *rest, "--results", str(folder / "results")])
    return Results.load(folder / f"results/{name}.json")


def test_formulas_are_large_once_and_alike(formulas: Path, tmp_path: Path) -> None:
    tree_transduction.write(tmp_path / "again")
    for name in ("train", "dev", *(f"test_{depth}" for depth in range(2, 7))):
        text = (formulas / f"{name}.tsv").read_text(encoding="utf-8")
        assert text == (tmp_path / f"again/{name}.tsv").read_text(encoding="utf-8")
    sources = [example.source for part in formulas.glob("*.tsv") for example in _read(part)]
    assert len(sources) == len(set(sources)) == 3 * 20 + 3 * 3 + 5 * 4
    assert all(
        target.startswith("( ")
        for target in (e.target or "" for e in _read(formulas / "train.tsv"))
    )
    tree_transduction.write(formulas)  # as a second, slower process would
    assert not list(formulas.parent.glob("formulas.*"))


def _read(path: Path) -> tree_transduction.TabSeparated:
    return tree_transduction.part(path.stem)


def test_tree_transduction_is_fitted_and_scored(
    formulas: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert formulas.exists()
    monkeypatch.setattr("benchmarks.lectures._formulas.LONGEST", 10)
    results = fitted_and_scored(
        "tree_transduction", ["none", "simple", "structured"], tmp_path, monkeypatch
    )
    rows = {row.name: row for row in results.rows}
    shown = [name for name in rows if ": depth" in name]
    assert len(shown) == 5 * (3 + 1)  # and one difference
    assert all(0 <= rows[f"structured: depth {depth}"].value <= 100 for depth in range(2, 7))
    assert rows["structured: depth 2"].target == 99.2
    difference = rows["structured - simple: depth 2"].value
    apart = rows["structured: depth 2"].value - rows["simple: depth 2"].value
    assert difference == pytest.approx(apart)
    assert set(results.data) == {f"formulas/{path.name}" for path in formulas.glob("*.tsv")}


def test_babi_is_fitted_and_scored(
    stories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stories.exists()
    kinds = ("2_large_slow", "2_small_fast", "7_large_slow", "16_large_slow")
    cases = [f"{steps}_{kind}" for kind in kinds for steps in babi.STEPS]
    results = fitted_and_scored("babi", cases, tmp_path, monkeypatch)
    rows = {row.name: row for row in results.rows}
    for steps in ("soft", "chain"):
        for kind, tasks in (("answers", (2, 7, 16)), ("facts", (2, 16))):
            values = [rows[f"task {task}: {steps} {kind}"].value for task in tasks]
            assert rows[f"mean: {steps} {kind}"].value == pytest.approx(sum(values) / len(values))
        assert f"task 7: {steps} facts" not in rows
    assert [name for name in rows if name.startswith("task")] == [
        f"task {task}: {steps} {kind}"
        for task in (2, 7, 16)
        for steps in babi.STEPS
        for kind in ("answers", "facts")
        if (task, kind) != (7, "facts")
    ]
    assert rows["mean: soft answers"].target is None
    assert (
        rows["mean: chain answers"].target == rows["Kim et al. 2017: chain answers"].value == 81.0
    )
    assert rows["mean: chain facts"].target == 53.7


@pytest.mark.usefixtures("few_digits", "few_documents", "formulas", "premises", "stories")
def test_every_case_has_its_json() -> None:
    for experiment in EXPERIMENTS.values():
        for case in experiment.cases:
            run = experiment.run(case)
            assert (
                from_json(
                    Run, to_json(run), also=(delay.Delays, execute.Programs, memory.Sequences)
                )
                == run
            )
    assert babi.chain_16() == babi.recipe("chain_16_large_slow")
    assert tree_transduction.simple() == tree_transduction.recipe("simple")


def test_a_recipe_may_import_what_lies_beside_its_folder(tmp_path: Path) -> None:
    """A console script does not have the current folder on its path."""
    (tmp_path / "beside.py").write_text("STEPS = 2\n", encoding="utf-8")
    (tmp_path / "words.tsv").write_text("ab\tAB\nba\tBA\n", encoding="utf-8")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/small.py").write_text(
        "from beside import STEPS\n"
        "from foveal.data import tsv\n"
        "from foveal.tasks import TransductionSpec\n"
        "from foveal.training import Run, TrainingSpec\n"
        "def recipe():\n"
        "    return Run(task=TransductionSpec(), train=tsv('words.tsv'),\n"
        "               training=TrainingSpec(steps=STEPS))\n",
        encoding="utf-8",
    )
    program = "import sys; sys.path.remove(''); from foveal.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "fit", "--recipe", "recipes/small.py", "--out", "run"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/weights.safetensors").exists()


def test_the_tables_are_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.main(["structured_attention"])
    printed = capsys.readouterr().out
    scored = [
        name for name in table.STRUCTURED_ATTENTION if (ROOT / f"results/{name}.json").exists()
    ]
    assert re.findall("^## (.+)$", printed, re.MULTILINE) == scored
    assert all(f"results/{name}.json" in printed for name in scored)
    with pytest.raises(SystemExit, match="expected one of structured_attention"):
        table.main(["nothing"])
    monkeypatch.setattr(table, "RESULTS", tmp_path)
    with pytest.raises(SystemExit, match="tree_transduction has not been scored"):
        table.main(["tree_transduction"])
