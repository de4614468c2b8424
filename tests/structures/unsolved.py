"""Answers that are known to be wrong: each line names a defect that is still open, and goes with it."""

import pytest

from sightline.inference import _native


def expect_failure_of(name: str, inputs: str) -> None:
    """Stop a test of something that is known to be wrong, and say so."""
    huge = inputs.startswith(("sentinel -1e+19", "sentinel -1e+30", "sentinel -3.4"))
    if name == "SpanningTree" and huge and not _native._IN_USE:
        pytest.xfail(
            "one root, tensor operations: digits are lost next to scores of -1e19 and less"
        )
