"""Names of devices become devices, or errors that say what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import foveal
from foveal.cli._main import main
from foveal.devices import is_gpu_idle, resolve_device
from foveal.errors import DeviceError
from foveal.inspection.doctor._findings import _idle_gpu
from foveal.scale.cluster import _gpus
from foveal.training._group import backend_for, process_group
from foveal.training.events._events import Started

Machine = Callable[[int, bool], None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a function that sets the number of GPUs of this machine, and whether it has one of Apple."""

    def have(gpus: int, mps: bool) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    have(0, False)
    return have


@pytest.mark.parametrize(
    ("gpus", "mps", "name", "expected"),
    [
        (0, False, "auto", "cpu"),
        (2, True, "auto", "cuda:0"),
        (0, True, "auto", "mps"),
        (2, False, "cuda", "cuda:0"),
        (2, False, "cuda:1", "cuda:1"),
        (2, True, "cpu", "cpu"),
        (0, True, "mps", "mps"),
    ],
)
def test_a_name_is_resolved(
    machine: Machine, gpus: int, mps: bool, name: str, expected: str
) -> None:
    machine(gpus, mps)
    assert resolve_device(name) == resolve_device(torch.device(expected)) == torch.device(expected)


@pytest.mark.parametrize(
    ("gpus", "name", "says"),
    [
        (0, "cuda", "got cuda, and .* finds no GPU. Use --device auto"),
        (0, "mps", "got mps, and torch finds no GPU of Apple. Use --device auto"),
        (2, "cuda:2", "expected a GPU from cuda:0 to cuda:1, got cuda:2"),
        (2, "gpu", "expected auto, cpu, cuda, .* got 'gpu'"),
        (2, "cuda:one", "got 'cuda:one'"),
        (2, "cpu:0", "got 'cpu:0'"),
        (2, "", "got ''"),
    ],
)
def test_another_name_is_refused(machine: Machine, gpus: int, name: str, says: str) -> None:
    machine(gpus, False)
    with pytest.raises(DeviceError, match=says):
        resolve_device(name)


def test_each_process_takes_its_own_gpu(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(2, False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert resolve_device("auto") == resolve_device("cuda") == torch.device("cuda", 1)
    with pytest.raises(DeviceError, match="expected cuda or auto in 2 processes, got cuda:1"):
        resolve_device("cuda:1")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(DeviceError, match="as many processes per machine as it has GPUs"):
        resolve_device("cuda")


def test_groups_on_gpus_use_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    assert backend_for("cpu") == "gloo"
    assert backend_for("cuda") == "cpu:gloo,cuda:nccl"
    monkeypatch.setenv("WORLD_SIZE", "2")
    with (
        pytest.raises(DeviceError, match="several processes can train on cpu or cuda, got mps"),
        process_group(torch.device("mps")),
    ):
        pass


@pytest.mark.parametrize(
    ("gpus", "device", "workers", "share"),
    [(0, "auto", 4, 0.0), (2, "auto", 4, 0.5), (2, "cuda", 1, 1.0), (2, "cpu", 4, 0.0)],
)
def test_workers_share_the_gpus_of_a_cluster(
    monkeypatch: pytest.MonkeyPatch, gpus: int, device: str, workers: int, share: float
) -> None:
    monkeypatch.setattr(_gpus.ray, "cluster_resources", lambda: {"GPU": float(gpus), "CPU": 8.0})
    assert _gpus.gpu_share(device, workers) == share
    if share in (0.0, 1.0):
        assert _gpus.own_gpus(device, workers) == bool(share)
    else:
        with pytest.raises(DeviceError, match="expected a GPU for each of 4 workers"):
            _gpus.own_gpus(device, workers)


def test_workers_without_gpus_refuse_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gpus.ray, "cluster_resources", dict)
    with pytest.raises(DeviceError, match="expected a cluster with GPUs"):
        _gpus.gpu_share("cuda", 2)
    with pytest.raises(DeviceError, match="can use auto, cpu or cuda, got cuda:1"):
        _gpus.gpu_share("cuda:1", 2)


def test_the_doctor_reports_an_idle_gpu(machine: Machine) -> None:
    assert list(_idle_gpu("cpu")) == []
    machine(1, False)
    assert is_gpu_idle("cpu")
    (finding,) = _idle_gpu("cpu")
    assert finding.name == "idle GPU"
    assert finding.severity == "note"
    for used in ("cuda:0", ""):  # empty in logs of older versions
        assert list(_idle_gpu(used)) == []


def test_a_run_starts_on_the_cpu_by_default_in_old_logs() -> None:
    started = Started(step=0, processes=1, parameters=1, metric="wer", higher_is_better=False)
    assert started.device == "cpu"


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    "command",
    [
        ["fit", "words.tsv", "--out", "run"],
        ["evaluate", "run", "words.tsv"],
        ["predict", "run", "words.tsv"],
        ["explain", "run", "abc"],
        ["serve", "run"],
        ["bulk", "run", "--in", "words.txt", "--out", "out"],
    ],
)
def test_commands_refuse_a_device_that_is_not_there(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.tsv").write_text("".join(f"{word}\t{word[::-1]}\n" for word in ("ab", "ba", "aab")))
    Path("words.txt").write_text("ab\n")
    foveal.fit("words.tsv", out="run", steps=1, encoder__hidden_size=8, device="cpu", quiet=True)
    with pytest.raises(SystemExit):
        main([*command, "--device", "cuda"])
    assert "device: expected a device of this machine, got cuda" in capsys.readouterr().err
