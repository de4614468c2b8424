"""The settings of a run: limits, JSON, and required values."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foveal.errors import SpecError
from foveal.specs import from_json, settings, to_json, with_setting
from foveal.training import TrainingSpec
from tests.training.toys import train

SPEC = TrainingSpec(steps=3)


def test_json_both_ways() -> None:
    spec = replace(SPEC, epochs=2.5, betas=(0.8, 0.9), schedule="cosine", patience=3)
    assert from_json(TrainingSpec, to_json(spec)) == spec


def test_every_setting_says_what_it_does() -> None:
    assert all(setting.about for setting in settings(SPEC))


def test_a_setting_from_text() -> None:
    assert with_setting(SPEC, "schedule", "inverse_square_root").schedule == "inverse_square_root"
    with pytest.raises(SpecError, match=r"Did you mean .*cosine"):
        with_setting(SPEC, "schedule", "cosin")
    with pytest.raises(SpecError, match="Did you mean learning_rate"):
        with_setting(SPEC, "learning_rat", "1")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"steps": None},
            r"expected at least one of epochs, steps and minutes, got none.*set steps=2000",
        ),
        ({"steps": 0}, r"steps: expected a whole number of at least 1"),
        ({"ema_decay": 1.0}, r"must be below 1, got ema_decay=1.0.*use 0.999"),
        ({"betas": (0.9, 1.0)}, r"must be below 1.*betas=\(0.9, 1.0\)"),
        (
            {"schedule": "inverse_square_root"},
            r"at least 1, got 0. For example, set warmup_steps=1000",
        ),
        ({"learning_rate": -1.0}, r"learning_rate: expected a number above 0"),
    ],
)
def test_settings_that_cannot_be(change: dict[str, Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=text):
        train(tmp_path, replace(SPEC, **change))
    assert not list(tmp_path.iterdir())
