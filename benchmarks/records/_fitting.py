"""Fit one run for each case and seed in a separate folder, and record its cost."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from foveal.training import Run

COST = "cost.json"
_BEFORE = "cost_before.json"  # cost of the interrupted parts of a run


class Cost(NamedTuple):
    """The time of a run. On a shared machine, CPU time is more reliable."""

    processor_minutes: float
    minutes: float
    threads: int

    @classmethod
    def load(cls, folder: Path, name: str = COST) -> "Cost":
        """Read the cost that `fit_case` wrote."""
        return cls(**json.loads((folder / name).read_text(encoding="utf-8")))

    def save(self, folder: Path, name: str = COST) -> None:
        """Write the cost into the folder of the run."""
        (folder / name).write_text(json.dumps(self._asdict()), encoding="utf-8")


def folder_of(runs: Path, recipe: str, case: str, seed: int) -> Path:
    """Return the folder of a run."""
    return runs / recipe / f"{case}_{seed}"


def fitted(runs: Path, recipe: str, case: str, seeds: Sequence[int]) -> list[Path]:
    """Return the folders of a case; an empty list unless it was fitted with all seeds."""
    folders = [folder_of(runs, recipe, case, seed) for seed in seeds]
    return folders if all((folder / COST).exists() for folder in folders) else []


def fitted_seeds(runs: Path, recipe: str, case: str, seeds: Sequence[int]) -> dict[int, Path]:
    """Return the folder of each of the seeds that a case was fitted with."""
    folders = {seed: folder_of(runs, recipe, case, seed) for seed in seeds}
    return {seed: folder for seed, folder in folders.items() if (folder / COST).exists()}


def fit_case(run: Run, seed: int, folder: Path) -> None:
    """Fit a run, unless the folder already has it. The run gets no test examples; only scoring reads them."""
    if (folder / COST).exists():
        return
    began, used = time.perf_counter(), time.process_time()
    run = replace(run, test=None, training=replace(run.training, seed=seed))
    reason = run.fit(folder, device="cpu").reason
    before = Cost.load(folder, _BEFORE) if (folder / _BEFORE).exists() else Cost(0.0, 0.0, 0)
    cost = Cost(
        before.processor_minutes + (time.process_time() - used) / 60,
        before.minutes + (time.perf_counter() - began) / 60,
        torch.get_num_threads(),
    )
    if reason == "interrupted":
        cost.save(folder, _BEFORE)
        sys.exit(f"{folder}: interrupted; run the same command again to resume")
    cost.save(folder)
