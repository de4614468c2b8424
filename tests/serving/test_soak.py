"""One minute of the soak test; run ten by hand: python -m benchmarks.soak."""

import pytest

from benchmarks.serving.load import OK
from benchmarks.soak import soaked
from tests.serving.conftest import GOOD
from tests.tasks.tiny import upper_cased

pytestmark = pytest.mark.slow


@pytest.mark.timeout(300)
def test_a_minute_of_good_and_bad_company() -> None:
    texts = [example.text for example in upper_cased(120, longest=30)]
    found = soaked(GOOD, texts, seconds=60)
    assert found.faults() == []
    seen = found.soak.seen
    assert seen["good", OK] > 0
    assert seen["slow writer", OK] + seen["slow reader", OK] > 0
    assert seen["too large, in chunks", 413] > 0
    assert seen["leaving", 0] > 0
