"""The engine is chosen for a reason, and the command line, bulk jobs and the server use it."""

import asyncio
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from foveal.bundles import load_bundle, save_bundle
from foveal.cli._main import main
from foveal.data import Example, LatexSpec, Picture
from foveal.errors import DeviceError, ExportError, FovealError, MissingPackageError
from foveal.planning._files import trial_examples
from foveal.scale.cluster._bundles import packed, unpacked
from foveal.serving import Predictor
from foveal.serving._engines import choose_engine
from foveal.serving.computing._process import Computing
from foveal.tasks import TransductionEnsemble
from tests.export.variants import VARIANTS, WORDS, task_of
from tests.serving.conftest import GOOD, STORED

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

EXAMPLES = [Example(word) for word in WORDS]
LINES = ["abc", "edcba", "a", "xyz", "", "abcde" * 4]


def none() -> Sequence[Example]:
    return []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, with a trained model and samples."""
    folder = tmp_path_factory.mktemp("run") / "upper"
    shutil.copytree(GOOD, folder)
    rows = "".join(f"{text}\t{text.upper()}\n" for text in ("abc", "ba", "edcba"))
    (folder / "samples.tsv").write_text(f"source\texpected\n{rows}", encoding="utf-8")
    return folder


def test_onnx_is_chosen_where_the_answers_are_equal() -> None:
    chosen = choose_engine(task_of(VARIANTS["softmax"]), "auto", lambda: EXAMPLES)
    assert str(chosen) == "engine: onnx (the same answers as torch to 12 examples)"


def test_torch_is_chosen_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(VARIANTS["softmax"])
    assert str(choose_engine(task, "torch", none)) == "engine: torch (requested)"
    chosen = choose_engine(task, "auto", none)
    assert chosen.engine == "torch"
    assert chosen.why.startswith("no examples of the run were found")
    assert chosen.answerer.predict(WORDS) == task.predict(WORDS)
    modeling = load_bundle(STORED / "language_modeling")
    assert (
        "the task language_modeling has no export yet" in choose_engine(modeling, "auto", none).why
    )
    ensemble = TransductionEnsemble([task, task_of(VARIANTS["softmax"], seed=1)])
    assert choose_engine(ensemble, "auto", none).why == "an ensemble has no export"
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    why = choose_engine(task, "auto", lambda: EXAMPLES).why
    assert why.startswith("The engine onnx needs the package onnxruntime, which is not installed")


def test_a_requested_engine_is_used_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(VARIANTS["softmax"])
    chosen = choose_engine(task, "onnx", none)
    assert (chosen.engine, chosen.why.split(":")[0]) == ("onnx", "not compared with torch")
    with pytest.raises(ExportError, match="the task language_modeling has no export yet"):
        choose_engine(load_bundle(STORED / "language_modeling"), "onnx", none)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingPackageError, match=r"--engine onnx: .* onnxruntime"):
        choose_engine(task, "onnx", none)


def test_a_model_on_another_device_stays_there() -> None:
    task = task_of(VARIANTS["softmax"])
    task.model.to("meta")
    with pytest.raises(DeviceError, match="expected a model on cpu, got one on meta"):
        choose_engine(task, "onnx", lambda: EXAMPLES)


def test_a_model_that_is_not_finite_is_left_to_torch() -> None:
    task = task_of(VARIANTS["softmax"])
    with torch.no_grad():
        task.model.decoder.embedding.weight.fill_(float("nan"))
    chosen = choose_engine(task, "auto", lambda: EXAMPLES)
    assert (chosen.engine, chosen.why) == ("torch", "ONNX Runtime cannot run the model")
    with pytest.raises(ExportError, match="expected at least one possible output, got none"):
        choose_engine(task, "onnx", lambda: EXAMPLES)


def test_examples_that_cannot_be_read_are_no_reason_to_fail(tmp_path: Path) -> None:
    task = load_bundle(STORED / "classification")
    unreadable = [Example(Picture(tmp_path / "none.png"))]
    chosen = choose_engine(task, "auto", lambda: unreadable)
    assert str(chosen) == "engine: torch (an example of the run has no answer)"


def test_trial_examples_come_from_the_samples_of_a_run(run: Path) -> None:
    assert [one.text for one in trial_examples(run)] == ["abc", "ba", "edcba"]
    assert trial_examples(GOOD) == []


def test_the_samples_go_with_a_model_to_another_machine(run: Path) -> None:
    with unpacked(packed(run)) as copy:
        assert trial_examples(copy) == trial_examples(run)
        assert load_bundle(copy).predict("abc").output == "ABC"
    assert "samples.tsv" not in packed(GOOD)


def test_predict_prints_the_same_answers_with_both_engines(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "words.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    words = ["predict", str(run), str(tmp_path / "words.txt"), "--nbest", "2"]
    found = {}
    for engine in ("torch", "onnx", "auto"):
        main([*words, "--format", "jsonl", "--attention", "--engine", engine])
        printed = capsys.readouterr()
        found[engine] = [json.loads(line) for line in printed.out.splitlines()]
        assert f"engine: {'torch' if engine == 'torch' else 'onnx'} (" in printed.err
    assert found["auto"] == found["onnx"] != found["torch"]
    for ours, theirs in zip(found["onnx"], found["torch"], strict=True):
        assert ours["output"] == theirs["output"]
        assert ours["score"] == pytest.approx(theirs["score"], abs=1e-4)
        assert ours["attention"]["sources"] == theirs["attention"]["sources"]
    main([*words, "--engine", "auto", "--quiet"])
    assert capsys.readouterr().err == ""


def test_predict_names_the_part_without_an_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "words.txt").write_text("abc\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(
            ["predict", str(STORED / "documents"), str(tmp_path / "words.txt"), "--engine", "onnx"]
        )
    assert "--engine onnx: the encoder" in capsys.readouterr().err


def test_bulk_answers_with_onnx(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "words.txt").write_text(
        "".join(f"{line}\n" for line in LINES[:4]), encoding="utf-8"
    )
    task = load_bundle(run)
    for engine in ("onnx", "torch"):
        out = tmp_path / engine
        words = ("--in", str(tmp_path / "words.txt"), "--out", str(out), "--engine", engine)
        main(["bulk", str(run), *words])
        assert f"engine: {engine} (" in capsys.readouterr().err
        answerer = choose_engine(task, engine, lambda: trial_examples(run)).answerer
        predictor = Predictor(task, task.spec, answerer)
        expected = predictor.predict(list(map(Example, LINES[:4])), predictor.settings())
        rows = parquet.read_table(out / "words.parquet").to_pylist()
        assert [row["output"] for row in rows] == [one.output for one in expected]
        assert [row["score"] for row in rows] == [one.score for one in expected]


def test_the_server_answers_with_onnx(run: Path) -> None:
    with Computing(engine="onnx") as computing:
        served = computing.load("upper", run)
        assert served.engine == "engine: onnx (the same answers as torch to 3 examples)"
        assert served.is_exact
        examples = [Example("abc"), Example("edcba")]
        settings = served.questions.settings(nbest=2)
        answering = computing.answer(served, examples, settings, confidence=True)
        found = [json.loads(answer) for answer in asyncio.run(answering).value]
    for answer, right in zip(found, load_bundle(run).predict(examples, settings), strict=True):
        assert answer["output"] == right.output
        assert answer["score"] == pytest.approx(right.score, abs=1e-4)
        assert answer["score"] != right.score


def test_the_server_refuses_a_model_without_an_export() -> None:
    with (
        Computing(engine="onnx") as computing,
        pytest.raises(FovealError, match="has no export yet"),
    ):
        computing.load("model", STORED / "language_modeling")


def test_a_server_without_examples_uses_torch(tmp_path: Path) -> None:
    save_bundle(task_of(VARIANTS["softmax"]), tmp_path / "run")
    with Computing() as computing:
        assert computing.load("model", tmp_path / "run").engine.startswith("engine: torch (no ex")


def test_the_server_quotes_no_example(run: Path, tmp_path: Path) -> None:
    """Formulas cannot be inputs of an export, which only the answers to examples show."""
    task, folder = task_of(VARIANTS["softmax"]), tmp_path / "formulas"
    save_bundle(replace(task.spec, source=LatexSpec()).build(task.vocabularies), folder)
    shutil.copy(run / "samples.tsv", folder)
    with pytest.raises(ExportError, match="'abc'"):
        choose_engine(load_bundle(folder), "onnx", lambda: trial_examples(folder))
    with Computing(engine="onnx") as computing, pytest.raises(FovealError) as raised:
        computing.load("model", folder)
    assert "ONNX Runtime cannot run the model. Serve" in str(raised.value)
    assert "abc" not in str(raised.value)
