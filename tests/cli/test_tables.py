"""CSV files and named columns through fit, predict and evaluate."""

import json
from pathlib import Path

import pytest

from foveal.planning._choices import load_plan
from tests.cli.test_commands import WORDS, foveal

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def spelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV file with unknown column names, and a model trained on it without a validation file."""
    folder = tmp_path_factory.mktemp("spelled")
    rows = [f'{number},"{target}",{source}' for number, (source, target) in enumerate(WORDS)]
    (folder / "words.csv").write_text("\n".join(["n,sounds,letters", *rows]), encoding="utf-8")
    done = foveal(
        *(
            "fit",
            "words.csv",
            "--out",
            "run",
            "--set",
            "steps=60",
            "--set",
            "encoder.hidden_size=16",
        ),
        *("--set", "train.source=letters", "--set", "train.target=sounds"),
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "words.csv: comma-separated, 3 columns, named in the first line" in done.stdout
    return folder


def test_columns_are_given_by_name(spelled: Path) -> None:
    line = (spelled / "run/data/train.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert (json.loads(line)["source"], json.loads(line)["target"]) in WORDS
    assert load_plan(spelled / "run").run.train.kind == "json_lines"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("asked.csv", "letters,sounds\nab,\ncd,\n"),  # other columns, in another order
        ("asked.csv", "letters\nab\ncd\n"),
        ("asked.csv", "0,a b,ab\n0,c d,cd\n"),  # no header: the column numbers of training
        ("asked.tsv", "ab\t0\ncd\t1\n"),  # no CSV: the first column
    ],
)
def test_predict_reads_the_columns_of_training(spelled: Path, name: str, text: str) -> None:
    (spelled / name).write_text(text, encoding="utf-8")
    done = foveal("predict", "run", name, folder=spelled)
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["ab", "cd"]


def test_evaluate_reads_the_columns_of_training(spelled: Path) -> None:
    rows = "".join(f"{target};{source}\n" for source, target in WORDS[:6])
    (spelled / "test.csv").write_text(f"sounds;letters\n{rows}", encoding="utf-8")
    scored = foveal("evaluate", "run", "test.csv", "--json", folder=spelled)
    assert scored.returncode == 0, scored.stderr
    pairs = "".join(f"{source}\t{target}\n" for source, target in WORDS[:6])
    (spelled / "test.tsv").write_text(pairs, encoding="utf-8")
    expected = foveal("evaluate", "run", "test.tsv", "--json", folder=spelled)
    assert json.loads(scored.stdout)["metrics"] == json.loads(expected.stdout)["metrics"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train.source=letter"], "words.csv, line 1: no column 'letter' in the header, which has"),
        (["train.source=n", "train.target=n"], "are the same column, 'n', expected two columns"),
    ],
)
def test_a_wrong_column_is_said_in_one_line(spelled: Path, words: list[str], said: str) -> None:
    given = [word for text in words for word in ("--set", text)]
    done = foveal("fit", "words.csv", "--out", "other", *given, folder=spelled)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
    assert not (spelled / "other").exists()


def test_columns_of_a_divided_table_are_kept_for_evaluation(tmp_path: Path) -> None:
    """Without a validation file, examples move to run/data; the original columns are kept."""
    rows = "".join(f"{source}\tx\t{target}\n" for source, target in WORDS)
    (tmp_path / "words.tsv").write_text(rows, encoding="utf-8")
    done = foveal(
        *("fit", "words.tsv", "--out", "run", "--set", "steps=2", "--set", "train.target=2"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    done = foveal("evaluate", "run", "words.tsv", folder=tmp_path)
    assert "columns as in training" in done.stdout


def test_a_tab_separated_file_with_the_names_of_training(tmp_path: Path) -> None:
    rows = "".join(f"{target}\t{source}\n" for source, target in WORDS)
    (tmp_path / "words.tsv").write_text(f"pron\tword\n{rows}", encoding="utf-8")
    done = foveal("fit", "words.tsv", "--out", "run", "--set", "steps=2", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "text in 'word', target in 'pron'" in done.stdout
    (tmp_path / "asked.tsv").write_text("n\tword\n1\tab\n2\tcd\n", encoding="utf-8")
    done = foveal("predict", "run", "asked.tsv", folder=tmp_path)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["ab", "cd"]
