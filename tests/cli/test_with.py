"""`--with`: several runs answer as an ensemble, and runs that do not match are reported."""

import json
import shutil
from pathlib import Path

import pytest

from foveal.bundles import load_bundle, save_bundle
from foveal.data import Example
from foveal.tasks import PredictionSpec, Transduction, TransductionEnsemble
from tests.cli.test_commands import WORDS, foveal, process, write
from tests.tasks.tiny import opinions, tasks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three short runs, with two attentions and two vocabularies."""
    folder = tmp_path_factory.mktemp("fitted")
    write(folder / "train.tsv", WORDS)
    write(folder / "more.tsv", [*WORDS, *((a + "x", f"{a} x") for a in "abc")])
    write(folder / "dev.tsv", WORDS[::3])
    runs = [
        ("one", "train.tsv", "--attention", "softmax"),
        ("two", "train.tsv", "--seed", "2", "--attention", "latent_hard"),
        ("more", "more.tsv"),
    ]
    for name, file, *how in runs:
        done = foveal(
            *("fit", file, "--dev", "dev.tsv", "--out", f"runs/{name}", *how),
            *("--set", "training.epochs=6", "--set", "encoder.hidden_size=16"),
            *("--set", "decoder.hidden_size=16"),
            folder=folder,
        )
        assert done.returncode == 0, done.stderr
    save_bundle(tasks()["classification"], folder / "runs/labels")
    return folder


def ensemble(folder: Path) -> TransductionEnsemble:
    members = [load_bundle(folder / "runs" / name) for name in ("one", "two")]
    return TransductionEnsemble([each for each in members if isinstance(each, Transduction)])


def test_predict_gives_the_answers_of_python(fitted: Path) -> None:
    done = process(
        *("predict", "runs/one", "dev.tsv", "--nbest", "3", "--with", "runs/two"), folder=fitted
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "engine: torch (an ensemble has no export)",
        "note: dev.tsv has 2 columns; the model reads only column 1",
    ]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    examples = [Example(*pair) for pair in WORDS[::3]]
    both = ensemble(fitted)
    both.calibrate(examples)
    settings = PredictionSpec(nbest=3)
    expected = [
        (example.source, str(rank), *candidate)
        for example, prediction in zip(examples, both.predict(examples, settings), strict=True)
        for rank, candidate in enumerate(prediction.nbest, start=1)
    ]
    assert [row[:3] for row in rows] == [list(row[:3]) for row in expected]
    for row, (*_, score, probability) in zip(rows, expected, strict=True):
        assert float(row[3]) == pytest.approx(score, abs=2e-4)
        assert float(row[4]) == pytest.approx(probability, abs=2e-4)


def test_predict_shows_the_attention_of_both(fitted: Path) -> None:
    done = foveal(
        *("predict", "runs/one", "dev.tsv", "--format", "jsonl", "--attention"),
        *("--with", "runs/two"),
        folder=fitted,
    )
    first = json.loads(done.stdout.splitlines()[0])
    assert first["attention"]["kind"] == "latent_hard+softmax"
    assert first["attention"]["sources"] == ["a", "a"]


def test_evaluate_scores_all_together(fitted: Path) -> None:
    done = process(
        *("evaluate", "runs/one", "dev.tsv", "--json", "--with", "runs/two"),
        *("--against", "runs/one"),
        folder=fitted,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    both, alone = ensemble(fitted), load_bundle(fitted / "runs/one")
    examples = [Example(*pair) for pair in WORDS[::3]]
    both.calibrate(examples)
    expected = both.evaluate(examples)
    assert found["metrics"]["wer"]["value"] == pytest.approx(expected.value)
    assert expected.reliability is not None
    assert found["reliability"]["ece"] == pytest.approx(expected.reliability.ece, abs=1e-4)
    assert found["against"]["metrics"]["wer"]["value"] == pytest.approx(
        alone.evaluate(examples).value
    )
    shown = foveal(
        *("evaluate", "runs/one", "dev.tsv", "--with", "runs/two", "--against", "runs/one"),
        folder=fitted,
    )
    assert "difference to runs/one" in shown.stdout
    assert "calibration error" in shown.stdout


def test_without_the_dev_file_confidence_is_the_first_ones_and_that_is_said(
    fitted: Path, tmp_path: Path
) -> None:
    """In another folder, or with bare bundles, the answers are the same but the confidence is not."""
    for name in ("one", "two"):
        shutil.copytree(fitted / "runs" / name, tmp_path / "runs" / name)
    (tmp_path / "runs/two/run.json").unlink()
    (tmp_path / "words.txt").write_text("".join(f"{source}\n" for source, _ in WORDS[:4]))
    words = ("predict", "runs/one", "words.txt", "--with", "runs/two")
    done = process(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 2
    assert "note: the validation file of runs/one was not found" in done.stderr
    both = ensemble(fitted)
    expected = both.predict([Example(source) for source, _ in WORDS[:4]])
    got = [float(line.split("\t")[-1]) for line in done.stdout.splitlines()]
    assert got == pytest.approx([each.confidence for each in expected], abs=2e-4)
    (tmp_path / "runs/one/run.json").unlink()
    assert foveal(*words, folder=tmp_path) == done


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("runs/one", "--with", "runs/more"),
            "--with runs/more: this model cannot form an ensemble with",
        ),
        (
            ("runs/one", "--with", "runs/more"),
            "got 9 tokens, including 'x' only in it, expected 8",
        ),
        (("runs/one", "--with", "runs/labels"), "not runs/labels, got a model for classification"),
        (("runs/labels", "--with", "runs/one"), "not runs/labels, got a model for classification"),
        (
            ("runs/one", "--with", "runs/two", "runs/../runs/one"),
            "got the same run twice, runs/one",
        ),
        (
            ("runs/one", "--with", "runs/two", "runs/two"),
            "expected different runs, got the same run twice, runs/two and runs/two",
        ),
        (("runs/one", "--with", "runs/none"), "runs/none"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(
    fitted: Path, words: tuple[str, ...], said: str
) -> None:
    folder, *others = words
    done = foveal("evaluate", folder, "dev.tsv", *others, folder=fitted)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_one_model_of_any_task_is_as_before(fitted: Path) -> None:
    text = "".join(f"{example.source}\n" for example in opinions(3))
    (fitted / "texts.txt").write_text(text, encoding="utf-8")
    done = foveal("predict", "runs/labels", "texts.txt", folder=fitted)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
