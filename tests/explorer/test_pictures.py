"""Image models in the explorer: a user drops an image on the page, and the page highlights the
attended cells of each token.
"""

import base64
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from benchmarks.started import started
from foveal.bundles import load_bundle, save_bundle
from foveal.data import Example
from foveal.errors import ValueRangeError
from foveal.explorer import build_app
from foveal.inspection import explain
from foveal.models import TextEncoderSpec, VQAModelSpec
from foveal.tasks import VisualQuestionAnsweringSpec
from foveal.web._runs import load_runs
from tests.explorer.conftest import GOOD, SECONDS, Served
from tests.explorer.page import Panel
from tests.explorer.test_app import Response, fetch
from tests.tasks.pictures import BARS, ENCODER, IMAGE, bars
from tests.tasks.tiny import train

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two almost untrained models, for captions and for questions, and some images."""
    made = tmp_path_factory.mktemp("pictures")
    examples = bars(made / "bars", 20)
    torch.manual_seed(0)
    task = BARS.build_from(examples)
    train(task, examples, epochs=20, rate=1e-2)
    task.model.eval()
    save_bundle(task, made / "captions")
    asked = [Example(f"{one.source}\tWhat color is it?", "red") for one in examples]
    answers = [*asked, Example(f"{examples[0].source}\tIs it high?", "yes")]
    question = TextEncoderSpec(embedding_size=8, hidden_size=8, dropout=0.0)
    spec = VisualQuestionAnsweringSpec(
        image=IMAGE, model=VQAModelSpec(encoder=ENCODER, question=question)
    )
    save_bundle(spec.build_from(answers), made / "questions")
    return made


def inline(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def answered(run: Path, **question: Any) -> Response:
    body = json.dumps({"run": run.name, "input": ""} | question).encode()
    return fetch(build_app(load_runs([run])), "/api/explain", body=body)


def test_a_picture_is_answered_as_the_file_is(folder: Path) -> None:
    path = folder / "bars/0.png"
    found = answered(folder / "captions", picture=inline(path))
    expected = explain(load_bundle(folder / "captions"), Example(str(path))).to_data()
    assert found.status == 200
    assert found.data == json.loads(json.dumps(expected | {"input": "image"}))
    assert found.data["layout"]["pitch"] == [8, 4]
    asked = answered(folder / "questions", picture=inline(path), input="Is it high?")
    text = f"{path}\tIs it high?"
    assert (
        asked.data["nbest"]
        == explain(load_bundle(folder / "questions"), Example(text)).to_data()["nbest"]
    )


def test_a_request_names_no_file_of_the_machine(folder: Path) -> None:
    path = folder / "bars/0.png"
    for picture in (str(path), f"file://{path}", ""):
        found = answered(folder / "captions", picture=picture, input=str(path))
        assert found.status == 400
        assert "Drop an image" in found.data["error"]
        assert str(folder) not in found.data["error"]


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        ("data:image/png;base64,AAAA", "in an unknown format"),
        ("data:image/png;base64,?", "base64"),
        ("data:", "base64"),
        ("data:image/svg+xml;base64," + base64.b64encode(b"<svg/>").decode(), "SVG"),
    ],
)
def test_what_is_no_image_is_a_line(folder: Path, picture: str, said: str) -> None:
    found = answered(folder / "captions", picture=picture)
    assert found.status == 400
    assert said in found.data["error"]
    assert "\n" not in found.data["error"]


def test_texts_and_pictures_are_not_mixed(folder: Path) -> None:
    refused = answered(GOOD, picture=inline(folder / "bars/0.png"), input="abc")
    assert refused.status == 400
    assert "reads texts" in refused.data["error"]
    with pytest.raises(ValueRangeError, match="a text and an image"):
        load_runs([GOOD, folder / "captions"])


@pytest.fixture(scope="session")
def pictured(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`foveal explore` with a captioning model, ended by Ctrl-C."""
    log = tmp_path_factory.mktemp("server") / "log.txt"
    words = ["explore", str(folder / "captions"), "--no-browser"]
    with log.open("w") as errors, started(words, errors, SECONDS) as (process, address):
        yield Served(address, log)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


# Simulate dropping a file on the page.
DROP = """
const [text, name] = arguments;
const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
const dropped = new DataTransfer();
dropped.items.add(new File([bytes], name, {type: "image/png"}));
document.body.dispatchEvent(
  new DragEvent("drop", {dataTransfer: dropped, bubbles: true, cancelable: true}),
);
"""


def test_an_image_is_dropped_and_lit_where_it_was_looked_at(
    chromium: Chrome, pictured: Served, folder: Path
) -> None:
    path = folder / "bars/1.png"
    chromium.get(pictured.address)
    wait = WebDriverWait(chromium, SECONDS, poll_frequency=0.05)
    wait.until(lambda _: chromium.find_element(By.ID, "file").is_displayed())
    assert not chromium.find_element(By.ID, "input").is_displayed()
    panel = Panel(chromium, 0)
    assert panel.one(".body").get_property("hidden")

    chromium.find_element(By.ID, "file").send_keys(str(folder / "bars/0.png"))
    wait.until(lambda _: not panel.one(".body").get_property("hidden"))
    chromium.execute_script(DROP, base64.b64encode(path.read_bytes()).decode(), path.name)
    expected = explain(load_bundle(folder / "captions"), Example(str(path)))
    symbols = [step.token or "end" for step in expected.steps]
    data = expected.to_data()
    wait.until(lambda _: panel.one(".picture img").get_property("src") == data["picture"])
    wait.until(lambda _: panel.one(".picture img").get_property("complete"))
    assert panel.texts(".outputs .token") == symbols
    assert len(symbols) > 1
    name = chromium.execute_script("return document.getElementById('file').files[0].name")
    assert name == path.name
    assert not panel.one(".inputs").is_displayed()
    assert not panel.one(".map-part").is_displayed()

    for step in (0, 1):
        panel.open_step(step)
        weights = expected.steps[step].weights
        assert weights is not None
        shares = panel.numbered(".picture .cell", "--share")
        assert shares == pytest.approx([one / max(weights) for one in weights], abs=1e-4)
    (first, second), size = panel.all(".picture .cell")[:2], panel.one(".picture img").size
    with Image.open(path) as image:
        scale = size["width"] / image.width
    # Centered on pixels 0 and 4: the edge of the image cuts the first.
    assert first.size["width"] == pytest.approx(2.5 * scale, abs=1)
    assert second.size["width"] == pytest.approx(4 * scale, abs=1)
    assert np.isclose(second.location["x"] - first.location["x"], 2.5 * scale, atol=1)
    # The browser's policy refused nothing.
    assert [entry["message"] for entry in chromium.get_log("browser")] == []


def test_what_is_no_image_is_said_on_the_page(
    chromium: Chrome, pictured: Served, tmp_path: Path
) -> None:
    (tmp_path / "page.png").write_bytes(b"%PDF-1.7 ...")
    chromium.get(pictured.address)
    wait = WebDriverWait(chromium, SECONDS, poll_frequency=0.05)
    wait.until(lambda _: chromium.find_element(By.ID, "file").is_displayed())
    chromium.find_element(By.ID, "file").send_keys(str(tmp_path / "page.png"))
    panel = Panel(chromium, 0)
    wait.until(lambda _: panel.one(".error").is_displayed())
    assert "the file is PDF" in panel.one(".error").text
    chromium.get_log("browser")  # clears the expected error 400
