"""Options of the commands, and their output."""

import json
import re
import sys
from pathlib import Path

import pytest

import foveal as package
from tests.cli.test_commands import WORDS, fitted, foveal, process, write

pytestmark = pytest.mark.slow

__all__ = ["fitted"]  # the fixture

# Import the overview of all commands, and print help while the optional packages are missing.
HELP_WITHOUT_EXTRAS = """
import sys
for name in ("pyarrow", "fsspec", "ray", "fastapi", "starlette", "uvicorn", "httpx2"):
    sys.modules[name] = None
from foveal.cli import main
for command in ("bulk", "prepare", "explore", "sweep", "serve"):
    try:
        main([command, "--help"])
    except SystemExit as ended:
        assert not ended.code, command
main(ASKED)
"""


def test_the_version(tmp_path: Path) -> None:
    assert foveal("--version", folder=tmp_path).stdout == f"foveal {package.__version__}\n"


def test_quiet_leaves_results_and_errors(fitted: Path) -> None:
    loud = foveal("predict", "runs/words", "train.tsv", folder=fitted)
    quiet = foveal("predict", "runs/words", "train.tsv", "--quiet", folder=fitted)
    engine, note = loud.stderr.splitlines()
    assert engine.startswith("engine: ")
    assert note == "note: train.tsv has 2 columns; the model reads only column 1"
    assert quiet.stderr == ""
    assert quiet.stdout == loud.stdout
    wrong = foveal("--quiet", "predict", "runs/none", folder=fitted)
    assert wrong.stderr.startswith("foveal predict: runs/none: this folder does not exist.")


def test_verbose_adds_versions_time_and_traceback(fitted: Path) -> None:
    done = foveal("predict", "runs/words", "--verbose", folder=fitted, text="ab\n")
    assert re.match(rf"foveal {package.__version__}, torch \S+, .*Python", done.stderr)
    assert re.search(r"took \d+\.\d s\n$", done.stderr)
    wrong = foveal("predict", "runs/none", "--verbose", folder=fitted)
    assert "Traceback" in wrong.stderr
    assert "Traceback" not in foveal("predict", "runs/none", folder=fitted).stderr


def test_help_names_the_switches_of_every_command(tmp_path: Path) -> None:
    for words in (("--help",), ("predict", "--help")):
        done = foveal(*words, folder=tmp_path)
        assert done.returncode == 0
        assert "--quiet" in done.stdout
        assert "--verbose" in done.stdout


def test_help_needs_no_extras(tmp_path: Path) -> None:
    program = HELP_WITHOUT_EXTRAS.replace("ASKED", "['sweep', 'train.tsv']")
    done = process(program=program, folder=tmp_path)
    for command in ("bulk", "prepare", "sweep", "explore", "serve"):
        assert f"usage: foveal {command}" in done.stdout
    assert done.returncode == 2
    assert re.fullmatch(
        r"foveal sweep: foveal bulk, prepare or sweep needs the package fsspec, .*\n",
        done.stderr,
    )


def test_the_table_has_the_same_columns_for_every_nbest(fitted: Path) -> None:
    for nbest in ("1", "2"):
        done = foveal(
            *("predict", "runs/words", "--nbest", nbest, "--header"), folder=fitted, text="ab\n"
        )
        head, *rows = [line.split("\t") for line in done.stdout.splitlines()]
        assert head == ["source", "rank", "output", "score", "confidence"]
        assert [row[:2] for row in rows] == [["ab", str(n + 1)] for n in range(int(nbest))]
        assert {len(row) for row in rows} == {5}


def test_the_first_line_of_a_file_may_name_columns(fitted: Path) -> None:
    done = foveal(*("predict", "runs/words", "--skip-header"), folder=fitted, text="word\nab\ncd\n")
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["ab", "cd"]
    write(fitted / "named.tsv", [("word", "phones"), *WORDS[:3]])
    found = [
        json.loads(
            foveal(*("evaluate", "runs/words", "named.tsv", "--json"), *more, folder=fitted).stdout
        )["examples"]
        for more in ((), ("--skip-header",))
    ]
    assert found == [4, 3]


def test_evaluate_uses_the_runs_own_test_file(fitted: Path) -> None:
    done = foveal("evaluate", "runs/words", folder=fitted)
    assert done.returncode == 0, done.stderr
    assert f"{len(WORDS[::7])} examples; the test file of the run" in done.stdout


def test_explain_config_never_cuts_a_name(fitted: Path) -> None:
    done = foveal("explain-config", "runs/words", "--json", folder=fitted)
    found = {each["path"]: each for each in json.loads(done.stdout)}
    assert found["task.model.encoder.hidden_size"] == {
        "path": "task.model.encoder.hidden_size",
        "value": "16",
        "origin": "command",
        "reason": "--set encoder.hidden_size=16",
    }
    narrow = foveal("explain-config", "runs/words", folder=fitted, columns=40)
    names = [line.split("=")[0] for line in narrow.stdout.splitlines() if line[:1].isalpha()]
    assert names == list(found)


def test_attention_needs_json_lines(fitted: Path) -> None:
    done = foveal("predict", "runs/words", "--attention", folder=fitted, text="ab\n")
    assert done.returncode == 2
    assert done.stderr == (
        "foveal predict: --attention: only the format jsonl can contain attention. Add --format jsonl.\n"
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc and /dev/full")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "runs/words", "--out", "/proc/foo/bar"), "/proc/foo: this path does not exist"),
        (
            ("report", "runs/words", "--out", "train.tsv/x"),
            "train.tsv: expected a folder, got a file",
        ),
        (("report", "runs/words", "--out", "/dev/full"), "the disk is full. Free some space"),
        (
            ("fit", "train.tsv", "--out", "/proc/foo/bar"),
            "/proc/foo/bar: the folder of the run cannot",
        ),
        (
            ("fit", "train.tsv", "--out", "dev.tsv"),
            "dev.tsv: the folder of the run cannot be created",
        ),
        (
            ("fit", "parts", "--out", "x"),
            "parts: got a folder with 1 files (for example a.tsv)",
        ),
        (("evaluate", "runs/none"), "runs/none: this folder does not exist"),
        (("explain-config", "runs/none"), "runs/none: this folder does not exist"),
    ],
)
def test_what_the_system_refuses_is_one_line(
    fitted: Path, words: tuple[str, ...], said: str
) -> None:
    (fitted / "parts").mkdir(exist_ok=True)
    write(fitted / "parts/a.tsv", WORDS)
    done = foveal(*words, folder=fitted)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_model_that_is_too_large_names_its_size(fitted: Path) -> None:
    done = foveal(
        *("fit", "train.tsv", "--dev", "dev.tsv", "--out", "runs/large"),
        *("--set", "encoder.hidden_size=1000000"),
        folder=fitted,
    )
    assert done.returncode == 2
    assert re.search(
        r"training needs at least \d\S* TB of memory; this machine has \d", done.stderr
    )
    assert done.stderr.count("\n") == 1


def test_a_long_line_can_be_allowed(fitted: Path) -> None:
    write(fitted / "long.tsv", [("a" * (1 << 20), "a"), *WORDS])
    words = ("fit", "long.tsv", "--dev", "dev.tsv", "--out", "runs/long")
    refused = foveal(*words, folder=fitted)
    assert "with foveal fit: --set train.max_line=BYTES" in refused.stderr
    # A user who follows this advice gets past reading the file.
    allowed = foveal(
        *words, "--set", "train.max_line=2000000", "--set", "encoder.layers=2", folder=fitted
    )
    assert "unknown setting" in allowed.stderr


def test_fit_names_the_settings_it_has_chosen(fitted: Path) -> None:
    done = foveal(
        *("fit", "train.tsv", "--dev", "dev.tsv", "--out", "runs/x", "--set", "encoder.layers=2"),
        folder=fitted,
    )
    assert "  task=transduction: transduction: 64 different targets in 64 examples" in done.stdout
    assert re.search(r"^  task\.source=characters: characters, because", done.stdout, re.MULTILINE)
    assert re.search(r"training\.learning_rate=0\.\d+: ", done.stdout)


def test_a_recipe_imports_what_lies_next_to_it(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    recipes = tmp_path / "mine"
    recipes.mkdir()
    (recipes / "shared.py").write_text(f"RUN = {str(fitted / 'runs/words')!r}\n")
    (recipes / "short.py").write_text(
        "from pathlib import Path\n"
        "import shared\n"
        "from mine.shared import RUN\n"
        "from foveal.planning._choices import load_plan\n"
        "def recipe():\n"
        "    assert shared.RUN == RUN\n"
        "    return load_plan(Path(RUN)).run\n"
    )
    words = ("--out", "runs/x", "--set", "encoder.layers=2")
    done = foveal("fit", "--recipe", recipes / "short.py", *words, folder=fitted)
    assert "unknown setting" in done.stderr  # the recipe was imported
    (recipes / "broken.py").write_text("import nowhere_to_be_found\n")
    done = foveal("fit", "--recipe", recipes / "broken.py", *words, folder=fitted)
    assert "the file imports nowhere_to_be_found, which is neither installed nor in" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_setting_chooses_a_tokenizer_that_needs_training(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", WORDS)
    done = foveal(
        *("fit", "train.tsv", "--out", "run", "--set", "source=sentencepiece"),
        *("--set", "source.num_pieces=300", "--set", "training.steps=1"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    spec = json.loads((tmp_path / "run" / "spec.json").read_text(encoding="utf-8"))
    assert spec["source"]["kind"] == "sentencepiece"
    assert spec["source"]["model"]
