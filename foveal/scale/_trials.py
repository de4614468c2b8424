"""The state of a trial, read from the folder of its training."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..training import read_log
from ..training._outputs import scores_of

STOPPED = "stopped by the sweep"  # the log entry of a run that the sweep stopped early
Status = Literal["finished", "stopped", "failed", "not begun"]
_ORDER: tuple[Status, ...] = ("finished", "stopped", "failed", "not begun")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One trial. A finished trial is scored on the whole validation set with the search of its task; an unfinished
    trial has the score of its latest validation.
    """

    number: int
    status: Status
    settings: dict[str, str]
    score: float | None
    progress: float  # completed fraction of the run
    seconds: float
    validations: tuple[tuple[float, float], ...]  # progress, score
    test: dict[str, float]  # test scores of a finished trial
    text: str  # the reason for a failure

    def to_data(self) -> dict[str, Any]:
        """Return the trial as JSON data."""
        data = asdict(self)
        finite = self.score is not None and math.isfinite(self.score)
        return data | {"score": self.score if finite else None}


@dataclass(frozen=True, kw_only=True)
class Measure:
    """The metric that ranks the trials."""

    name: str
    higher_is_better: bool

    def goodness(self, score: float | None) -> float:
        """Return a score for which higher is better; NaN is worst."""
        if score is None or not math.isfinite(score):
            return -math.inf
        return score if self.higher_is_better else -score

    def ranked(self, trials: Sequence[Trial]) -> list[Trial]:
        """Sort finished trials best first, then stopped trials. Ties keep the order of sampling, so the default comes
        before trials that are no better.
        """
        return sorted(
            trials,
            key=lambda one: (_ORDER.index(one.status), -self.goodness(one.score), one.number),
        )


def read_measure(folder: Path) -> Measure | None:
    """Return the metric of the run in a folder, or None if it has not begun."""
    log = folder / "log.jsonl"
    for line in read_log(log) if log.is_file() else ():
        if line["event"] == "started":
            return Measure(name=line["metric"], higher_is_better=line["higher_is_better"])
    return None


def read_trial(folder: Path, number: int, settings: dict[str, str]) -> Trial:
    """Read the state of the trial in a folder."""
    metric, progress, seconds, last = "", 0.0, 0.0, ""
    validations, text = list[tuple[float, float]](), ""
    log = folder / "log.jsonl"
    for line in read_log(log) if log.is_file() else ():
        last = line["event"]
        if last == "started":
            metric = line["metric"]
        elif last == "step_done":
            progress, seconds = line["progress"], line["seconds"]
        elif last == "evaluated":
            validations.append((progress, line["metrics"][metric]))
        elif last == "failed":
            text = line["text"]
    score, test = validations[-1][1] if validations else None, dict[str, float]()
    status: Status = "stopped" if metric else "not begun"
    if last == "finished":
        status, scores = "finished", scores_of(folder)
        score = scores["dev"][metric].value
        test = {name: found.value for name, found in scores.get("test", {}).items()}
    elif last == "failed" and text != STOPPED:
        status = "failed"
    return Trial(
        number=number,
        status=status,
        settings=settings,
        score=score,
        progress=progress,
        seconds=seconds,
        validations=tuple(validations),
        test=test,
        text=text if status == "failed" else "",
    )


def is_finished(folder: Path) -> bool:
    """Return whether the run in a folder has finished."""
    return read_trial(folder, 0, {}).status == "finished"
