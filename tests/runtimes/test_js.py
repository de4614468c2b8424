"""The JavaScript runtime answers like the Python runtime, in Node.js and in headless Chromium."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.browser import BrowserMissingError, open_browser
from foveal.data import ImageSpec
from tests.runtimes.exports import (
    OTHERS,
    Exported,
    check_equal,
    export_captioner,
    export_variant,
)
from tests.runtimes.javascript import in_node, installed, served, source_data

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

# A model of each kind of network that the graph and the plain engine have.
PLAIN = (
    "softmax, wide",
    "softmax, bilinear",
    "softmax, dot",
    "sigmoid, linear",
    "segment, scaled",
    "hard",
    "latent hard",
    "latent monotone",
    "no attention",
    "every step",
    "input feeding",
    "before, deep",
    "no bridge, tied",
    "gru",
    "elman, skip",
    "residual",
)
ONNX = (
    "softmax",
    "latent hard",
    "latent monotone",
    "copy, coverage",
    "convolutions",
    "transformer",
)
IMAGES = {
    "trimmed": ImageSpec(height=24, width=32, trim=True),
    "gray by ink": ImageSpec(height=24, width=32, num_channels=1, ink=0.9),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed npm package, and room for models."""
    return installed(tmp_path_factory.mktemp("javascript"))


@pytest.fixture(scope="module")
def models(place: Path) -> Mapping[str, Exported]:
    """Exported models by name."""
    (place / "models").mkdir()
    found = {
        name: export_variant(name, place / "models" / f"variant{number}", plain=name in PLAIN)
        for number, name in enumerate(sorted({*PLAIN, *ONNX}))
    }
    return found | {name: export(place / "models" / name) for name, export in OTHERS.items()}


def request(model: Exported, engine: str) -> dict[str, Any]:
    return {
        "folder": model.folder.name,
        "engine": engine,
        "sources": source_data(model.sources),
        "beamSize": model.beam_size,
    }


REQUESTS = [(name, "onnx") for name in (*ONNX, *OTHERS)]
REQUESTS += [(name, "plain") for name in (*PLAIN, "inflection")]


def requests_of(models: Mapping[str, Exported]) -> list[dict[str, Any]]:
    return [request(models[name], engine) for name, engine in REQUESTS]


@pytest.fixture(scope="module")
def answers_in_node(place: Path, models: Mapping[str, Exported]) -> Any:
    """The answers of all models in Node.js."""
    module = place / "answers.mjs"
    return in_node(
        module, "answered", str(place / "models"), requests_of(models), script=place / "node.mjs"
    )


@pytest.fixture(scope="module")
def page(place: Path) -> Iterator[Any]:
    """A function that answers requests in Chromium."""
    try:
        with served(place) as address, open_browser() as browser:
            browser.get(f"{address}/index.html")

            def answered(requests: list[dict[str, Any]]) -> Any:
                script = (
                    "const [root, requests, done] = arguments;"
                    "import(`${root}/answers.mjs`).then((module) => module.answered(`${root}/models`, requests))"
                    ".then((found) => done(JSON.stringify(found)), (error) => done(JSON.stringify(String(error))))"
                )
                found = json.loads(browser.execute_async_script(script, address, requests))
                assert isinstance(found, list), found
                return found

            yield answered
    except BrowserMissingError as error:
        pytest.skip(str(error))


def check(model: Exported, found: Mapping[str, Any]) -> None:
    """Compare all answers, alone and in a batch, with those of the Python runtime."""
    assert found["tested"] == len(model.sources)
    assert found["alone"] == found["together"]
    for answer, right in zip(found["together"], model.answers(), strict=True):
        check_equal(answer, right)


@pytest.mark.parametrize("number", range(len(REQUESTS)), ids=lambda n: " ".join(REQUESTS[n]))
def test_node_answers_like_python(
    number: int, models: Mapping[str, Exported], answers_in_node: Any
) -> None:
    check(models[REQUESTS[number][0]], answers_in_node[number])


def test_chromium_answers_like_python(models: Mapping[str, Exported], page: Any) -> None:
    found = page(requests_of(models))
    assert len(found) == len(REQUESTS)
    for (name, _), answers in zip(REQUESTS, found, strict=True):
        check(models[name], answers)


def test_the_installed_command_repeats_the_test_of_the_export(
    place: Path, models: Mapping[str, Exported]
) -> None:
    folder = models["tagger"].folder
    ran = subprocess.run(
        [place / "node_modules/.bin/foveal-run", folder, "--self-test"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == f"{folder}: {len(models['tagger'].sources)} answers are as expected\n"


@pytest.mark.parametrize("name", IMAGES)
def test_chromium_writes_texts_for_images_like_python(name: str, place: Path, page: Any) -> None:
    model = export_captioner(place / "models" / f"images {name}", IMAGES[name])
    (found,) = page([request(model, "onnx")])
    check(model, found)
