"""The commands as a user runs them: real processes, real files."""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from foveal.bundles import load_bundle
from foveal.cli._main import main
from foveal.planning._choices import load_plan

pytestmark = pytest.mark.slow

SECONDS = 120
WORDS = [(a + b, f"{a} {b}") for a in "abcdefgh" for b in "abcdefgh"]


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def foveal(*words: object, folder: Path, text: str = "", columns: int = 120) -> Done:
    """Run the command in this process, in another folder, with a real file as its standard input."""
    given = folder / "standard_input"
    given.write_text(text, encoding="utf-8")
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        given.open(encoding="utf-8") as stdin,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", stdin)
        patch.setenv("COLUMNS", str(columns))
        try:
            main([str(word) for word in words])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


def process(*words: object, folder: Path, program: str = "") -> Done:
    """Run the command, or another program, in a new process."""
    command = ["-c", program] if program else ["-m", "foveal.cli", *map(str, words)]
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "120"},
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def write(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data files and a model that was trained on them for a few steps."""
    folder = tmp_path_factory.mktemp("fitted")
    write(folder / "train.tsv", WORDS)
    write(folder / "dev.tsv", WORDS[::7])
    done = process(
        *("fit", "train.tsv", "--dev", "dev.tsv", "--test", "dev.tsv", "--out", "runs/words"),
        *("--set", "training.epochs=12", "--set", "encoder.hidden_size=16"),
        *("--set", "decoder.hidden_size=16", "--set", "decoder.attention.total=2"),
        *("--attention", "segment"),
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "transduction" in done.stdout
    assert "characters" in done.stdout
    assert "runs/words is ready" in done.stdout
    return folder


def test_fit_leaves_a_bundle_with_everything(fitted: Path) -> None:
    run = fitted / "runs/words"
    names = {path.name for path in run.iterdir()}
    assert {"spec.json", "weights.safetensors", "vocabulary.json", "metrics.json"} <= names
    assert {"curves.svg", "samples.tsv", "log.jsonl", "run.json", "choices.json"} <= names
    task = load_bundle(run)
    assert task.spec.model.decoder.attention.kind == "segment"
    assert task.spec.model.decoder.attention.total == 2
    assert task.spec.model.encoder.hidden_size == 16


def test_predict_reads_lines_and_writes_a_table(fitted: Path) -> None:
    done = foveal("predict", "runs/words", folder=fitted, text="ab\ncd\n")
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == ["ab", "cd"]
    for _, rank, _, score, confidence in rows:
        assert rank == "1"
        assert float(score) < 0
        assert 0 <= float(confidence) <= 1


def test_predict_gives_n_best_and_attention(fitted: Path) -> None:
    (fitted / "words.txt").write_text("ab\r\ncd\textra\n", encoding="utf-8")
    done = foveal("predict", "runs/words", "words.txt", "--nbest", "3", folder=fitted)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[:2] for row in rows] == [[w, str(n)] for w in ("ab", "cd") for n in (1, 2, 3)]
    scores = [float(row[3]) for row in rows]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    done = foveal(
        *("predict", "runs/words", "words.txt", "--format", "jsonl", "--attention"), folder=fitted
    )
    first = json.loads(done.stdout.splitlines()[0])
    assert first["attention"]["sources"] == ["a", "b"]
    assert len(first["attention"]["weights"]) == len(first["attention"]["targets"])


def test_predict_is_the_same_from_a_file_a_pipe_and_python(fitted: Path) -> None:
    words = [source for source, _ in WORDS]
    (fitted / "all.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    piped = foveal("predict", "runs/words", folder=fitted, text="\n".join(words))
    named = foveal("predict", "runs/words", "all.txt", folder=fitted)
    alone = foveal("predict", "runs/words", folder=fitted, text=words[5] + "\n")
    assert piped.stdout == named.stdout
    assert alone.stdout.splitlines() == [piped.stdout.splitlines()[5]]


def test_evaluate_gives_scores_with_intervals(fitted: Path) -> None:
    done = foveal("evaluate", "runs/words", "dev.tsv", "--json", folder=fitted)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["examples"] == len(WORDS[::7])
    assert found["metrics"]["wer"]["low"] <= found["metrics"]["wer"]["value"]
    written = json.loads((fitted / "runs/words/metrics.json").read_text())
    assert found["metrics"]["wer"]["value"] == written["dev"]["wer"]["value"]
    shown = foveal(*("evaluate", "runs/words", "dev.tsv", "--against", "runs/words"), folder=fitted)
    assert "calibration error" in shown.stdout
    assert "+0.00" in shown.stdout  # the run is compared with itself


def test_explain_config_says_where_settings_come_from(fitted: Path) -> None:
    done = foveal("explain-config", "runs/words", folder=fitted)
    rows = {line.split("=")[0]: line for line in done.stdout.splitlines() if line[:1].isalpha()}
    assert rows["task.model.encoder.hidden_size"] == "task.model.encoder.hidden_size=16  (command)"
    assert rows["task.source"].endswith("(data)")
    assert rows["training.clip_norm"].endswith("(default)")
    changed = foveal("explain-config", "runs/words", "--changed", folder=fitted)
    assert "clip_norm" not in changed.stdout


def test_fit_without_dev_sets_some_apart(fitted: Path) -> None:
    done = foveal(*("fit", "train.tsv", "--out", "runs/apart", "--set", "steps=2"), folder=fitted)
    assert done.returncode == 0, done.stderr
    assert "become the validation set" in done.stdout
    parts = [(fitted / f"runs/apart/data/{name}.jsonl").read_text() for name in ("train", "dev")]
    assert sum(text.count("\n") for text in parts) == len(WORDS)
    assert load_plan(fitted / "runs/apart").run.training.steps == 2


def test_a_label_may_stand_in_the_first_column(tmp_path: Path) -> None:
    texts = [("good" if n % 2 else "bad", f"the film number {n} was {n % 2}") for n in range(80)]
    write(tmp_path / "train.tsv", texts)
    write(tmp_path / "few.tsv", texts[:4])
    done = foveal(
        *("fit", "train.tsv", "--dev", "few.tsv", "--out", "runs/labels", "--set", "steps=2"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "label in the first (2 different in 80 lines)" in done.stdout
    labels = load_bundle(tmp_path / "runs/labels").vocabularies.labels
    assert labels is not None
    assert sorted(labels.names) == ["bad", "good"]
    done = foveal("evaluate", "runs/labels", "few.tsv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 examples; columns as in training" in done.stdout


def test_images_are_not_taken_for_texts(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("1.png\ta cat\n2.png\ta dog\n")
    done = foveal("fit", "train.tsv", "--out", "run", folder=tmp_path)
    assert done.returncode != 0
    assert "names of images in the first column" in done.stdout
    assert "does not exist, expected an image" in " ".join(done.stderr.split())
    assert not (tmp_path / "run" / "bundle").exists()


def test_a_recipe_is_the_python_call(fitted: Path) -> None:
    (fitted / "recipe.py").write_text(
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from foveal.planning._choices import load_plan\n"
        "def short():\n"
        "    run = load_plan(Path('runs/words')).run\n"
        "    return replace(run, training=replace(run.training, epochs=None, steps=3))\n"
    )
    done = foveal("fit", "--recipe", "recipe.py:short", "--out", "runs/recipe", folder=fitted)
    assert done.returncode == 0, done.stderr
    program = "from recipe import short; short().fit('runs/python')"
    assert process(program=program, folder=fitted).returncode == 0
    weights = [
        (fitted / "runs" / name / "weights.safetensors").read_bytes()
        for name in ("recipe", "python")
    ]
    assert weights[0] == weights[1]


def test_a_model_is_gone_on_from_with_other_data(fitted: Path) -> None:
    write(fitted / "more.tsv", [(a + b, f"{a} {b}") for a in "defghij" for b in "defghij"])
    done = foveal(
        *(
            "fit",
            "more.tsv",
            "--dev",
            "more.tsv",
            "--out",
            "runs/more",
            "--start-from",
            "runs/words",
        ),
        *("--set", "training.epochs=none", "--set", "training.steps=3"),
        folder=fitted,
    )
    assert done.returncode == 0, done.stderr
    assert "Starting from the settings and weights of runs/words" in done.stdout
    first, second = load_bundle(fitted / "runs/words"), load_bundle(fitted / "runs/more")
    assert second.spec == first.spec
    assert set("ij") <= set(second.vocabularies.source.tokens)
    planned = load_plan(fitted / "runs/more")
    choice = planned.choice_of("task.model.encoder.hidden_size")
    assert choice is not None
    assert choice.reason == "--start-from runs/words"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fti",), "Did you mean fit?"),
        (("fit", "--out", "runs/x"), "expected training files or a recipe, got neither"),
        (("fit", "none.tsv", "--out", "runs/x"), "none.tsv: cannot be read"),
        (("fit", "train.tsv", "--out", "runs/x", "--set", "encoder.layers=2"), "unknown setting"),
        (("fit", "train.tsv", "--out", "runs/x", "--set", "steps"), "expected path=value"),
        (("fit", "train.tsv", "--out", "runs/x", "--attention", "segments"), "segment"),
        (("fit", "--recipe", "none.py", "--out", "runs/x"), "the Python file"),
        (("fit", "train.tsv", "--out", "runs/x", "--start-from", "runs/none"), "runs/none"),
        (
            ("fit", "said.tsv", "--out", "runs/x", "--start-from", "runs/words"),
            "expected a model for classification, the task of the files, got a model for transduction",
        ),
        (("predict", "runs/none"), "runs/none"),
        (("predict", "runs/words", "train.tsv", "--nbest", "0"), "nbest"),
        (("evaluate", "runs/words", "one.tsv"), "one.tsv, line 1"),
        (("explain-config", "runs"), "run.json"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(fitted: Path, words: tuple[str, ...], said: str) -> None:
    (fitted / "one.tsv").write_bytes(b"\xff\xff\n")
    write(fitted / "said.tsv", [(f"{word} is {word}", "yes") for word, _ in WORDS])
    done = foveal(*words, folder=fitted)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_overview_needs_no_torch(tmp_path: Path) -> None:
    program = "import sys; from foveal.cli import main; main([]); print('torch' in sys.modules)"
    done = process(program=program, folder=tmp_path)
    assert "explain-config" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"


def test_a_reader_that_has_had_enough_is_no_error(fitted: Path) -> None:
    write(fitted / "many.tsv", WORDS * 200)
    command = f"{sys.executable} -m foveal.cli predict runs/words many.tsv --beam-size 1 --quiet | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=fitted,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
