"""The server returns the bytes of the command line, for every batch composition."""

import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.serving.conftest import SECONDS, STORED, Response, Server

pytestmark = pytest.mark.slow

LETTERS = random.Random(0)
WORDS = [
    "".join(LETTERS.choices("abcdexyz é", k=LETTERS.randint(1, 30))).strip() for _ in range(60)
]
TEXTS = {
    "transduction": WORDS,
    "language_modeling": WORDS[:12],
    "classification": ["the good old ship", "a cat", "unseen words", "the old cat a good ship"],
    "tagging": ["the good old ship", "a cat", "unseen words", "the old cat a good ship"],
}


def command_line(model: Path, texts: list[str], *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "foveal.cli", "predict", str(model), *words],
        input="".join(text + "\n" for text in texts),
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def patient(server: Server, kind: str, text: str, **asked: Any) -> Response:
    """Retry as the server requests, because the machine may be slow."""
    end = time.monotonic() + SECONDS
    while (response := server.predict(kind, [text], **asked)).status == 503:
        assert time.monotonic() < end
        time.sleep(float(response.headers["retry-after"]))
    return response


@pytest.mark.parametrize("kind", TEXTS)
def test_answers_are_those_of_the_command_line(server: Server, kind: str) -> None:
    """Answers match one by one, with many inputs in one request, and with many concurrent requests."""
    texts = TEXTS[kind]
    words = ("--format", "jsonl", "--nbest", "2", "--attention")
    expected = command_line(STORED / kind, texts, *words)
    asked = {"nbest": 2, "attention": True}
    assert server.predict(kind, texts, **asked).lines == expected
    with ThreadPoolExecutor(12) as threads:
        found = list(threads.map(lambda text: patient(server, kind, text, **asked).lines, texts))
    assert [line for lines in found for line in lines] == expected


def test_a_stream_has_the_lines_of_the_command_line(server: Server) -> None:
    response = server.predict("transduction", WORDS, stream=True)
    assert response.status == 200
    assert response.headers["content-type"].startswith("application/x-ndjson")
    assert response.body.decode().splitlines() == command_line(
        STORED / "transduction", WORDS, "--format", "jsonl"
    )


def test_what_was_not_asked_for_is_left_out(server: Server) -> None:
    (plain,) = server.predict("transduction", ["abc"], confidence=False).data["answers"]
    assert plain == {"source": "abc", "output": "ABC"}
    (several,) = server.predict("transduction", ["abc"], confidence=False, nbest=2).data["answers"]
    assert [set(one) for one in several["nbest"]] == [{"output"}, {"output"}]


def test_curl_needs_no_header(server: Server) -> None:
    body = json.dumps({"inputs": ["abc"]}).encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    response = server.ask("/v1/models/transduction/predict", body=body, headers=kind)
    assert response.data["answers"][0]["output"] == "ABC"


def test_a_deadline_that_has_passed(server: Server) -> None:
    late = server.predict("transduction", ["a" * 300] * 200, deadline_ms=1, nbest=16)
    assert late.status == 504
    assert "deadline" in late.data["error"]


def test_the_list_of_models(server: Server) -> None:
    models = server.ask("/v1/models").data["models"]
    assert [model["name"] for model in models] == [
        "transduction",
        "classification",
        "tagging",
        "language_modeling",
    ]
    assert all(model["exact"] for model in models)
    assert len({model["version"] for model in models}) == 4


def test_the_schema_has_every_operation_with_examples(server: Server) -> None:
    schema = server.ask("/openapi.json").data
    assert set(schema["paths"]) == {
        "/v1/models/{name}/predict",
        "/v1/models",
        "/healthz",
        "/readyz",
    }
    predict = schema["paths"]["/v1/models/{name}/predict"]["post"]
    examples = predict["requestBody"]["content"]["application/json"]["schema"]["examples"]
    assert all("inputs" in example for example in examples)
    assert {"200", "401", "404", "413", "422", "503", "504"} <= set(predict["responses"])


def test_metrics_count(server: Server) -> None:
    name = 'foveal_request_seconds_count{model="transduction",status="200"}'
    before = server.metric(name)
    batches = server.metric('foveal_batch_size_count{model="transduction",places="8"}')
    server.predict("transduction", ["abc"])
    assert server.metric(name) == before + 1
    assert server.metric('foveal_batch_size_count{model="transduction",places="8"}') == batches + 1


def test_it_lives_and_is_ready(server: Server, tmp_path: Path) -> None:
    del tmp_path
    assert server.ask("/healthz").data == {"state": "alive"}
    assert server.ask("/readyz").data == {"state": "ready"}
