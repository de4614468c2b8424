"""Both implementations of a structure: C++ kernels and PyTorch operations."""

import pytest

from foveal.inference import _native


@pytest.fixture(params=["kernels", "pure"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the C++ kernels, if they are installed, and with PyTorch operations."""
    if request.param == "kernels" and not _native._IN_USE:
        pytest.skip("foveal-native is not in use")
    monkeypatch.setattr(_native, "_IN_USE", request.param == "kernels")
    monkeypatch.setattr(_native, "_WANTED", request.param == "kernels")
    return request.param
