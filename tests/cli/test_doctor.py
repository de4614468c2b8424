"""`foveal doctor` on a run of the command line, and the doctor during `foveal fit`."""

import json
from pathlib import Path

import pytest

from foveal.training import read_log
from tests.cli.test_commands import WORDS, foveal, process, write

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run whose learning rate was far too high."""
    folder = tmp_path_factory.mktemp("sick")
    write(folder / "train.tsv", WORDS)
    write(folder / "dev.tsv", WORDS[::3])
    done = process(
        *("fit", "train.tsv", "--dev", "dev.tsv", "--out", "runs/words"),
        *("--set", "training.epochs=none", "--set", "training.steps=260"),
        *("--set", "training.learning_rate=2.0", "--set", "training.warmup_steps=0"),
        *("--set", "encoder.hidden_size=8", "--set", "decoder.hidden_size=8"),
        *("--set", "training.batch_size=4", "--set", "training.evaluate_every=130"),
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "learning rate too high" in line]
    probed = [e for e in read_log(folder / "runs/words/log.jsonl") if e["event"] == "probed"]
    assert probed
    assert len(lines) >= 1  # reported when it appeared
    return folder


def test_findings_are_said_with_their_remedy_and_a_page_is_written(sick: Path) -> None:
    done = foveal("doctor", "runs/words", folder=sick)
    assert done.returncode == 0, done.stderr
    assert "alarm: learning rate too high" in done.stdout
    assert "--set training.learning_rate=0.2" in done.stdout
    text = (sick / "runs/words/doctor.html").read_text(encoding="utf-8")
    assert "learning rate too high" in text
    assert "<svg" in text
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_findings_as_json_with_other_examples(sick: Path) -> None:
    write(sick / "other.tsv", WORDS[1::3])
    done = foveal("doctor", "runs/words", "other.tsv", "--json", folder=sick)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["findings"]
    assert {"name", "severity", "text", "cause", "remedy", "drawing", "numbers"} == set(found[0])
    assert "learning rate too high" in {finding["name"] for finding in found}


def test_a_folder_that_is_no_run_is_one_line(tmp_path: Path) -> None:
    done = foveal("doctor", "nothing", folder=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "foveal fit" in done.stderr
