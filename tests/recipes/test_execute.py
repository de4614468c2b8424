"""The recipe of programs: its parts are disjoint, and its models are fitted, scored and shown."""

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.lectures.__main__ import main
from benchmarks.lectures._execute import ERRORS, OPERATIONS, kind_of_error
from benchmarks.results import Results
from examples.support.programs import run_program, unscrambled
from foveal.models import TransformerDecoderSpec
from foveal.specs import from_json, to_json
from foveal.tasks import TransductionSpec
from foveal.training import Run
from recipes import execute

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def test_no_test_program_is_a_training_program() -> None:
    train, dev, test = (
        {example.text for stage in execute.programs(part, 150) for example in stage}
        for part in ("train", "dev", "test")
    )
    assert not train & dev
    assert not train & test
    assert not dev & test


def test_scrambled_programs_are_the_same_programs() -> None:
    plain, scrambled = (
        list(execute.programs("test", 50, is_scrambled=is_scrambled)[-1])
        for is_scrambled in (False, True)
    )
    for one, other in zip(plain, scrambled, strict=True):
        assert unscrambled(other.text) == one.text != other.text
        assert unscrambled(other.target or "") == one.target
        assert one.target == f"{run_program(one.text.replace(';', chr(10)))}."


def test_stages_are_sorted_and_the_last_is_the_hardest() -> None:
    assert execute.STAGES[0] == (1, 1)
    assert execute.STAGES[-1] == (execute.MAX_LENGTH, execute.MAX_NESTING)
    assert len(execute.STAGES) == execute.MAX_LENGTH * execute.MAX_NESTING


@pytest.mark.parametrize("case", execute.CASES)
def test_runs_can_be_files(case: str) -> None:
    run = execute.recipe(case)
    assert from_json(Run, to_json(run), also=(execute.Programs,)) == run
    assert isinstance(run.task, TransductionSpec)
    decoder = run.task.model.decoder
    assert isinstance(decoder, TransformerDecoderSpec) == case.startswith("transformer")


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("", "not a number"),
        ("12345", "not a number"),
        ("1-345.", "not a number"),
        ("12345.", "sign"),
        ("-1234.", "number of digits"),
        ("-12340.", "one digit"),
        ("-19945.", "digits in the middle"),
        ("-12399.", "last digits"),
        ("-92399.", "first digit"),
    ],
)
def test_kinds_of_errors(output: str, kind: str) -> None:
    assert kind_of_error("-12345.", output) == kind


def test_programs_are_fitted_scored_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "NUM_TRAINED", 70)
    monkeypatch.setattr(execute, "NUM_VALIDATED", 5)
    monkeypatch.setattr("benchmarks.lectures._execute.NUM_TESTED", 12)
    given = ["--runs", str(tmp_path), "--seeds", "1"]
    main(["fit", "execute", *given, "--cases", "attention_naive", "scrambled_combined"])
    main(["score", "execute", *given, "--results", str(tmp_path)])
    rows = {row.name: row.value for row in Results.load(tmp_path / "execute.json").rows}
    name = "LSTM with attention, naive"
    for length, nesting in execute.STAGES:
        assert 0 <= rows[f"{name}: length {length}, nesting {nesting}"] < 50
    assert sum(rows[f"errors, {name}: {kind}"] for kind in ERRORS) == pytest.approx(100)
    assert all(f"operations, {name}: {each}" in rows for each in OPERATIONS.values())
    shown = json.loads((tmp_path / "predictions/execute.json").read_text(encoding="utf-8"))
    for each in shown:
        assert each["expected"] == f"{run_program(each['program'].replace(';', chr(10)))}."

    kept = "scrambled, LSTM with attention, combined"
    assert [list(each["outputs"]) for each in shown] == [[name, kept]] * len(shown)
    # The second seed was not fitted.
    again = ["--cases", "attention_naive", "--seeds", "1", "2", "--results", str(tmp_path)]
    main(["score", "execute", "--runs", str(tmp_path), *again])
    results = Results.load(tmp_path / "execute.json")
    assert {row.name for row in results.rows} == rows.keys()
    assert {row.seeds for row in results.rows} == {(1,)}
    assert results.spec.keys() == {"attention_naive", "scrambled_combined"}
    assert json.loads((tmp_path / "predictions/execute.json").read_text()) == shown

    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    module = import_module("docs_predictions")
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    table = module.predictions("execute", "LSTM with attention").splitlines()
    assert table[0] == "| program | output | naive |"
    assert len(table) == 2 + len(shown)
    assert all(each["expected"] in row for each, row in zip(shown, table[2:], strict=True))
    with pytest.raises(ValueError, match="no case of Transformer"):
        module.predictions("execute", "Transformer")
    sys.modules.pop("docs_predictions")
    sys.modules.pop("docs_records", None)
