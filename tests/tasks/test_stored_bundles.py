"""Bundles of every earlier version load, and give their stored answers."""

import json
from pathlib import Path
from typing import Any

import pytest

import foveal
from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.errors import ValueRangeError
from tests.tasks.stored import ANSWERS, BUNDLES, INPUTS, answers

STORED = sorted(path.parent for path in BUNDLES.glob(f"*/*/{ANSWERS}"))


def alike(now: Any, then: Any) -> bool:
    """Return whether two values are equal, with numbers up to the rounding of another machine."""
    if isinstance(then, float | int) and not isinstance(then, bool):
        return now == pytest.approx(then, rel=1e-4, abs=1e-5)
    if isinstance(then, list):
        return len(now) == len(then) and all(map(alike, now, then))
    if isinstance(then, dict):
        return now.keys() >= then.keys() and all(alike(now[key], then[key]) for key in then)
    return now == then


@pytest.mark.parametrize("folder", STORED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_stored_bundle_answers_as_it_did(folder: Path) -> None:
    then = json.loads((folder / ANSWERS).read_text())
    now = json.loads(json.dumps(answers(folder.name, load_bundle(folder))))
    assert alike(now, then)


def test_this_version_has_stored_bundles_and_they_are_small() -> None:
    folders = [folder for folder in STORED if folder.parent.name == foveal.__version__]
    assert len(folders) == 7
    for folder in folders:
        assert sum(path.stat().st_size for path in folder.iterdir()) < 100_000


@pytest.mark.parametrize("kind", INPUTS)
def test_plain_strings_are_sources(kind: str) -> None:
    task = load_bundle(BUNDLES / "0.1.0" / kind)
    texts = INPUTS[kind][:2]
    assert task.predict(texts) == task.predict([Example(text) for text in texts])
    with pytest.raises(ValueRangeError, match=r"got one text, .* Put it into a list: predict\(\['"):
        task.answerer().predict(texts[0])


@pytest.mark.parametrize("kind", INPUTS)
def test_one_text_has_one_prediction(kind: str) -> None:
    task = load_bundle(BUNDLES / "0.1.0" / kind)
    first = INPUTS[kind][0]
    assert task.predict(first) == task.predict([first])[0] == task.predict(Example(first))
