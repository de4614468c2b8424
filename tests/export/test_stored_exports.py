"""Folders of every earlier format load, and give their stored answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from foveal.runtime import Source, load
from foveal.runtime._folder import FORMAT
from tests.export.stored import EXPORTS, STORED

pytest.importorskip("onnxruntime")

FOLDERS = sorted(path.parent for path in EXPORTS.glob("*/*/manifest.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_stored_export_answers_as_it_did(folder: Path) -> None:
    model = load(folder)
    lines: list[dict[str, Any]] = [
        json.loads(line)
        for line in (folder / "selftest.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert model.self_test() == len(lines) > 2
    nbest = model.settings["prediction"]["beam_size"]
    for line in lines:
        source = Source(line["text"], line["features"] or "")
        found = model.predict(source, nbest=nbest, attention=True)
        assert model.encoded(source) == line["tokens"]
        assert [each.output for each in found.nbest] == line["outputs"]
        scores = [each.score for each in found.nbest]
        assert scores == pytest.approx(line["scores"], abs=1e-5)
        confidence = [each.confidence for each in found.nbest]
        assert confidence == pytest.approx(line["confidence"], abs=1e-5)
        if line["weights"] is None:
            assert found.attention is None
        else:
            assert found.attention is not None
            for ours, theirs in zip(found.attention.weights, line["weights"], strict=True):
                assert ours == pytest.approx(theirs, abs=1e-5)


def test_this_format_has_stored_exports_and_they_are_small() -> None:
    folders = [folder for folder in FOLDERS if folder.parent.name == f"format_{FORMAT}"]
    assert {folder.name for folder in folders} == set(STORED)
    for folder in folders:
        assert sum(path.stat().st_size for path in folder.iterdir()) < 150_000
