"""A long attack on a server whose model is replaced again and again, observed by honest clients.

The folder of the model gets, in turn, a good bundle, a bundle with NaN weights, another good bundle and one
with truncated weights. Each good version has different answers, and every answer names its version.
"""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load, save

from benchmarks.served import ServedProcess
from benchmarks.serving.load import OK
from foveal.bundles import load_bundle
from foveal.bundles._manifest import seal_of, write_sealed
from foveal.data import Example
from foveal.serving import Predictor
from foveal.serving._answer import answer_json

from .attackers import ATTACKS

WORDS = [("abcdexyz" * 4)[start : start + size] for start in range(5) for size in (3, 7, 12, 20)]
_FILES = ("spec.json", "vocabulary.json", "weights.safetensors", "calibration.json")
_WEIGHTS = "weights.safetensors"
_NUM_HONEST = 3
_SECONDS_BETWEEN_RELOADS = 6.0
_MOST_FAULTS = 20


@dataclass
class Soaked:
    """The observations of honest clients."""

    expected: dict[str, dict[str, str]]  # by version, the answer to each word
    statuses: Counter[int] = field(default_factory=Counter)
    versions: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)  # by their text
    num_right: int = 0
    num_loaded: int = 0
    num_refused: int = 0
    memory: dict[int, float] = field(default_factory=dict)  # MiB, by minute
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def num_bad_taken(self) -> int:
        """Count the answers that come from a bad version."""
        return sum(
            count for version, count in self.versions.items() if version not in self.expected
        )

    def saw(self, word: str, status: int, body: bytes) -> None:
        """Compare an answer with the expected one."""
        with self.lock:
            self.statuses[status] += 1
            if status != OK:
                if status == 503:
                    self.refusals[body[:200].decode(errors="replace")] += 1
                elif status and len(self.faults) < _MOST_FAULTS:
                    self.faults.append(f"{word}: {status} {body[:200]!r}")
                return
            version = json.loads(body)["version"]
            self.versions[version] += 1
            answer = self.expected.get(version, {}).get(word)
            head = json.dumps({"model": "model", "version": version})[:-1]
            if body == f'{head}, "answers": [{answer}]}}\n'.encode():
                self.num_right += 1
            elif len(self.faults) < _MOST_FAULTS:
                self.faults.append(f"{word}: {body[:200]!r}")


def soaked(
    run: Path,
    model: Path,
    *,
    seconds: float,
    start: Callable[[], ServedProcess],
    attack: Callable[[ServedProcess, str, float], object],
    token: str,
) -> Soaked:
    """Attack a server for the folder `model`, and return the observations of honest clients."""
    files = {name: (run / name).read_bytes() for name in _FILES}
    good = [files, _changed(files, 0.9)]
    found = Soaked({})
    for each in good:
        _write(model, each)
        found.expected[seal_of(model)] = _answers(model)
    server = start()
    until = time.time() + seconds
    for kind in ATTACKS:
        attack(server, kind, until)
    threads = [
        threading.Thread(target=_ask, args=(server, found, token, until, number))
        for number in range(_NUM_HONEST)
    ]
    for thread in threads:
        thread.start()
    began = time.time()
    for bundle in _bundles(good):
        end = min(until, time.time() + _SECONDS_BETWEEN_RELOADS)
        _write(model, bundle)
        while time.time() < end:
            time.sleep(0.5)
            minute = int((time.time() - began) / 60)
            found.memory.setdefault(minute, server.resident_mib)
        if time.time() >= until:
            break
    for thread in threads:
        thread.join()
    found.memory.pop(0, None)
    found.memory[max(1, round(seconds / 60))] = server.resident_mib
    found.num_loaded, found.num_refused = _reloads(server, token)
    return found


def _bundles(good: list[dict[str, bytes]]) -> Iterator[dict[str, bytes]]:
    weights = good[0][_WEIGHTS]
    bad = {name: torch.full_like(value, torch.nan) for name, value in load(weights).items()}
    while True:
        yield good[0]
        yield good[0] | {_WEIGHTS: save(bad)}
        yield good[1]
        yield good[0] | {_WEIGHTS: weights[: len(weights) // 2]}


def _changed(files: dict[str, bytes], factor: float) -> dict[str, bytes]:
    """Return a model with different weights."""
    weights = {name: value * factor for name, value in load(files[_WEIGHTS]).items()}
    return files | {_WEIGHTS: save(weights)}


def _write(folder: Path, files: dict[str, bytes]) -> None:
    write_sealed(folder, files, {"format": 1, "foveal": "attack"})


def _answers(model: Path) -> dict[str, str]:
    task = load_bundle(model)
    predictor = Predictor(task, task.spec)
    examples = [Example(word) for word in WORDS]
    found = predictor.predict(examples, predictor.settings())
    return {
        example.text: answer_json(example, prediction)
        for example, prediction in zip(examples, found, strict=True)
    }


def _ask(server: ServedProcess, found: Soaked, token: str, until: float, number: int) -> None:
    """Send one word after the other."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    while time.time() < until:
        word = WORDS[number % len(WORDS)]
        number += 1
        connection = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=120)
        try:
            body = json.dumps({"inputs": [word]})
            connection.request("POST", "/v1/models/model/predict", body, headers)
            response = connection.getresponse()
            found.saw(word, response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            found.saw(word, 0, repr(error).encode())
        finally:
            connection.close()
        time.sleep(0.1)


def _reloads(server: ServedProcess, token: str) -> tuple[int, int]:
    connection = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=60)
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    counts = (
        sum(
            float(line.split()[-1])
            for line in lines
            if f'outcome="{outcome}"' in line and "total" in line
        )
        for outcome in ("loaded", "refused")
    )
    return int(next(counts)), int(next(counts))
