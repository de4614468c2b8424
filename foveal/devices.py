"""The device that a command or a function computes on: its name, its random numbers, and copies to it.

    auto      the first GPU if there is one, else Apple's GPU (mps), else the CPU
    cuda      a GPU; under torchrun, each process takes the GPU of its local rank
    cuda:1    this GPU
    mps, cpu

A spec never names a device: a model that was trained on a GPU loads and answers on a CPU, and the reverse.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from .errors import DeviceError

NAMES = "auto, cpu, cuda, cuda:1 (any number) or mps"


def resolve_device(name: str | torch.device = "auto") -> torch.device:
    """Return the device that a name stands for.

    Args:
        name: auto, cpu, cuda, cuda:N or mps. A device is checked and returned.

    Returns:
        A device that this process can use; a GPU has its number.

    Raises:
        DeviceError: The name is unknown, or this machine does not have the device.

    Examples:
        >>> resolve_device("cpu")
        device(type='cpu')
    """
    text = str(name)
    if text == "auto":
        text = _best()
    kind, colon, number = text.partition(":")
    if kind == "cuda" and (not colon or number.isdecimal()):
        return _gpu(text, int(number) if colon else None)
    if text == "mps":
        if not torch.backends.mps.is_available():
            raise DeviceError(
                "device: expected a device of this machine, got mps, and torch finds no GPU of Apple. "
                "Use --device auto (device='auto' in Python), which selects one that exists."
            )
    elif text != "cpu":
        raise DeviceError(f"device: expected {NAMES}, got {text!r}. Use auto to select the best.")
    return torch.device(text)


def is_gpu_idle(used: str) -> bool:
    """Return whether a run on the device with this name leaves a GPU of this machine unused.

    Args:
        used: Name of the device of a run, as its log records it.

    Returns:
        True if the run used the CPU, and `auto` would have selected a GPU.
    """
    return used == "cpu" and _best() != "cpu"


def seed_device(device: torch.device, seed: int) -> None:
    """Seed the random numbers of the CPU and of a device."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


@contextmanager
def random_state_restored(device: torch.device) -> Iterator[None]:
    """Restore the random state of the CPU and of a device on exit."""
    if device.type == "cpu":
        with torch.random.fork_rng(devices=[]):
            yield
    elif device.type == "mps":
        state = torch.mps.get_rng_state()
        try:
            with torch.random.fork_rng(devices=[]):
                yield
        finally:
            torch.mps.set_rng_state(state)
    else:
        with torch.random.fork_rng(devices=[device.index or 0], device_type=device.type):
            yield


def _best() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _gpu(text: str, number: int | None) -> torch.device:
    if not torch.cuda.is_available():
        build = f"torch {torch.__version__}" if torch.version.cuda else "a build of torch for CPUs"
        raise DeviceError(
            f"device: expected a device of this machine, got {text}, and {build} finds no GPU. Use "
            f"--device auto (device='auto' in Python), or install the driver and a build of torch for "
            f"it: https://pytorch.org/get-started."
        )
    count = torch.cuda.device_count()
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if number is not None and processes > 1:
        raise DeviceError(
            f"device: expected cuda or auto in {processes} processes, got {text}, which all of them "
            f"would share. Use --device cuda: each process takes its own GPU."
        )
    if number is None:
        number = int(os.environ.get("LOCAL_RANK", "0")) if processes > 1 else 0
    if number >= count:
        raise DeviceError(
            f"device: expected a GPU from cuda:0 to cuda:{count - 1}, got cuda:{number}. Use one of "
            f"them, or as many processes per machine as it has GPUs."
        )
    return torch.device("cuda", number)
