"""`fit` writes to a run folder only after all checks, and only one `fit` uses a folder at a time."""

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from foveal.cli import _fit
from foveal.data.streams._prepared import PreparedCorpus
from foveal.errors import CheckpointError
from foveal.planning._choices import load_plan
from foveal.training import _outputs
from foveal.training.checkpoints._lock import locked
from tests.cli.test_commands import WORDS, Done, foveal, write

pytestmark = pytest.mark.slow

QUICK = (
    *("--set", "training.epochs=none", "--set", "training.steps=3"),
    *("--set", "encoder.hidden_size=8", "--set", "decoder.hidden_size=8"),
)

STEPS = ("--set", "training.steps=2")


@pytest.fixture(scope="module", autouse=True)
def _no_pictures() -> Iterator[None]:
    """Skip curves and reports: they take longer than these runs, and other tests cover them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_outputs, "draw_curves", lambda log, out: None)
        patch.setattr(_fit, "_write_report", lambda console, out, also: None)
        yield


def contents(folder: Path) -> dict[str, str]:
    """Return every file below a folder, with a digest of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def fit(folder: Path, *words: str) -> Done:
    return foveal("fit", *words, *QUICK, folder=folder)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose validation set was held out, and files that do not match the run."""
    folder = tmp_path_factory.mktemp("begun")
    write(folder / "train.tsv", WORDS)
    write(folder / "other.tsv", [(source, target[::-1]) for source, target in WORDS])
    done = fit(folder, "train.tsv", "--out", "run")
    assert done.returncode == 0, done.stderr
    assert "become the validation set" in done.stdout
    return folder


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("other.tsv",), "the training files differ: the run started with train.tsv"),
        (("train.tsv", "--dev", "other.tsv"), "run/data/"),
        (
            ("train.tsv", "--set", "training.learning_rate=0.5"),
            "learning_rate was 0.002 and is 0.5",
        ),
        (("train.tsv", "--seed", "7"), "training.seed was 1 and is 7"),
        (
            ("train.tsv", "--set", "train.source=1", "--set", "train.target=0"),
            "run/data/train.jsonl (training) has changed",
        ),
        (("train.tsv", "--set", "encoder.hidden_size=none"), "hidden_size"),
        (("train.tsv", "--attention", "nonsense"), "nonsense"),
    ],
)
def test_a_refused_fit_leaves_every_byte_of_a_run(
    begun: Path, words: tuple[str, ...], says: str
) -> None:
    before = contents(begun / "run")
    done = fit(begun, *words, "--out", "run")
    assert done.returncode == 2
    assert says in done.stderr
    assert contents(begun / "run") == before


def test_an_edited_training_file_is_refused_by_name(begun: Path) -> None:
    before, text = contents(begun / "run"), (begun / "train.tsv").read_text(encoding="utf-8")
    write(begun / "train.tsv", [(source, target[::-1]) for source, target in WORDS])
    try:
        done = fit(begun, "train.tsv", "--out", "run")
    finally:
        (begun / "train.tsv").write_text(text, encoding="utf-8")
    assert done.returncode == 2
    assert "train.tsv (training) has changed since the run started" in done.stderr
    assert "--fresh" in done.stderr
    assert "another --out" in done.stderr
    assert contents(begun / "run") == before


def test_the_same_files_elsewhere_resume_and_fresh_takes_others(
    begun: Path, tmp_path: Path
) -> None:
    for name in ("train.tsv", "other.tsv"):
        (tmp_path / name).write_bytes((begun / name).read_bytes())
    subprocess.run(["cp", "-r", begun / "run", tmp_path / "run"], check=True)
    (tmp_path / "train.tsv").rename(tmp_path / "moved.tsv")
    resumed = fit(tmp_path, "moved.tsv", "--out", "run")
    assert "after step 3" in resumed.stdout, resumed.stderr
    again = fit(tmp_path, "other.tsv", "--out", "run", "--fresh")
    assert again.returncode == 0, again.stderr
    assert "h h" not in (tmp_path / "run/data/dev.jsonl").read_text(encoding="utf-8")[:20]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--set", "encoder.hidden_size=1.5"),
        ("--set", "encoder.hidden_size=1000000000"),
        ("--set", "no.such.thing=1"),
        ("--attention", "nonsense"),
        ("--attention", "multi_head", "--set", "decoder.attention.num_heads=3"),
        ("--test", "test.jsonl"),
    ],
)
def test_a_wrong_setting_leaves_no_folder_behind(tmp_path: Path, wrong: tuple[str, ...]) -> None:
    write(tmp_path / "train.tsv", WORDS)
    (tmp_path / "test.jsonl").write_text('{"source": "ab", "target": "a b"}\n', encoding="utf-8")
    done = foveal("fit", "train.tsv", "--out", "runs/new", *QUICK[:4], *wrong, folder=tmp_path)
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", WORDS)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.txt").write_text("dear reader", encoding="utf-8")
    for out in ("thesis", "."):
        done = fit(tmp_path, "train.tsv", "--out", out)
        assert done.returncode == 2
        assert "with other files" in done.stderr
        assert "--out" in done.stderr
    assert contents(tmp_path / "thesis").keys() == {"chapter.txt"}
    for out in ("train.tsv", "train.tsv/run", "/proc/none/run"):
        done = fit(tmp_path, "train.tsv", "--out", out)
        assert done.returncode == 2
        assert "cannot be created" in done.stderr


def test_two_at_once_are_refused_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from foveal.training.checkpoints._lock import locked\n"
        "with locked(Path('run')):\n    print('held', flush=True); time.sleep(60)"
    )
    write(tmp_path / "train.tsv", WORDS)
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        done = fit(tmp_path, "train.tsv", "--out", "run")
        os.kill(holder.pid, signal.SIGKILL)
    assert done.returncode == 2
    assert f"pid {holder.pid} on {socket.gethostname()}" in done.stderr
    assert contents(tmp_path / "run").keys() == {".lock"}
    assert fit(tmp_path, "train.tsv", "--out", "run").returncode == 0
    assert not (tmp_path / "run/.lock").exists()


def test_a_lock_waits_for_a_holder_that_is_ending(tmp_path: Path) -> None:
    is_held, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(tmp_path):
            is_held.set()
            time.sleep(0.3)
            is_over.set()

    with ThreadPoolExecutor() as pool:
        pool.submit(hold)
        assert is_held.wait(timeout=10.0)
        with pytest.raises(CheckpointError, match="another process is training"), locked(tmp_path):
            pass
        with locked(tmp_path, patience=60.0):
            assert is_over.is_set()
    assert list(tmp_path.iterdir()) == []


def tagged(path: Path, number: int) -> Path:
    """Write sentences of words and tags, with an empty line after each."""
    words = ["the\tDET", "dog\tNOUN", "barks\tVERB", f"w{number}\tX", "loudly\tADV"]
    path.write_text(
        "".join("\n".join(words[n % 2 :]) + "\n\n" for n in range(number)), encoding="utf-8"
    )
    return path


def test_tagged_words_are_read_as_such_whatever_the_name(tmp_path: Path) -> None:
    tagged(tmp_path / "train.conll", 40)
    tagged(tmp_path / "test.annotated", 7)
    (tmp_path / "dev.words").write_text("the\tDET\ndog\tNOUN\n", encoding="utf-8")  # no empty line
    done = foveal(
        *("fit", "train.conll", "--dev", "dev.words", "--test", "test.annotated", "--out", "run"),
        *QUICK[:4],
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    run = load_plan(tmp_path / "run").run
    for part in (run.train, run.dev, run.test):
        assert part is not None
        assert part.kind == "conllu"
    assert run.task.kind == "tagging"
    evaluated = foveal("evaluate", "run", "test.annotated", folder=tmp_path)
    assert evaluated.stdout.startswith("7 examples")
    alone = foveal("fit", "test.annotated", "--out", "alone", *QUICK[:4], folder=tmp_path)
    assert "its tag in the last column" in alone.stdout


@pytest.mark.parametrize("name", ["dev.jsonl", "dev.txt", "dev.conllu"])
def test_a_mix_of_formats_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "train.tsv", WORDS)
    texts = {
        "dev.jsonl": '{"source": "ab", "target": "a b"}\n',
        "dev.txt": "ab\ncd\n",
        "dev.conllu": "1\tab\t_\tX\t_\t_\t_\t_\t_\t_\n",
    }
    (tmp_path / name).write_text(texts[name], encoding="utf-8")
    done = fit(tmp_path, "train.tsv", "--dev", name, "--out", "run")
    assert done.returncode == 2
    assert f"--dev {name}: expected the format of the training files" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("with_dev", [False, True])
def test_a_column_that_is_chosen_holds_for_all_files(tmp_path: Path, with_dev: bool) -> None:
    rows = [(f"{source}\t{target}", source.upper()) for source, target in WORDS]
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        write(tmp_path / name, rows)
    files = ("train.tsv", "--test", "test.tsv", *(("--dev", "dev.tsv") if with_dev else ()))
    done = fit(tmp_path, *files, "--out", "plain")
    assert "ignored: the third" in done.stdout
    assert "--set train.target=2" in done.stdout
    done = fit(tmp_path, *files, "--set", "train.target=2", "--out", "third")
    assert done.returncode == 0, done.stderr
    run = load_plan(tmp_path / "third").run
    with contextlib.chdir(tmp_path):
        for part in (run.train, run.dev, run.test):
            assert part is not None
            assert not isinstance(part, PreparedCorpus)
            assert {example.target == example.text.upper() for example in part} == {True}


def test_a_file_of_one_line_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", WORDS[:1])
    done = fit(tmp_path, "train.tsv", "--out", "run")
    assert done.returncode == 2
    assert "1 example" in done.stderr
    assert not (tmp_path / "run").exists()
    write(tmp_path / "train.tsv", WORDS[:2])
    done = fit(tmp_path, "train.tsv", "--out", "run")
    assert "1 of 2 training examples become the validation set" in done.stdout
    assert done.returncode == 0, done.stderr


def test_a_language_model_of_plain_text_needs_no_validation_file(tmp_path: Path) -> None:
    text = "to be or not to be\nthat is the question\n" * 50
    (tmp_path / "input.txt").write_text(text, encoding="utf-8")
    done = foveal("fit", "input.txt", "--out", "lm", *QUICK[:4], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "10 of 100 training examples become the validation set" in done.stdout
    held = (tmp_path / "lm/data/dev.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(held) == 10
    assert load_plan(tmp_path / "lm").run.task.kind == "language_modeling"


def test_images_need_no_recipe(tmp_path: Path) -> None:
    """Labels, captions and questions are trained for two steps each, with examples held out."""
    colors = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200)}
    names = [(f"{color}{n}.png", color) for n in range(12) for color in colors]
    for name, color in names:
        Image.new("RGB", (8, 8), colors[color]).save(tmp_path / name)
    texts = {
        "labels": [f"{name}\t{color}" for name, color in names],
        "captions": [f"{name}\tthere is something {color} {name[:-4]}" for name, color in names],
        "questions": [f"{name}\tis it red?\t{color == 'red'}" for name, color in names],
    }
    for what, lines in texts.items():
        (tmp_path / f"{what}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        done = foveal("fit", f"{what}.tsv", "--out", what, *QUICK[:2], *STEPS, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f": {what} " in done.stdout
        task = load_plan(tmp_path / what).run.task
        kinds = {"labels": "image_classification", "questions": "visual_question_answering"}
        assert task.kind == kinds.get(what, "captioning")
