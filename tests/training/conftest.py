"""What all tests of training share."""

import pytest

from foveal.training import _outputs


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than most runs of these tests, and has tests of its own."""
    monkeypatch.setattr(_outputs, "draw_curves", lambda log, out: None)
