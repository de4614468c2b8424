"""The search space of a sweep, and the settings of each trial.

    trial 1      the unchanged run
    trial n      its settings at point n - 1 of a Sobol sequence, which fills the space evenly

A dimension is one sampled value for one setting, or for several that vary together (for example the width of
encoder and decoder). Points depend only on the seed: the same sweep has the same trials.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch

from ..errors import SpecError
from ..specs import settings, with_setting
from ..training import Run

_WIDTH_STEP = 8  # widths are multiples of it
_ATTENTION = "task.model.decoder.attention"


@final
@dataclass(frozen=True, kw_only=True)
class Dimension:
    """Settings that share one sampled value: a number in a range, or one of several texts."""

    name: str
    paths: tuple[str, ...]
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False  # log-uniform instead of uniform
    step: int | None = None  # integers, multiples of it
    values: tuple[str, ...] = ()  # instead of numbers

    def text_at(self, share: float) -> str:
        """Return the value at a fraction from 0 to 1 of the dimension, as text for a setting."""
        if self.values:
            return self.values[min(int(share * len(self.values)), len(self.values) - 1)]
        if self.is_log:
            number = self.low * (self.high / self.low) ** share
        else:
            number = self.low + (self.high - self.low) * share
        if self.step is not None:
            return str(max(self.step, round(number / self.step) * self.step))
        return f"{number:.3g}"

    def share_of(self, text: str) -> float | None:
        """Return the position of a value on the dimension, from 0 to 1; None if it is outside."""
        if self.values:
            if text not in self.values:
                return None
            return (self.values.index(text) + 0.5) / len(self.values)
        number = float(text)
        if self.is_log:
            share = math.log(number / self.low) / math.log(self.high / self.low)
        else:
            share = (number - self.low) / (self.high - self.low)
        return share if 0 <= share <= 1 else None


def usual_dimensions(run: Run, fixed: Sequence[str]) -> list[Dimension]:
    """Return the default dimensions of a run, around its current values.

    Args:
        run: The default run.
        fixed: Paths of settings that the user has set, which stay unchanged.

    Returns:
        The dimensions whose settings are free.
    """
    known = {setting.path: setting.value for setting in settings(run)}
    free = {path: value for path, value in known.items() if path not in fixed}
    return [
        dimension
        for dimension in (*_of_training(run, free), *_of_networks(free), *_of_task(run, free))
        if dimension.paths
    ]


def _of_training(run: Run, free: Mapping[str, Any]) -> Iterator[Dimension]:
    rate, tokens = run.training.learning_rate, run.training.batch_tokens
    if "training.learning_rate" in free:
        yield Dimension(
            name="learning_rate",
            paths=("training.learning_rate",),
            low=rate / 5,
            high=rate * 2.5,
            is_log=True,
        )
    if "training.batch_tokens" in free and run.training.batch_size is None:
        yield Dimension(
            name="batch_tokens",
            paths=("training.batch_tokens",),
            low=tokens / 2,
            high=tokens * 2.0,
            is_log=True,
            step=1,
        )
    if "training.ema_decay" in free:
        values = tuple(dict.fromkeys(("0.0", "0.99", str(run.training.ema_decay))))
        yield Dimension(name="ema_decay", paths=("training.ema_decay",), values=values)


def _of_networks(free: Mapping[str, Any]) -> Iterator[Dimension]:
    """Return dropout and widths, with one value for all networks that share it."""
    for name in ("hidden_size", "embedding_size", "dropout"):
        found = dict[Any, list[str]]()
        for path, value in free.items():
            # The settings of an attention do not exist if another attention is drawn.
            is_own = path.startswith("task.") and not path.startswith(f"{_ATTENTION}.")
            if is_own and path.endswith(f".{name}") and value is not None:
                found.setdefault(value, []).append(path)
        for value, paths in found.items():
            label = name if len(found) == 1 else paths[0].removeprefix("task.")
            if name == "dropout":
                low, high = max(0.0, value - 0.2), min(0.9, value + 0.2)
                yield Dimension(name=label, paths=tuple(paths), low=low, high=high)
            else:
                yield Dimension(
                    name=label,
                    paths=tuple(paths),
                    low=value / 2,
                    high=value * 2.0,
                    is_log=True,
                    step=_WIDTH_STEP,
                )


def _of_task(run: Run, free: Mapping[str, Any]) -> Iterator[Dimension]:
    if "task.label_smoothing" in free:
        yield Dimension(name="label_smoothing", paths=("task.label_smoothing",), low=0.0, high=0.2)
    chosen = free.get(_ATTENTION)
    if run.task.attention_choices and chosen is not None:
        values = tuple(dict.fromkeys((*run.task.attention_choices, chosen)))
        yield Dimension(name="attention", paths=(_ATTENTION,), values=values)


def given_dimension(run: Run, path: str, text: str) -> Dimension:
    """Parse a dimension that the user wrote: `low..high`, or values separated by commas.

    Numbers are log-uniform if the upper bound is at least ten times the lower one.
    """
    value = next((one.value for one in settings(run) if one.path == path), None)
    low, dots, high = text.partition("..")
    if not dots:
        values = tuple(part.strip() for part in text.split(","))
        for one in values:
            with_setting(run, path, one)  # raises for an invalid value
        return Dimension(name=path, paths=(path,), values=values)
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = 1.0, 0.0
    if ends[0] >= ends[1] or not isinstance(value, int | float) or isinstance(value, bool):
        raise SpecError(
            f"--over {path}={text}: expected two numbers, the lower first, for example "
            f"training.learning_rate=1e-4..1e-2; or values, for example "
            f"decoder.attention=softmax,segment. Correct the values."
        )
    is_whole = isinstance(value, int)
    dimension = Dimension(
        name=path,
        paths=(path,),
        low=ends[0],
        high=ends[1],
        is_log=ends[0] > 0 and ends[1] >= 10 * ends[0],
        step=1 if is_whole else None,
    )
    for share in (0.0, 1.0):
        with_setting(run, path, dimension.text_at(share))
    return dimension


def drawn(dimensions: Sequence[Dimension], number: int, seed: int) -> list[dict[str, str]]:
    """Sample values by the name of their dimension, for this many trials. Trial 1 has none: it is the default."""
    if number == 1 or not dimensions:
        return [{}]
    engine = torch.quasirandom.SobolEngine(len(dimensions), scramble=True, seed=seed)
    points = engine.draw(number - 1, dtype=torch.float64).tolist()
    return [
        {},
        *(
            {one.name: one.text_at(share) for one, share in zip(dimensions, point, strict=True)}
            for point in points
        ),
    ]


def with_values(run: Run, dimensions: Sequence[Dimension], values: Mapping[str, str]) -> Run:
    """Return the run of a trial."""
    for dimension in dimensions:
        if dimension.name in values:
            for path in dimension.paths:
                run = with_setting(run, path, values[dimension.name])
    return run


def values_of(run: Run, dimensions: Sequence[Dimension]) -> dict[str, str]:
    """Return the value of a run on each dimension."""
    texts = {setting.path: setting.text for setting in settings(run)}
    return {one.name: texts[one.paths[0]] for one in dimensions}
