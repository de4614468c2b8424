"""`foveal.fit`, `foveal.load` and `task.predict`, as in the first lines of a user's program."""

import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pytest
import torch

import foveal
from foveal.cli._main import main
from foveal.data import Example, JsonLines
from foveal.errors import CheckpointError, DataError, SpecError
from foveal.models import SegmentSpec
from foveal.planning._choices import load_plan
from foveal.tasks import Prediction, Transduction, TransductionSpec

pytestmark = pytest.mark.slow

WORDS = [(a + b, f"{a} {b}") for a in "abcdef" for b in "abcdef"]
RECORDS = [{"word": source, "pron": target} for source, target in WORDS]
SMALL: dict[str, Any] = {
    "encoder__hidden_size": 8,
    "decoder__hidden_size": 8,
    "threads": 1,
    "quiet": True,
}
MOST_SECONDS = 0.3  # overhead of `import foveal` over `import torch`


def weights(task: Any) -> dict[str, torch.Tensor]:
    return dict(task.model.state_dict())


def assert_same(task: Any, other: Any) -> None:
    ours, theirs = weights(task), weights(other)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def write(path: Path, separator: str = "\t") -> Path:
    path.write_text("".join(f"{source}{separator}{target}\n" for source, target in WORDS))
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted") / "run"
    foveal.fit(WORDS, out=folder, steps=3, seed=4, **SMALL)
    return folder


def test_it_is_what_the_command_trains(tmp_path: Path) -> None:
    file = write(tmp_path / "train.tsv")
    words = (
        "--threads 1 --seed 4 --set encoder.hidden_size=8 --set decoder.hidden_size=8 --set steps=3"
    )
    main(["fit", str(file), "--out", str(tmp_path / "command"), *words.split()])
    task = foveal.fit(file, steps=3, seed=4, **SMALL)
    assert_same(task, foveal.load(tmp_path / "command"))


@pytest.mark.parametrize(
    "rows",
    [RECORDS, pd.DataFrame(RECORDS), datasets.Dataset.from_list(RECORDS)],
    ids=["dicts", "pandas", "datasets"],
)
def test_rows_of_all_kinds_train_the_same_model(rows: Any, fitted: Path) -> None:
    assert_same(foveal.fit(rows, steps=3, seed=4, **SMALL), foveal.load(fitted))


def test_a_csv_file_and_a_list_of_files(tmp_path: Path) -> None:
    file = tmp_path / "words.csv"
    file.write_text("pron,word\n" + "".join(f"{target},{source}\n" for source, target in WORDS))
    task = foveal.fit([file], dev=str(file), steps=3, seed=4, **SMALL)
    swapped = foveal.fit(file, steps=2, train__source="pron", train__target="word", **SMALL)
    assert swapped.spec.source.kind == "whitespace"
    assert task.spec.source.kind == "characters"


def test_one_text_has_one_prediction(fitted: Path) -> None:
    task = foveal.load(fitted)
    one = task.predict("ab")
    assert isinstance(one, Prediction)
    assert task.predict(["ab", "cd"])[0] == one
    assert task.predict(Example("ab")) == one
    assert task.predict([]) == []


def test_the_folder_has_the_rows_and_is_resumed(fitted: Path) -> None:
    run = load_plan(fitted).run
    assert isinstance(run.train, JsonLines)
    assert sum(1 for _ in run.train) + sum(1 for _ in run.dev or ()) == len(WORDS)
    again = foveal.fit(WORDS, out=fitted, steps=3, seed=4, **SMALL)
    assert_same(again, foveal.load(fitted))
    with pytest.raises(CheckpointError, match="has changed since the run started"):
        foveal.fit(WORDS[:-1], out=fitted, steps=3, seed=4, **SMALL)


def test_validation_rows_are_used_as_they_are(tmp_path: Path) -> None:
    foveal.fit(WORDS[6:], dev=RECORDS[:6], out=tmp_path / "run", steps=2, **SMALL)
    run = load_plan(tmp_path / "run").run
    assert isinstance(run.train, JsonLines)
    assert [example.source for example in run.dev or ()] == [source for source, _ in WORDS[:6]]
    assert sum(1 for _ in run.train) == len(WORDS) - 6


def test_without_a_folder_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    foveal.fit(WORDS, steps=1, **SMALL)
    assert not list(tmp_path.iterdir())


def test_settings_are_values(tmp_path: Path) -> None:
    given = SMALL | {"decoder.attention": SegmentSpec(total=2.0), "steps": 1, "label_smoothing": 0}
    foveal.fit(WORDS, out=tmp_path / "run", **given)
    run = load_plan(tmp_path / "run").run
    assert isinstance(run.task, TransductionSpec)
    assert run.task.model.decoder.attention == SegmentSpec(total=2.0)
    assert run.task.label_smoothing == 0
    assert run.training.steps == 1


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"encoder__num_layer": 2}, SpecError, "encoder.num_layer: unknown setting. Did you mean"),
        ({"encoder__num_layers": "two"}, SpecError, "num_layers: expected .* got 'two'"),
        ({"train__columns": 2}, SpecError, "train.columns=2: unknown setting for rows"),
        ({"train__source": "z"}, DataError, "row 1: no column 'z', got 'word', 'pron'"),
    ],
)
def test_a_wrong_setting_is_refused_before_training(
    given: dict[str, Any], error: type[Exception], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        foveal.fit(RECORDS, out=tmp_path / "run", quiet=True, **given)
    assert not (tmp_path / "run").exists()


def test_an_attention_is_that_of_the_chosen_task() -> None:
    labels = [(f"{a} {b}", str((a + b) % 3)) for a in range(6) for b in range(6)]
    assert foveal.fit(labels, steps=1, threads=1, quiet=True).spec.kind == "classification"
    chosen = {"attention": "segment", "task": "transduction"}
    task = foveal.fit(labels, steps=1, **chosen, **SMALL)
    assert isinstance(task, Transduction)
    assert isinstance(task.spec.model.decoder.attention, SegmentSpec)


def test_it_says_what_it_does_unless_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    loud: dict[str, Any] = SMALL | {"quiet": False}
    foveal.fit(RECORDS, steps=1, **loud)
    out, err = capfd.readouterr()
    assert out == ""
    assert "36 rows: text in 'word', target in 'pron'" in err
    assert "finished after 1 steps" in err
    foveal.fit(RECORDS, steps=1, **SMALL)
    assert capfd.readouterr() == ("", "")


def test_the_import_costs_next_to_nothing() -> None:
    """The import is timed in separate processes, after torch, as in a program."""
    program = (
        "import time, torch, sys; start = time.perf_counter(); import foveal; "
        "took = time.perf_counter() - start; assert 'foveal.data' not in sys.modules; "
        "assert {'fit', 'load'} <= set(dir(foveal)); print(took)"
    )
    took = [
        float(
            subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        )
        for _ in range(3)
    ]
    assert statistics.median(took) < MOST_SECONDS
