"""Fixtures that all training tests share."""

import pytest

from foveal.training import _outputs


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the plots: they take longer than most runs of these tests, and have separate tests."""
    monkeypatch.setattr(_outputs, "draw_curves", lambda log, out: None)
