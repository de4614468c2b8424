"""The history of a run: its log as rows of numbers.

Axes: n steps, w windows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

LEAST_STEPS = 20  # below this, curves of a run mean nothing
_WINDOWS = 20
# From the median absolute difference of two draws of a normal distribution to its standard deviation.
_SIGMA = 1.4826 / 2**0.5


@dataclass
class History:
    """The history of a run, filled line by line from a log, or event by event during a run."""

    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    highest_rate: float = 0.0
    progress: float = 0.0
    scores: list[tuple[int, float]] = field(default_factory=list)  # step, score
    metric: str = ""
    higher_is_better: bool = True
    failure: str = ""
    device: str = ""  # empty in logs of older versions
    uniform: float = 0.0  # loss of a uniform guess

    def add(self, line: Mapping[str, Any]) -> None:
        """Add one line of a log."""
        match line["event"]:
            case "started":
                self.metric, self.higher_is_better = line["metric"], line["higher_is_better"]
                self.device = line.get("device", "")
            case "step_done":
                self.steps.append(line["step"])
                self.losses.append(line["loss"])
                self.norms.append(line["norm"])
                self.highest_rate = max(self.highest_rate, line["rate"])
                self.progress = line["progress"]
            case "evaluated" if self.metric in line["metrics"]:
                self.scores.append((line["step"], line["metrics"][self.metric]))
            case "probed":
                self.uniform = max(self.uniform, line["readings"].get("guessing", 0.0))
            case "failed":
                self.failure = line["text"]
            case _:
                pass

    @property
    def first_loss(self) -> float:
        """The loss of an untrained model."""
        return self.losses[0]

    @property
    def guessing(self) -> float:
        """The largest loss that guessing explains: the first loss, which is measured on one batch, plus three times
        the standard deviation between batches in the first quarter of the run; or the loss of a uniform guess, if it
        is known and higher.
        """
        early = np.array(self.losses[: max(LEAST_STEPS, len(self.losses) // 4)])
        changes = np.abs(np.diff(early))
        spread = _SIGMA * float(np.median(changes)) if len(changes) else 0.0
        return max(self.first_loss + 3 * spread, self.uniform)

    def windows(self) -> Float[np.ndarray, " w"]:
        """Return the mean losses of about twenty windows of the run."""
        return window_means(np.array(self.losses))


def window_means(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " w"]:
    """Return the means of equal windows, of at least five values each."""
    number = max(1, min(_WINDOWS, len(values) // 5))
    return np.array([part.mean() for part in np.array_split(values, number)])


def history_of(lines: Iterable[Mapping[str, Any]]) -> History:
    """Read a whole log."""
    history = History()
    for line in lines:
        history.add(line)
    return history
