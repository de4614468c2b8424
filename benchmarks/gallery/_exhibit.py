"""The results file of a case: the header and the scores of a run, and the plain data of its pictures.

    {results: {made_by, date, versions, machine, rows, data, spec}, shown: {...}}

Weights are rounded to five digits: a picture needs three, and people read the files.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

from foveal.attention import AttentionTrace
from foveal.views import Series
from foveal.views._beam import Hypothesis

from ..results import Results, Row

DIGITS = 5


class Budget(NamedTuple):
    """The random seed and the number of training steps; None means the default of the case."""

    seed: int = 1
    updates: int | None = None

    def steps(self, needed: int) -> int:
        """Return the number of training steps for a model whose default is `needed`."""
        return needed if self.updates is None else self.updates


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """The data of a picture. `facts` are the input, output and reference for the caption; `image` is the
    background of an overlay.
    """

    facts: Mapping[str, Any]
    trace: AttentionTrace
    hypotheses: tuple[Hypothesis, ...] = ()
    series: tuple[Series, ...] = ()
    image: UInt8[np.ndarray, "h w 3"] | None = field(default=None, compare=False)

    def to_data(self) -> dict[str, Any]:
        """Convert to plain data for JSON."""
        data: dict[str, Any] = {
            "facts": dict(self.facts),
            "trace": json.loads(self.trace.to_json()),
        }
        if self.hypotheses:
            data["hypotheses"] = [asdict(each) for each in self.hypotheses]
        if self.series:
            data["series"] = [asdict(each) for each in self.series]
        if self.image is not None:
            text = base64.b64encode(self.image.tobytes()).decode("ascii")
            data["image"] = {"shape": list(self.image.shape), "bytes": text}
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Shown":
        """Build from the output of `to_data`."""
        image = data.get("image")
        return cls(
            facts=data["facts"],
            trace=AttentionTrace.from_json(json.dumps(data["trace"])),
            hypotheses=tuple(
                Hypothesis(
                    tokens=tuple(each["tokens"]),
                    log_probs=tuple(each["log_probs"]),
                    score=each["score"],
                    finished=each["finished"],
                )
                for each in data.get("hypotheses", ())
            ),
            series=tuple(
                Series(name=each["name"], points=tuple(map(tuple, each["points"])))
                for each in data.get("series", ())
            ),
            image=None
            if image is None
            else np.frombuffer(base64.b64decode(image["bytes"]), np.uint8).reshape(image["shape"]),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Exhibit:
    """One file of the gallery."""

    results: Results
    shown: Shown

    def save(self, path: Path) -> None:
        """Write the file, and create its folder if necessary."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"results": json.loads(self.results.to_json()), "shown": self.shown.to_data()}
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
        path.write_text(_rows_on_a_line(text) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Exhibit":
        """Read a file written by `save`."""
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            results=Results.from_json(json.dumps(content["results"])),
            shown=Shown.from_data(content["shown"]),
        )

    def score(self, name: str) -> Row:
        """Return the row with this name."""
        return next(row for row in self.results.rows if row.name == name)


class Stopwatch:
    """The time spent on reading the data, training and scoring."""

    def __init__(self) -> None:
        self._began = perf_counter()

    def row(self, seed: int) -> Row:
        """Return the time so far."""
        seconds = perf_counter() - self._began
        return Row(name="wall-clock", value=round(seconds, 1), unit="s", seeds=(seed,))


def rounded(table: Float[Tensor, "Q S"]) -> tuple[tuple[float, ...], ...]:
    """Round the weights to five digits."""
    return tuple(tuple(round(weight, DIGITS) for weight in row) for row in table.tolist())


def share_row(name: str, right: Sequence[bool], seed: int) -> Row:
    """Return the percentage of True, with the number of examples in its name."""
    share = 100 * sum(right) / len(right)
    return Row(name=name, value=share, unit=f"% of {len(right):,}", seeds=(seed,))


def _rows_on_a_line(text: str) -> str:
    """Put each list of numbers or booleans on one line, like the row of a table."""
    lines, row = list[str](), list[str]()
    for line in text.split("\n"):
        bare = line.strip()
        is_entry = bare.rstrip(",") in ("true", "false") or _is_number(bare.rstrip(","))
        if row and (is_entry or bare.rstrip(",") == "]"):
            row.append(bare if not is_entry else bare + " " * bare.endswith(","))
            if not is_entry:
                lines.append("".join(row))
                row = []
        else:
            lines += ["".join(row)] if row else []
            row = []
            if bare.endswith("["):
                row = [line]
            else:
                lines.append(line)
    return "\n".join(lines + (["".join(row)] if row else []))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
