"""Speech models in the explorer: a user chooses a recording, sees its spectrogram and hears what a token read."""

import base64
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from benchmarks.started import started
from foveal.bundles import load_bundle, save_bundle
from foveal.data import Audio, Example
from foveal.errors import ValueRangeError
from foveal.explorer import build_app
from foveal.inspection import explain
from foveal.web._runs import load_runs
from tests.explorer.conftest import GOOD, SECONDS, Served
from tests.explorer.page import Panel
from tests.explorer.test_app import fetch
from tests.tasks.test_transcription import TONES, tones
from tests.tasks.tiny import train

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A barely trained model in `model`, and recordings."""
    made = tmp_path_factory.mktemp("recordings")
    examples = [example for example, _ in tones(made, 12, most=2)]
    torch.manual_seed(0)
    task = TONES.build_from(examples)
    train(task, examples, epochs=3, rate=1e-2)
    task.model.eval()
    save_bundle(task, made / "model")
    return made


@pytest.fixture(scope="session")
def heard(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`foveal explore` with the model, ended by Ctrl-C."""
    log = tmp_path_factory.mktemp("server") / "log.txt"
    words = ["explore", str(folder / "model"), "--no-browser"]
    with log.open("w") as errors, started(words, errors, SECONDS) as (process, address):
        yield Served(address, log)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


def test_a_recording_is_answered_as_the_file_is(folder: Path) -> None:
    path = folder / "0.wav"
    content = base64.b64encode(path.read_bytes()).decode()
    question = {"run": "model", "input": "", "picture": f"data:audio/wav;base64,{content}"}
    app = build_app(load_runs([folder / "model"]))
    found = fetch(app, "/api/explain", body=json.dumps(question).encode())
    expected = explain(load_bundle(folder / "model"), Example(Audio(path))).to_data()
    assert found.data["steps"] == json.loads(json.dumps(expected["steps"]))
    refused = fetch(app, "/api/explain", body=json.dumps(question | {"picture": ""}).encode())
    assert refused.status == 400
    assert "Drop a recording" in refused.data["error"]
    (described,) = fetch(app, "/api/runs").data
    assert described["hears"]
    with pytest.raises(ValueRangeError, match="a text and a recording"):
        load_runs([GOOD, folder / "model"])


# Where a player began and ended, once it has stopped.
PLAYED = """
const [{played, paused}] = arguments;
return paused && played.length ? [played.start(0), played.end(played.length - 1)] : [];
"""


def test_a_token_plays_what_it_read(chromium: Chrome, heard: Served, folder: Path) -> None:
    path = folder / "1.wav"
    chromium.get(heard.address)
    wait = WebDriverWait(chromium, SECONDS, poll_frequency=0.05)
    wait.until(lambda _: chromium.find_element(By.ID, "file").is_displayed())
    assert chromium.find_element(By.ID, "file-label").text == "Recording"
    chromium.find_element(By.ID, "file").send_keys(str(path))
    panel = Panel(chromium, 0)
    wait.until(lambda _: panel.one(".picture img").is_displayed())
    expected = explain(load_bundle(folder / "model"), Example(Audio(path)))
    assert panel.one(".picture img").get_property("src") == expected.to_data()["picture"]
    player = panel.one("audio")
    assert player.is_displayed()
    wait.until(lambda _: player.get_property("readyState") == 4)
    assert player.get_property("paused")

    # Of the positions around the highest weight, a span has those with at least half of it.
    weights = expected.steps[0].weights
    assert weights is not None
    first = end = weights.index(max(weights))
    while first > 0 and weights[first - 1] >= max(weights) / 2:
        first -= 1
    while end < len(weights) and weights[end] >= max(weights) / 2:
        end += 1
    seconds = 4 * TONES.audio.hop_seconds
    panel.open_step(0)
    wait.until(lambda _: len(chromium.execute_script(PLAYED, player)) == 2)
    began, ended = chromium.execute_script(PLAYED, player)
    assert began == pytest.approx(first * seconds, abs=0.02)
    # The browser looks at the time once for each frame that it draws.
    duration = chromium.execute_script("return arguments[0].duration", player)
    assert ended == pytest.approx(min(end * seconds, duration), abs=0.3)
    shares = panel.numbered(".picture .cell", "--share")
    assert shares == pytest.approx([one / max(weights) for one in weights], abs=1e-4)
    # The browser's policy refused nothing.
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
