"""Graphs answer like the models that they were made from, and bit-identically alone and in a batch."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foveal.bundles import save_bundle
from foveal.export import ExportOptions, export_bundle
from foveal.runtime import load
from tests.export.variants import VARIANTS, WORDS, task_of

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("name", VARIANTS)
def test_answers_scores_and_attention_equal_the_original(name: str, tmp_path: Path) -> None:
    task = task_of(VARIANTS[name])
    save_bundle(task, tmp_path / "run")
    done = export_bundle(tmp_path / "run", tmp_path / "export", WORDS)
    assert done.num_tested == done.num_equal == len(WORDS)
    model = load(tmp_path / "export")
    nbest = task.prediction.beam_size
    answers = model.predict(WORDS, nbest=nbest, attention=True)
    settings = replace(task.prediction, trace=task.attends)
    for found, expected in zip(answers, task.predict(list(WORDS), settings), strict=True):
        assert found.output == expected.output
        assert len(found.nbest) == len(expected.nbest)
        scores = {each.output: each.score for each in expected.nbest}
        worst = min(scores.values())
        for ours, theirs in zip(found.nbest, expected.nbest, strict=True):
            # Candidates with nearly equal scores may change places, also with the first that is not in the list.
            assert ours.score == pytest.approx(theirs.score, abs=1e-4)
            assert ours.score == pytest.approx(scores.get(ours.output, worst), abs=1e-4)
            assert ours.confidence == pytest.approx(theirs.probability, abs=1e-4)
        np.testing.assert_allclose(
            found.token_probabilities, expected.token_probabilities, atol=1e-4
        )
        assert (found.attention is None) == (expected.trace is None)
        if found.attention is not None and expected.trace is not None:
            assert found.attention.targets == expected.trace.targets
            assert found.attention.sources == expected.trace.sources
            np.testing.assert_allclose(found.attention.weights, expected.trace.weights, atol=1e-4)
    for word, together in zip(WORDS, model.predict(WORDS * 3, nbest=nbest), strict=False):
        assert model.predict(word, nbest=nbest) == together


@pytest.mark.parametrize(
    ("name", "storage"),
    [
        ("transformer, copy", "half"),
        ("softmax", "half"),
        ("latent monotone", "int8"),
        ("gru", "int8"),
    ],
)
def test_small_storage_is_bit_identical_in_every_batch(
    name: str, storage: str, tmp_path: Path
) -> None:
    save_bundle(task_of(VARIANTS[name]), tmp_path / "run")
    assert storage == "half" or storage == "int8"
    options = ExportOptions(storage=storage)
    export_bundle(tmp_path / "run", tmp_path / "export", WORDS, options)
    model = load(tmp_path / "export")
    together = model.predict(WORDS * 3, nbest=3)
    for word, found in zip(WORDS, together, strict=False):
        assert model.predict(word, nbest=3) == found


def test_the_folder_contains_its_answers(tmp_path: Path) -> None:
    save_bundle(task_of(VARIANTS["copy"]), tmp_path / "run")
    options = ExportOptions(license="CC0", data=("words of one test",))
    export_bundle(tmp_path / "run", tmp_path / "export", WORDS, options)
    model = load(tmp_path / "export")
    assert model.self_test() == len(WORDS)
    assert (model.settings["license"], model.settings["data"]) == ("CC0", ["words of one test"])
    lines = (tmp_path / "export/selftest.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[5])
    # x is not in the vocabulary: the first slot, after 4 special tokens and 16 letters
    assert (first["text"], first["tokens"]) == ("xab", [20, 4, 5])
