"""Do a dozen short trials of a sweep find settings as good as the default, and how costly is an interruption?

    python -m benchmarks.sweeping --runs runs            about six CPU minutes

`foveal sweep` on 800 Icelandic words: twelve trials, two at a time. The only setting is the length of a trial, a
quarter of the length that `foveal fit` chooses. The benchmark stops the sweep with SIGTERM after a few trials
and starts it again.
"""

import argparse
import json
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.clusters import process, wait_for
from benchmarks.results import Results, Row, digest
from examples.support import DATA

OUT = Path("results/scale_sweep.json")
TRIALS, WORKERS, SEED, EPOCHS = 12, 2, 1, 25
FILES = {part: f"g2p_sigmorphon2021/low/ice_{part}.tsv" for part in ("train", "dev", "test")}
_BEFORE_STOP = 4  # finished trials
_MOST_SECONDS = 3600.0
_TITLE = f"Icelandic, 800 words, {EPOCHS} epochs"


def swept(out: Path) -> list[Row]:
    """Sweep into a folder with one interruption, and return its cost."""
    before = dict[Path, str]()
    with process(_command(out)) as driver:
        wait_for(lambda: len(_ended(out)) >= _BEFORE_STOP, driver, _MOST_SECONDS)
        before = {log: digest(log) for log in _ended(out)}
        driver.send_signal(signal.SIGTERM)
        driver.wait(_MOST_SECONDS)
    with process(_command(out)) as driver:
        assert driver.wait(_MOST_SECONDS) == 0
    again = sum(digest(log) != earlier for log, earlier in before.items())
    name = f"{_TITLE}, stopped by SIGTERM and started again"
    return [
        Row(name=f"{name}: trials ended before", value=len(before), unit="trials"),
        Row(name=f"{name}: of these done again", value=again, unit="trials", target=0, sense="<="),
    ]


def _command(out: Path) -> list[str]:
    files = [str(DATA / FILES["train"])]
    for part in ("dev", "test"):
        files += [f"--{part}", str(DATA / FILES[part])]
    numbers = ["--trials", str(TRIALS), "--workers", str(WORKERS), "--seed", str(SEED)]
    length = ["--set", f"training.epochs={EPOCHS}"]
    return ["-m", "foveal.cli", "sweep", *files, "--out", str(out), *numbers, *length]


def _ended(out: Path) -> list[Path]:
    """List the logs of finished and failed trials."""
    ends = ('{"event": "finished"', '{"event": "failed"')
    return [log for log in sorted(out.glob("trials/*/log.jsonl")) if _last(log).startswith(ends)]


def _last(log: Path) -> str:
    """Return the last line of a log without reading all of it, because logs are long and polled often."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 2000))
        return (file.read().decode(errors="replace").splitlines() or [""])[-1]


def figures(table: dict[str, Any]) -> list[Row]:
    """Return the figures of a sweep."""
    trials = {trial["number"]: trial for trial in table["trials"]}
    best, default, metric = trials[table["best"]], trials[1], table["metric"]

    def scores(who: str, trial: dict[str, Any]) -> list[Row]:
        found = {"dev": trial["score"], "test": trial["test"][metric]}
        return [
            Row(name=f"{_TITLE}, {who}: {metric}, {part}", value=value, unit="%", seeds=(SEED,))
            for part, value in found.items()
        ]

    rows = [*scores("the default", default), *scores("the best trial", best)]
    rows[2] = replace(rows[2], target=default["score"], sense="<=")
    counts = [
        Row(
            name=f"{_TITLE}: trials {status}",
            value=sum(trial["status"] == status for trial in trials.values()),
            unit="trials",
        )
        for status in ("finished", "stopped", "failed")
    ]
    whole = sum(trial["progress"] for trial in trials.values())
    return [
        *rows,
        *counts,
        Row(name=f"{_TITLE}: training, in whole runs", value=whole, unit="runs"),
        Row(name=f"{_TITLE}: training, of all trials", value=table["seconds"] / 60, unit="min"),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sweep and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=Path, required=True, help="the sweep is made there")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    began, folder = time.perf_counter(), options.runs / "sweep_icelandic"
    resumed = swept(folder)
    table = json.loads((folder / "sweep.json").read_text())
    seconds = Row(name="wall-clock of all this", value=time.perf_counter() - began, unit="s")
    rows = [*figures(table), *resumed, seconds]
    for row in rows:
        print(f"{row.name}: {row.value:.4g} {row.unit}{'  MISSED' if row.misses else ''}")
    result = Results.here("python -m benchmarks.sweeping", packages=("ray",))
    data = {name: digest(DATA / name) for name in FILES.values()}
    best = next(trial for trial in table["trials"] if trial["number"] == table["best"])
    spec = {
        "seed": SEED,
        "trials": TRIALS,
        "workers": WORKERS,
        "epochs": EPOCHS,
        "best": best["settings"],
    }
    replace(result.with_rows(rows), data=data, spec=spec).save(options.out)


if __name__ == "__main__":
    main()
