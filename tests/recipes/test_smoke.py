"""Every recipe of the records trains for a few steps on a part of its data, and is scored like the
full run.
"""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.records._catalogue import MEAN, RECORDS, Record
from benchmarks.records._fitting import Cost, fit_case, folder_of
from benchmarks.records._scoring import score, write_references
from benchmarks.results import Results, Row
from foveal.data import AbstractSourceSpec, Source, TabSeparated, tsv
from foveal.datasets._folder import advice
from foveal.specs import from_json, to_json
from foveal.tasks import TransductionSpec
from foveal.training import Run

pytestmark = pytest.mark.slow

SEEDS = (1, 2)
SIZES = {"train": 64, "dev": 8, "test": 12}


def cut(source: Source, size: int, path: Path) -> TabSeparated:
    """Write the first examples of a source to a new file."""
    lines = [f"{each.source}\t{each.features}\t{each.target}\n" for each in islice(source, size)]
    path.write_text("".join(lines), encoding="utf-8")
    return tsv(path, target=2, features=1)


def short(record: Record, case: str, folder: Path) -> Run:
    """Shorten the run of a case to four steps on a few examples."""
    run = record.run(case)
    assert isinstance(run.task, TransductionSpec)
    sources = {
        name: cut(source, SIZES[name], folder / f"{name}.tsv")
        for name, source in sources_of(run).items()
    }
    return replace(
        run,
        **sources,
        task=replace(run.task, min_count=1, prediction=replace(run.task.prediction, beam_size=2)),
        training=replace(run.training, epochs=None, steps=4),
    )


def sources_of(run: Run) -> dict[str, Source]:
    """Return the sources of a run by name; the dev set is optional."""
    assert run.test is not None
    found = {"train": run.train, "dev": run.dev, "test": run.test}
    return {name: source for name, source in found.items() if source is not None}


def skip_without_data(run: Run) -> None:
    """Skip the test unless all files of a run exist."""
    for source in sources_of(run).values():
        for path in (path for shard in source.shards() for path in shard.files):
            if not Path(path).exists():
                pytest.skip(f"data not found at {path}. {advice(path)}")


@pytest.mark.parametrize("name", RECORDS)
def test_a_recipe_is_fitted_and_scored(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = RECORDS[name]
    case = record.cases[0]
    skip_without_data(record.run(case))
    data = tmp_path / "data"
    data.mkdir()
    run = short(record, case, data)
    monkeypatch.setitem(RECORDS, name, record._replace(run=lambda _: run))
    monkeypatch.setattr("benchmarks.records._scoring.DATA", data)
    for seed in SEEDS:
        fit_case(run, seed, folder_of(tmp_path, name, case, seed))
    again = folder_of(tmp_path, name, case, 1)
    before = Cost.load(again)
    fit_case(run, 1, again)
    assert Cost.load(again) == before  # an existing run is not fitted again
    score(name, (case,), SEEDS, tmp_path, tmp_path / "results")
    results = Results.load(tmp_path / f"results/{name}.json")
    figures = {row.name.partition(": ")[2]: row for row in results.rows}
    assert isinstance(run.task, TransductionSpec)
    metric = "bleu" if run.task.outputs == "texts" else "wer"
    assert {metric, f"{metric} of 2 together", "parameters", "examples/s"} <= set(figures)
    aims = (figures[metric].target, figures[f"{metric} of 2 together"].target)
    assert aims == (record.aim(case, 1), record.aim(case, 2))
    assert 0 <= figures[metric].value <= 100
    assert figures["parameters"].value > 1000
    assert set(results.data) == {f"{name}.tsv" for name in sources_of(run)}
    told = json.loads((tmp_path / f"results/mistakes/{name}.json").read_text(encoding="utf-8"))
    assert told["mistakes"]
    assert all(each["output"] != each["expected"] for each in told["mistakes"])
    assert set(told["slices"]) == {case}


@pytest.mark.parametrize("name", RECORDS)
def test_every_case_has_its_files_and_its_json(name: str) -> None:
    record = RECORDS[name]
    for case in record.cases:
        run = record.run(case)
        skip_without_data(run)
        own = {
            type(each) for each in sources_of(run).values() if isinstance(each, AbstractSourceSpec)
        }
        assert from_json(Run, to_json(run), also=tuple(own)) == run
        for source in sources_of(run).values():
            example = next(iter(source))
            assert example.source
            assert example.target
    for reference in record.references:
        assert set(reference.figures) <= {*record.cases, MEAN}
    for aims in (record.aims, *record.aims_together.values()):
        assert set(aims) <= {*record.cases, MEAN}


def test_an_ensemble_has_the_aim_of_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = ("mean: wer", "mean: wer of 3 together", "mean: wer of 5 together", "ice: wer")
    rows = tuple(Row(name=name, value=30.0, unit="%", target=1.0, sense="<=") for name in measured)
    found = Results.here("a test").with_rows(rows)
    found.save(tmp_path / "g2p_low.json")
    record = RECORDS["g2p_low"]._replace(aims={MEAN: 26.0}, aims_together={5: {MEAN: 24.0}})
    monkeypatch.setitem(RECORDS, "g2p_low", record)
    write_references("g2p_low", tmp_path)
    changed = {row.name: row for row in Results.load(tmp_path / "g2p_low.json").rows}
    assert [changed[name].target for name in measured] == [26.0, None, 24.0, None]
    assert [changed[name].value for name in measured] == [30.0] * 4
    alike = record._replace(aims_together={})
    assert alike.aim(MEAN, 1) == alike.aim(MEAN, 3) == 26.0
