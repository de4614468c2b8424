"""Two processes that share each batch equal one process, and a process that dies is replaced."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import torch

from foveal.bundles import load_bundle
from foveal.errors import ValueRangeError
from foveal.training import TrainingSpec, process_group, read_log
from foveal.training._gradients import Gradients
from foveal.training._group import Group
from tests.training.toys import DEV, losses, train, transduction

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SPEC = TrainingSpec(steps=50, learning_rate=5e-3, ema_decay=0.9)
SECONDS = 200  # about 10 on an idle machine


@contextmanager
def launched(out: Path, *options: str, restarts: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Start torchrun with two processes on a free port; end all of them afterwards."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    command += ["--max-restarts", str(restarts), "-m", "tests.training.toys", str(out)]
    # Without the second variable, a restart may wait for the process that died.
    environment = {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    process = subprocess.Popen(
        [*command, "--dropout", "0", *options],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the same training in this process only."""
    out = tmp_path_factory.mktemp("one")
    train(out, SPEC, task=transduction(dropout=0.0))
    return out


def check_equal_losses(one: Path, two: Path) -> None:
    expected, got = torch.tensor(losses(one)), torch.tensor(losses(two))
    assert len(expected) == len(got) == 50
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)


def test_two_processes_with_half_of_each_batch_are_one(one: Path, tmp_path: Path) -> None:
    with launched(tmp_path) as process:
        said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert "Warning" not in said
    check_equal_losses(one, tmp_path)
    outputs = [[p.output for p in load_bundle(folder).predict(DEV)] for folder in (one, tmp_path)]
    assert outputs[0] == outputs[1]


def test_a_process_that_dies_is_replaced_and_the_run_is_the_same(one: Path, tmp_path: Path) -> None:
    with launched(tmp_path, "--rank-dies-at", "20", restarts=3) as process:
        said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert "exitcode: -9" in said, said
    starts = [line for line in read_log(tmp_path / "log.jsonl") if line["event"] == "started"]
    assert 0 < starts[-1]["step"] < 20
    check_equal_losses(one, tmp_path)


def test_without_a_launcher_the_group_is_this_process() -> None:
    with process_group() as group:
        assert (group.rank, group.size, group.is_first) == (0, 1, True)
        tensor = torch.ones(3)
        group.add_up(tensor)
        group.copy_first([tensor])
        assert tensor.tolist() == [1, 1, 1]
        assert group.agree([2.5, 3.0]) == [2.5, 3.0]


def test_a_group_that_a_launcher_has_made_is_used_and_left_alone(tmp_path: Path) -> None:
    file = (tmp_path / "store").as_uri()
    torch.distributed.init_process_group("gloo", init_method=file, rank=0, world_size=1)
    try:
        with process_group() as group:
            assert (group.rank, group.size) == (0, 1)
        assert torch.distributed.is_initialized()
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_several_processes_need_weights_of_one_kind(kind: torch.dtype) -> None:
    parameter = torch.nn.Parameter(torch.zeros(3, dtype=kind))
    with pytest.raises(ValueRangeError, match=r"expected parameters of torch.float32.*float\(\)"):
        Gradients([parameter], Group(0, 2), num_signals=0)
