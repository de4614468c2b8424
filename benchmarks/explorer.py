"""How long after a key is pressed does the explorer show the answer?

    python -m benchmarks.explorer                      trains a model first, a minute on one core
    python -m benchmarks.explorer --run runs/ice       uses an existing model

Words of the Icelandic development set (SIGMORPHON 2021) are typed letter by letter to a model of the
size that `foveal fit` chooses for 800 words, with a beam of 5; every key waits for the answer to
the previous one.

**Server.** From sending the request to the last byte of the answer, over one connection: search,
explanation, JSON, HTTP.

**Browser.** From the time stamp of the key event in headless Chromium to the frame that renders the new
answer, as measured by the page.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from examples.support import DATA
from foveal.cli._main import main as foveal
from foveal.data import tsv

from .browser import open_browser
from .results import Results, Row, digest
from .timing import use_one_thread

OUT = Path("results/explorer.json")
FILES = {name: f"g2p_sigmorphon2021/low/ice_{name}.tsv" for name in ("train", "dev")}
WORDS = 40
WARMING = 3  # words at the start that are not counted
LIMIT = 100.0  # milliseconds that feel instant
SECONDS = 120
_MEASURES = "return performance.getEntriesByName('foveal-answer').map((e) => e.duration)"


@contextmanager
def served(run: Path) -> Iterator[str]:
    """The address of `foveal explore`, as a user starts it."""
    command = [sys.executable, "-m", "foveal.cli", "explore", str(run), "--no-browser"]
    with subprocess.Popen(
        command, env=os.environ | {"PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[0]
        finally:
            process.terminate()
            process.wait(SECONDS)


def asked(address: str, run: Path, words: Sequence[str]) -> list[float]:
    """Return the milliseconds of every request to the server."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=SECONDS)
    token = parts.query.removeprefix("token=")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    found = list[float]()
    for number, word in enumerate(words):
        for size in range(1, len(word) + 1):
            body = json.dumps({"run": run.resolve().name, "input": word[:size]})
            began = time.perf_counter()
            connection.request("POST", "/api/explain", body, headers)
            answer = connection.getresponse()
            text = answer.read()
            took = 1000 * (time.perf_counter() - began)
            assert answer.status == 200, text
            if number >= WARMING:
                found.append(took)
    connection.close()
    return found


def typed(browser: Chrome, address: str, words: Sequence[str]) -> list[float]:
    """Return the milliseconds of every key in the browser."""
    browser.get(address)
    wait = WebDriverWait(browser, SECONDS, poll_frequency=0.02)
    wait.until(lambda found: found.find_elements(By.CSS_SELECTOR, ".panel"))
    field = browser.find_element(By.ID, "input")
    found = list[float]()
    for number, word in enumerate(words):
        field.send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.BACKSPACE)
        browser.execute_script("performance.clearMeasures()")
        for count, letter in enumerate(word, start=1):
            field.send_keys(letter)
            wait.until(lambda page, count=count: len(page.execute_script(_MEASURES)) >= count)
        if number >= WARMING:
            found += browser.execute_script(_MEASURES)[: len(word)]
    return found


def rows(name: str, found: Sequence[float]) -> list[Row]:
    """Return the median and the 95th percentile."""
    last = statistics.quantiles(found, n=20)[-1]
    spread = (min(found), max(found))
    return [
        Row(name=f"{name}, median", value=statistics.median(found), unit="ms", spread=spread),
        Row(name=f"{name}, 95th percentile", value=last, unit="ms", target=LIMIT, sense="<="),
    ]


def fitted(folder: Path) -> Path:
    """Fit a model with `foveal fit` for a minute, enough for answers of realistic length."""
    run = folder / "ice"
    train, dev = (str(DATA / FILES[name]) for name in ("train", "dev"))
    foveal(["fit", train, "--dev", dev, "--out", str(run), "--minutes", "1"])
    return run


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description="Time from a key to the explorer's answer.")
    parser.add_argument("--run", type=Path, help="a model to ask, instead of training one")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    use_one_thread()
    words = [example.text for example in tsv(DATA / FILES["dev"])][: WORDS + WARMING]
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or fitted(Path(folder))
        with served(run) as address, open_browser() as browser:
            found = rows("server, one question", asked(address, run, words))
            found += rows("browser, key to drawn answer", typed(browser, address, words))
    for row in found:
        print(f"{row.name}: {row.value:.1f} {row.unit}")
    packages = ("fastapi", "uvicorn", "selenium")
    result = Results.here("python -m benchmarks.explorer", packages=packages).with_rows(found)
    data = {name: digest(DATA / name) for name in FILES.values()}
    replace(result, data=data).save(options.out)


if __name__ == "__main__":
    main()
