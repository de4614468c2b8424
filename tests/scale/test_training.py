"""Training on Ray gives the result of an undisturbed run, even if a worker and then a node are
lost.
"""

import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from benchmarks.clusters import SECONDS, nodes, process, wait_for, workers

pytestmark = pytest.mark.slow

SETTINGS = {
    "training.checkpoint_seconds": "1",
    "training.epochs": "40",
    "encoder.hidden_size": "32",
    "decoder.hidden_size": "32",
}


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """Write words, with their letters in uppercase as targets."""
    generator, path = random.Random(1), tmp_path / "words.tsv"
    chosen = ["".join(generator.choices("abcdefgh", k=generator.randint(2, 8))) for _ in range(600)]
    path.write_text("".join(f"{word}\t{' '.join(word.upper())}\n" for word in chosen))
    return path


def fit(words: Path, out: Path, *more: str) -> list[str]:
    settings = [word for pair in SETTINGS.items() for word in ("--set", "=".join(pair))]
    files = [str(words), "--dev", str(words), "--out", str(out)]
    return ["-m", "foveal.cli", "fit", *files, *settings, *more]


def events(out: Path, kind: str) -> list[dict[str, object]]:
    """Return the logged events of one kind."""
    path = out / "log.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith("}")]
    return [one for one in whole if one["event"] == kind]


@pytest.mark.timeout(4 * SECONDS)
def test_a_worker_and_a_node_are_lost(words: Path, tmp_path: Path) -> None:
    out, calm = tmp_path / "out", tmp_path / "calm"
    command = fit(words, out, "--ray", "--workers", "2")
    with (
        nodes(are_replaced=True) as cluster,
        process(command, {"RAY_ADDRESS": cluster.address}) as driver,
    ):
        wait_for(lambda: len(events(out, "checkpointed")) >= 2, driver)
        os.kill(workers("RayTrainWorker")[0], signal.SIGKILL)
        wait_for(lambda: len(events(out, "started")) >= 2, driver)
        seen = events(out, "checkpointed")[-1]["step"]
        wait_for(lambda: events(out, "checkpointed")[-1]["step"] != seen, driver)
        cluster.lose_one()
        assert driver.wait(SECONDS) == 0
    _check_resumed(out)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with process([*torchrun, *fit(words, calm)]) as undisturbed:
        assert undisturbed.wait(SECONDS) == 0
    first, second = (load_file(folder / "weights.safetensors") for folder in (out, calm))
    assert first.keys() == second.keys()
    for name, weights in first.items():
        assert weights.equal(second[name]), name


def _check_resumed(out: Path) -> None:
    """Check that each start resumed from the newest checkpoint before it."""
    newest, starts = 0, list[int]()
    for line in (out / "log.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "checkpointed":
            newest = event["step"]
        if event["event"] == "started":
            starts.append(event["step"])
            assert event["step"] == newest
    assert len(starts) >= 3, "nothing was lost on the way"
    assert starts[0] == 0
    sys.stdout.write(f"steps that it went on from: {starts}\n")
