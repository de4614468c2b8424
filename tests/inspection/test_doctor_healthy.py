"""Ten healthy runs, trained until they work, raise no alarm during or after training."""

from pathlib import Path

import pytest

from foveal.inspection import examine
from foveal.training import _outputs
from tests.inspection.patients import HEALTHY, treat

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip drawing, which other tests cover."""
    monkeypatch.setattr(_outputs, "draw_curves", lambda log, out: None)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_raises_no_alarm(name: str, tmp_path: Path) -> None:
    patient = HEALTHY[name]
    treated = treat(patient, tmp_path)
    higher = treated.task.main_metric.higher_is_better
    worked = treated.score >= patient.good if higher else treated.score <= patient.good
    assert worked, treated.score
    assert treated.num_probes >= 2
    assert treated.said == []
    found = examine(tmp_path, patient.examples[:40])
    assert [finding for finding in found if finding.severity == "alarm"] == []


def test_there_are_thirteen() -> None:
    assert len(HEALTHY) == 13
