"""Bad bundles in the folder of a running server: it refuses each, reports it, and keeps watching."""

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from foveal.errors import FovealError
from foveal.serving.computing._process import Computing
from foveal.serving.server import build_app
from tests.serving.broken import (
    files_of,
    nan_calibration,
    nan_weights,
    nested_calibration,
    write_bundle,
)
from tests.serving.conftest import GOOD, SECONDS, STORED, Server, serving

pytestmark = pytest.mark.slow

REFUSED = 'foveal_reloads_total{{model="{}",outcome="refused"}}'
LOADED = 'foveal_reloads_total{{model="{}",outcome="loaded"}}'


def _wait(server: Server, metric: str, value: int) -> None:
    end = time.monotonic() + SECONDS
    while server.metric(metric) < value:
        assert time.monotonic() < end, server.log.read_text()
        time.sleep(0.1)


def test_a_bad_bundle_never_takes_over_and_never_ends_the_watch(tmp_path: Path) -> None:
    kinds = ("transduction", "tagging", "classification")
    folders = [Path(shutil.copytree(STORED / kind, tmp_path / kind)) for kind in kinds]
    with serving(tmp_path, *folders) as server:
        before = {kind: server.predict(kind, ["ab"]).lines for kind in kinds}
        for number, spoil in enumerate((nan_weights, nan_calibration, nested_calibration)):
            for kind in kinds:
                write_bundle(tmp_path / kind, spoil(files_of(kind)))
            for kind in kinds:
                _wait(server, REFUSED.format(kind), number + 1)
                assert server.predict(kind, ["ab"]).lines == before[kind]
        refused = {one["name"]: one["refused"] for one in server.ask("/v1/models").data["models"]}
        assert all(refused.values()), refused
        for kind in kinds:
            write_bundle(tmp_path / kind, files_of(kind), "good again")
        for kind in kinds:
            _wait(server, LOADED.format(kind), 1)
            assert server.predict(kind, ["ab"]).lines == before[kind]
        assert not any(one["refused"] for one in server.ask("/v1/models").data["models"])
        assert server.end() == 0


@pytest.mark.parametrize("kind", ["transduction", "tagging", "classification"])
@pytest.mark.parametrize("spoil", [nan_weights, nan_calibration])
def test_a_model_without_finite_answers_is_not_loaded(
    computing: Computing,
    tmp_path: Path,
    kind: str,
    spoil: Callable[[dict[str, bytes]], dict[str, bytes]],
) -> None:
    write_bundle(tmp_path / kind, spoil(files_of(kind)))
    with pytest.raises(FovealError):
        computing.load(kind, tmp_path / kind)


def test_the_end_of_the_watch_is_a_failure_of_the_server(computing: Computing) -> None:
    app = build_app([computing.load("model", GOOD)], computing)
    serving = app.state.serving
    stopped = list[bool]()
    serving.stop = lambda: stopped.append(True)

    async def watch_ends() -> None:
        async with serving.running():
            serving.models._served["gone"] = None  # not a model: accessing it raises
            async with asyncio.timeout(SECONDS):
                while not serving.failure:
                    await asyncio.sleep(0.05)

    asyncio.run(watch_ends())
    assert "watches folders" in serving.failure
    assert serving.is_draining
    assert stopped
