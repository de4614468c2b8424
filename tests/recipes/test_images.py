"""The image and clip recipes draw data, train for two steps and score, with small models."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.images import learning
from benchmarks.images.__main__ import EXPERIMENTS, main
from benchmarks.images._formulas import looks_the_same
from benchmarks.images._scenes import pointed
from benchmarks.results import Results, ResultsError
from examples.support import DATA
from foveal.attention import AttentionTrace, Layout
from foveal.data import Example
from foveal.models import CaptionerSpec, FramesEncoderSpec, ImageEncoderSpec
from foveal.specs import from_json, to_json
from foveal.tasks import Captioning, Prediction, VisualQuestionAnsweringSpec
from foveal.training import Run
from recipes import clips, easy_vqa, image_to_latex, scene_captions

pytestmark = pytest.mark.slow


@pytest.fixture
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create folders with a few pictures, drawn by the recipes."""
    for module in (image_to_latex, scene_captions):
        monkeypatch.setattr(module, "FOLDER", tmp_path / module.__name__)
    monkeypatch.setattr(clips, "FOLDERS", {what: tmp_path / what for what in clips.FOLDERS})
    monkeypatch.setattr(image_to_latex, "MORE", tmp_path / "more")
    monkeypatch.setattr(image_to_latex, "NUM_TRAIN", 12)
    monkeypatch.setattr(image_to_latex, "NUM_MORE", 18)
    monkeypatch.setattr(image_to_latex, "NUM_HELD_OUT", 4)
    for module, name in (
        (scene_captions, "COUNTS"),
        (clips, "NUM_HELD_OUT"),
        (clips, "NUM_TRAIN"),
    ):
        monkeypatch.setattr(module, name, dict.fromkeys(getattr(module, name), 6))
    return tmp_path


def short(run: Run) -> Run:
    """Train a small model for two steps."""
    task: Any = run.task
    encoder = task.model.encoder
    if isinstance(encoder, FramesEncoderSpec):
        tiny = ImageEncoderSpec(num_channels=task.image.num_channels, sizes=(4,))
        encoder = replace(encoder, frame=tiny, hidden_size=4)
    else:
        encoder = replace(encoder, sizes=(4, 4, 8), strides=None, rows=None)
    task = replace(task, model=replace(task.model, encoder=encoder))
    if not isinstance(task, VisualQuestionAnsweringSpec):
        task = replace(task, prediction=replace(task.prediction, beam_size=1))
    training = replace(run.training, epochs=None, steps=2, batch_size=6, validation_size=3)
    return replace(run, task=task, training=training)


def fitted_and_scored(
    name: str,
    cases: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    shorten: Callable[[Run], Run] = short,
) -> dict[str, float]:
    """Run the commands that fit and score the whole experiment."""
    experiment = EXPERIMENTS[name]
    runs = experiment._replace(run=lambda case: shorten(experiment.run(case)))
    monkeypatch.setitem(EXPERIMENTS, name, runs)
    rest = ["--runs", str(folder / "runs"), "--cases", *cases]
    main(["fit", name, *rest])
    main(["score", name, *rest, "--results", str(folder / "results")])
    results = Results.load(folder / f"results/{name}.json")
    assert results.spec.keys() == set(cases)
    return {row.name: row.value for row in results.rows}


def test_formulas_are_drawn_fitted_and_scored(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = fitted_and_scored("image_to_latex", ["rendered_none", "rendered_path"], few, monkeypatch)
    for case in ("rendered_none", "rendered_path"):
        assert 0 <= rows[f"{case}: exact_match"] <= rows[f"{case}: rendered match"] <= 100
        assert rows[f"{case}: parameters"] > 1000
    run = image_to_latex.recipe("rendered_soft")
    assert from_json(Run, to_json(run)) == run


def test_with_more_formulas_a_run_goes_on_and_is_asked_for_the_same(
    few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = str(few / "runs/image_to_latex/rendered_brief_1")
    monkeypatch.setattr(image_to_latex, "STARTS", {"rendered_more": begun})
    fitted_and_scored("image_to_latex", ["rendered_brief", "rendered_more"], few, monkeypatch)
    results = Results.load(few / "results/image_to_latex.json")
    assert {"weights of rendered_brief_1", "manifest.json of more"} <= results.data.keys()
    folders = image_to_latex.FOLDER, image_to_latex.MORE
    texts = [(folder / "train.tsv").read_text(encoding="utf-8") for folder in folders]
    assert texts[1].startswith(texts[0])
    assert len(texts[1].splitlines()) == 18
    digests = [json.loads((folder / "manifest.json").read_text())["digests"] for folder in folders]
    assert digests[0]["test"] == digests[1]["test"]


def test_scenes_are_pointed_at(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = fitted_and_scored("scene_captions", ["none", "soft"], few, monkeypatch)
    assert 0 <= rows["soft: exact_match"] <= 100
    assert "none: pointing" not in rows
    assert json.loads((few / "recipes.scene_captions/manifest.json").read_text())["seed"] == 1


def test_other_cases_stay_if_nothing_changed(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted_and_scored("scene_captions", ["none"], few, monkeypatch)
    path = few / "results/scene_captions.json"
    alone = Results.load(path)
    command = ["scene_captions", "--runs", str(few / "runs"), "--cases", "soft"]
    main(["fit", *command])
    scoring = ["score", *command, "--results", str(few / "results"), "--seeds", "1", "2"]
    main(scoring)  # seed 2 was not fitted
    both = Results.load(path)
    assert both.rows[: len(alone.rows)] == alone.rows
    assert any(row.name == "soft: exact_match" for row in both.rows)
    assert {row.seeds for row in both.rows} == {(1,)}
    assert both.spec == {**alone.spec, "soft": both.spec["soft"]}
    # The stored run of `none` no longer matches its recipe.
    monkeypatch.setattr(scene_captions, "SIDE", 40)
    with pytest.raises(
        ResultsError, match=r"rows of none were made before none changed.*--results"
    ):
        main(scoring)


def test_how_soon_captions_are_learnt_is_measured(few: Path) -> None:
    learning.main(["--seeds", "1", "--updates", "2", "--results", str(few)])
    results = Results.load(few / "image_learning.json")
    assert [row.name for row in results.rows] == [
        f"{norm}, {scores}: loss of a symbol"
        for norm in ("layer", "batch")
        for scores in ("unscaled", "scaled")
    ]
    assert all(1 < row.value < 5 for row in results.rows)


def test_clips_are_labelled_and_told(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = fitted_and_scored("clips", ["label_local", "caption_global"], few, monkeypatch)
    assert 0 <= rows["label_local: accuracy"] <= 100
    assert 0 <= rows["caption_global: exact_match"] <= 100
    assert rows["label_local: frames"] == clips.NUM_FRAMES


def test_questions_are_counted_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not DATA.joinpath("easy_vqa").exists():
        pytest.skip(f"data not found at {DATA}/easy_vqa; foveal data get easy_vqa")
    monkeypatch.setattr(easy_vqa, "FOLDER", tmp_path / "vqa")
    for name in ("train", "dev", "test"):
        part = easy_vqa.part(name)
        path = tmp_path / f"vqa/{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))[:40]))
        assert len(list(part)) == 40
    rows = fitted_and_scored("easy_vqa", ["soft"], tmp_path, monkeypatch)
    assert 0 <= rows["soft: accuracy"] <= 100
    assert any(name.startswith("soft: accuracy, what ") for name in rows)


def test_formulas_look_the_same_or_do_not() -> None:
    assert looks_the_same("x ^ { 2 }", "x ^ 2")
    assert not looks_the_same("x ^ { 2 }", "x _ { 2 }")
    assert not looks_the_same("x", "x ^ {")


def test_pointing_counts_the_cells_of_a_box() -> None:
    spec = scene_captions.CaptioningSpec(model=CaptionerSpec(encoder=ImageEncoderSpec(sizes=(4,))))
    task = spec.build_from([Example("a.png", "red circle")])
    assert isinstance(task, Captioning)
    weights = np.zeros((4, 4))
    weights[1, 1], weights[3, 3] = 0.75, 0.25
    row = tuple(weights.ravel().tolist())
    trace = AttentionTrace(
        kind="softmax",
        sources=tuple(map(str, range(16))),
        targets=("red", "square"),
        weights=(row, row),
        layout=Layout("grid", 4, 4),
    )
    answer = Prediction("red square", 0.0, 1.0, (), trace=trace)
    example = Example("a.png", "red circle")
    box = (1.0, 1.0, 4.0, 3.0)  # pixels: the cells in row 1, columns 1 and 2
    (found,) = pointed(task, example, answer, [[box], [box]])
    assert found == (0.75, 2 / 16)
