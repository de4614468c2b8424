"""A sample of the requests that schemathesis generates from the schema; run 5,000 by hand."""

import pytest

from benchmarks.schema_fuzz import fuzzed
from tests.serving.conftest import GOOD

pytestmark = pytest.mark.slow


@pytest.mark.timeout(600)
def test_the_server_keeps_the_word_of_its_schema() -> None:
    found = fuzzed(GOOD, examples=10, seconds=540)
    assert found.failures == [], found.said
    assert found.num_cases > 100
    assert "Traceback" not in found.log
    assert "failed" not in found.log
