"""A real server, started from the command line, and a real browser with a fresh profile."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from selenium import webdriver

from benchmarks.browser import BrowserMissingError, open_browser
from benchmarks.started import started
from foveal.bundles import save_bundle
from tests.tasks.stored import BUNDLES
from tests.tasks.tiny import train, transduction, upper_cased

SECONDS = 90  # limit for starting a server or loading a page on a busy machine
GOOD = BUNDLES / "0.1.0" / "transduction"  # writes short words in capitals


class Served(NamedTuple):
    """The address of a server, and the file with its error output."""

    address: str
    log: Path


@pytest.fixture(scope="session")
def other_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that is almost untrained."""
    torch.manual_seed(1)
    task = transduction()
    train(task, upper_cased(100), epochs=4, rate=1e-2)
    task.model.eval()
    folder = tmp_path_factory.mktemp("runs") / "hasty"
    save_bundle(task, folder)
    return folder


@pytest.fixture(scope="session")
def served(other_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`foveal explore` with a good run and a barely trained one, ended by Ctrl-C."""
    log = tmp_path_factory.mktemp("server") / "log.txt"
    words = ["explore", str(GOOD), str(other_run), "--no-browser"]
    with log.open("w") as errors, started(words, errors, SECONDS) as (process, address):
        yield Served(address, log)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


@pytest.fixture(scope="session")
def chromium() -> Iterator[webdriver.Chrome]:
    """One browser for all tests; each test reloads the page."""
    with contextlib.ExitStack() as stack:
        try:
            browser = stack.enter_context(open_browser())
        except BrowserMissingError as error:
            pytest.skip(str(error))
        yield browser
