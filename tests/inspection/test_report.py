"""The report of a real run, of a run whose files are gone, and of a bare bundle."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from foveal.bundles import load_bundle
from foveal.data import Example, SourceSpec, tsv
from foveal.errors import FovealError
from foveal.inspection import report
from foveal.models import Seq2SeqSpec
from foveal.planning._choices import Choice, Planned
from foveal.tasks import TransductionSpec
from foveal.training import Run, TrainingSpec
from tests.inspection.pages import check_page
from tests.tasks.stored import BUNDLES
from tests.tasks.tiny import DECODER, ENCODER, opinions, sentences, upper_cased

pytestmark = pytest.mark.slow

HELD_OUT = {
    "transduction": upper_cased(30),
    "classification": opinions(30),
    "tagging": sentences(30),
    "language_modeling": upper_cased(30),
}


def _write(path: Path, examples: Sequence[Example]) -> SourceSpec:
    path.write_text("".join(f"{e.source}\t{e.target}\n" for e in examples), encoding="utf-8")
    return tsv(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reported")
    examples = upper_cased(150)
    planned = Planned(
        Run(
            task=TransductionSpec(model=Seq2SeqSpec(encoder=ENCODER, decoder=DECODER)),
            train=_write(folder / "train.tsv", examples[:120]),
            dev=_write(folder / "dev.tsv", examples[120:]),
            training=TrainingSpec(steps=80, batch_size=20, learning_rate=1e-2),
        ),
        (Choice("task.model.decoder.hidden_size", "data", "few <examples>"),),
    )
    planned.save(folder / "run")
    planned.run.fit(folder / "run")
    return folder / "run"


def test_a_report_says_why_the_curve_and_the_scores_differ(run: Path) -> None:
    page = report(run)
    width = load_bundle(run).spec.prediction.beam_size
    assert width > 1
    assert f"beam size {width}, so the last point of the curve" in page
    captions = re.findall(r"<caption>(.*?)</caption>", page)
    assert len(set(captions)) == len(captions)


def test_a_report_has_all_of_a_run(run: Path) -> None:
    counted = list[int]()
    text = report(run, answered=counted.append)
    check_page(text)
    for title in (
        "Scores",
        "Curves",
        "Findings of the doctor",
        "Where the errors are",
        "Most confident mistakes",
        "Calibration of confidence",
        "Faithfulness of attention",
        "Settings",
    ):
        assert f">{title}</h2>" in text
    assert sum(counted) == 30
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["dev"]
    for name, metric in metrics.items():
        assert f">{name}<" in text
        assert f">{metric['value']:.2f}<" in text
    assert "few &lt;examples&gt;" in text
    assert "50% is chance" in text


def test_the_curves_are_those_of_the_log(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    last = [line for line in lines if line["event"] == "step_done"][-1]
    evaluated = [line for line in lines if line["event"] == "evaluated"][-1]
    text = report(run)
    assert f"at step {last['step']}: {last['loss']:.4g}" in text
    assert f"at step {evaluated['step']}: {evaluated['metrics']['wer']:.4g}" in text


def test_examples_that_are_given_are_those_that_are_looked_at(run: Path) -> None:
    text = report(run, upper_cased(20)[:13])
    assert "On 13 examples (given)." in text
    assert text.count(">given<") >= 2  # scores of the given examples next to the dev scores


def test_a_report_without_the_files_of_the_run(run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(run, moved)
    plan = (moved / "run.json").read_text(encoding="utf-8")
    (moved / "run.json").write_text(plan.replace("dev.tsv", "gone.tsv"), encoding="utf-8")
    text = report(moved)
    check_page(text)
    assert ">Scores</h2>" in text
    assert ">Most confident mistakes</h2>" not in text


@pytest.mark.parametrize("kind", HELD_OUT)
def test_a_bundle_of_any_task(kind: str) -> None:
    text = report(BUNDLES / "0.1.0" / kind, HELD_OUT[kind])
    check_page(text)
    assert "The folder has no training log." in text
    assert ("Faithfulness of attention" in text) == (kind in ("transduction", "classification"))


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(FovealError, match="expected a model"):
        report(tmp_path)
