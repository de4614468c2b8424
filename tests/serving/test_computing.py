"""The compute process answers, fails, frees memory and ends correctly."""

import asyncio
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.errors import BundleError, FovealError
from foveal.inspection import explain
from foveal.serving import Predictor
from foveal.serving._answer import answer_json
from foveal.serving.computing._process import Computing, FaultError
from foveal.serving.computing._served import Served
from tests.serving.conftest import GOOD, SECONDS, Server, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(computing: Computing) -> Served:
    return computing.load("model", GOOD)


def _answers(computing: Computing, served: Served, text: str = "abc") -> list[str]:
    settings = served.questions.settings()
    answering = computing.answer(served, [Example(text)], settings, confidence=True)
    return asyncio.run(answering).value


def test_answers_are_those_of_a_predictor_here(computing: Computing, served: Served) -> None:
    task = load_bundle(GOOD)
    predictor = Predictor(task, task.spec)
    example = Example("abc")
    (prediction,) = predictor.predict([example], predictor.settings())
    assert _answers(computing, served) == [answer_json(example, prediction)]


def test_what_users_can_mend_is_told_and_a_fault_only_located(
    computing: Computing, served: Served
) -> None:
    with pytest.raises(FovealError, match="forced"):
        asyncio.run(computing.explain(served, Example("abc"), prefix=[], forced={0: [0.5]}))
    nobody = replace(served, number=10**9)
    with pytest.raises(FaultError, match=r"^KeyError in _interrupting.py, line \d+$"):
        _answers(computing, nobody, "a secret")
    assert _answers(computing, served)


def test_a_quick_order_goes_between_the_steps_of_a_long_one(
    computing: Computing, served: Served
) -> None:
    """The answers of both orders stay the same."""
    settings, long = served.questions.settings(nbest=16), [Example("abcde" * 6400)] * 2
    quick = [Example("abc")]

    async def both() -> tuple[list[str], list[list[str]], bool]:
        slow = computing.answer(served, long, settings, confidence=True)
        under_way = asyncio.create_task(slow)
        await asyncio.sleep(0.05)
        found = [
            await computing.answer(
                served, quick, served.questions.settings(), confidence=True, interrupting=True
            )
            for _ in range(3)
        ]
        return (await under_way).value, [one.value for one in found], under_way.done()

    async def alone() -> list[str]:
        return (await computing.answer(served, long, settings, confidence=True)).value

    async def order() -> list[str]:
        ended = list[str]()

        async def run(name: str, answering: Awaitable[Any]) -> None:
            await answering
            ended.append(name)

        slow = computing.answer(served, long * 4, settings, confidence=True)
        fast = computing.answer(
            served, quick, served.questions.settings(), confidence=True, interrupting=True
        )
        await asyncio.gather(run("long", slow), run("quick", fast))
        return ended

    slow, found, _ = asyncio.run(both())
    assert found == [_answers(computing, served)] * 3
    assert slow == asyncio.run(alone())
    assert asyncio.run(order()) == ["quick", "long"]


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_order_is_charged_for_its_own_processor_time(
    computing: Computing, served: Served
) -> None:
    """The charge excludes orders that interrupt it, and time during which the machine does other
    work.
    """
    settings, long = served.questions.settings(nbest=16), [Example("abcde" * 6400)]
    pid, stopped = computing._child._process.pid, 1.0

    async def both() -> tuple[float, float]:
        outer = computing.answer(served, long * 2, settings, confidence=True)
        under_way = asyncio.create_task(outer)
        await asyncio.sleep(0.05)
        inner = await computing.answer(served, long, settings, confidence=True, interrupting=True)
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(stopped)
        os.kill(pid, signal.SIGCONT)
        return (await under_way).seconds, inner.seconds

    before, began = _processor_seconds(pid), time.monotonic()
    outer, inner = asyncio.run(both())
    used, passed = _processor_seconds(pid) - before, time.monotonic() - began
    assert min(outer, inner) > 0.05
    assert outer + inner <= used + 0.03  # the system clock ticks every 0.01 s
    assert outer + inner <= passed - stopped


def test_an_explanation_comes_as_json(computing: Computing, served: Served) -> None:
    asked = computing.explain(served, Example("abc"), prefix=["A"], forced={})
    expected = explain(load_bundle(GOOD), Example("abc"), prefix=["A"]).to_data()
    assert json.loads(asyncio.run(asked).value) == json.loads(json.dumps(expected))


def test_an_order_that_is_cancelled_ends_and_the_next_is_answered(
    computing: Computing, served: Served
) -> None:
    settings, long = served.questions.settings(nbest=16), [Example("abcde" * 6400)] * 64

    async def cancelled() -> float:
        slow = computing.answer(served, long, settings, confidence=True)
        under_way = asyncio.create_task(slow)
        await asyncio.sleep(0.2)
        began = time.monotonic()
        computing.cancel()
        with pytest.raises(FaultError, match="cancelled"):
            await under_way
        return time.monotonic() - began

    before = _answers(computing, served)
    for _ in range(5):
        assert asyncio.run(cancelled()) < SECONDS
        assert _answers(computing, served) == before
    computing.cancel()  # no order is running
    assert _answers(computing, served) == before


def test_a_model_that_nobody_holds_is_forgotten(computing: Computing, served: Served) -> None:
    other = computing.load("other", GOOD)
    number = other.number
    assert _answers(computing, other)
    del other
    gc.collect()
    assert _answers(computing, served)  # the compute process learns of it with this order
    with pytest.raises(FaultError, match="KeyError"):
        _answers(computing, replace(served, number=number))


def test_a_torn_bundle_is_refused(computing: Computing, served: Served, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOOD, tmp_path / "model"))
    (folder / "weights.safetensors").write_bytes(b"torn")
    with pytest.raises(BundleError, match="incomplete or damaged"):
        computing.load("torn", folder)
    assert _answers(computing, served)


def _children(server: Server) -> list[int]:
    found = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    return [int(word) for word in found.split()]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_server_ends_with_the_process_that_computes(tmp_path: Path) -> None:
    """The server ends if its compute process is killed, for example by the kernel when memory is
    short.
    """
    with serving(tmp_path, f"model={GOOD}") as server:
        (child,) = _children(server)
        os.kill(child, signal.SIGKILL)
        assert server.process.wait(SECONDS) not in (0, -signal.SIGTERM)
        log = server.log.read_text()
    assert "the computing process ended with status -9" in log
    assert "Traceback" not in log


def test_a_process_that_starts_slowly_does_not_hang() -> None:
    """Importing torch takes longer than the process may be silent later."""
    ended: list[int] = []
    with Computing(silent_seconds=0.2) as computing:
        computing.watch(ended.append)
        assert computing.load("model", GOOD).name == "model"
        assert ended == []


def test_the_process_that_computes_ends_with_the_server(tmp_path: Path) -> None:
    with serving(tmp_path, f"model={GOOD}") as server:
        (child,) = _children(server)
        server.process.kill()
        server.process.wait(SECONDS)
        end = time.monotonic() + SECONDS
        while _is_alive(child):
            assert time.monotonic() < end
            time.sleep(0.05)


_LOOK = """
import gc, sys
from types import SimpleNamespace
from fastapi import FastAPI
from foveal.serving.computing import _worker
from foveal.serving import Limits
from foveal.serving.server import _server, serve

class Look:
    def __init__(self, *_): pass
    def run(self, **_): print(len(gc.get_objects()), flush=True)

app = FastAPI()
app.state.serving = SimpleNamespace(limits=Limits(), failure="")
_server._Server = _worker.Carrier = Look
Look().run()
serve(app, host="127.0.0.1", port=0, ready=print)
gc.unfreeze()
_worker.main()
"""


def test_garbage_collection_leaves_imported_modules_out() -> None:
    """Full collections would pause the server and the compute process, so both freeze imported
    modules.
    """
    pipes = [Pipe() for _ in range(4)]
    theirs = [other.fileno() for _, other in pipes]
    ended = subprocess.run(
        [sys.executable, "-c", _LOOK, *map(str, theirs)],
        pass_fds=theirs,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    for pipe in pipes:
        for end in pipe:
            end.close()
    at_first, serving_, computing_ = map(int, ended.stdout.split())
    assert at_first > 100_000
    assert max(serving_, computing_) < 5000


def test_nothing_of_the_working_folder_is_run(tmp_path: Path) -> None:
    """A file with the name of a module in the working folder is not imported."""
    (tmp_path / "foveal.py").write_text("raise SystemExit('run')")
    (tmp_path / "traceback.py").write_text("raise SystemExit('run')")
    code = (
        "from pathlib import Path; from foveal.serving.computing._process import Computing\n"
        f"with Computing() as computing: print(computing.load('model', Path({str(GOOD)!r})).name)"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert ended.stdout == "model\n"
