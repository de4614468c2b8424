"""Units and gates of a character language model over lines of Shakespeare, chosen by rule.

    results/units/shakespeare.json

    line     the memory whose value has the largest correlation with the position in the line
    word     the memory whose value has the largest correlation with the number of letters since the last space
    gate     the forget gate whose mean after a space differs most from its mean after a letter

The rules use the first development lines; the pictures show a later one, the first of suitable length.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.inspection import Activations, activations
from foveal.tasks import LanguageModeling
from recipes import shakespeare_units

from ..records._fitting import folder_of

NAME = "shakespeare_units"
NUM_LINES = 60  # that the rules read
LENGTHS = range(45, 60)  # characters of the line to show
DIGITS = 3


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write the values of three units over one line, and the figures by which they were chosen."""
    task = load_bundle(folder_of(runs, NAME, cases[0], seeds[0]))
    assert isinstance(task, LanguageModeling)
    lines = list[Example](shakespeare_units.part("dev"))
    read = [cell for line in lines[:NUM_LINES] for cell in activations(task, line)]
    (shown,) = activations(
        task, next(line for line in lines[NUM_LINES:] if len(line.text) in LENGTHS)
    )
    found = dict[str, object]()
    for name, part, quality in (
        ("line", "cell", _correlation(_positions)),
        ("word", "cell", _correlation(_letters)),
        ("gate", "forget", _difference),
    ):
        values = quality(read, part)
        unit = int(np.abs(values).argmax())
        found[name] = {
            "part": part,
            "unit": unit,
            "figure": round(float(values[unit]), DIGITS),
            "values": [round(value, DIGITS) for value in shown.unit(part, unit)],
        }
    perplexity = task.evaluate(lines).value
    content = {
        "made_by": f"python -m benchmarks.lectures score {NAME}",
        "perplexity": round(perplexity, DIGITS),
        "tokens": shown.tokens,
        "units": found,
    }
    path = results / "units/shakespeare.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _positions(tokens: Sequence[str]) -> Iterator[float]:
    yield from range(len(tokens))


def _letters(tokens: Sequence[str]) -> Iterator[float]:
    """Yield the number of letters since the last other character."""
    since = 0.0
    for token in tokens:
        since = since + 1 if len(token) == 1 and token.isalpha() else 0.0
        yield since


def _correlation(
    of: Callable[[Sequence[str]], Iterator[float]],
) -> Callable[[Sequence[Activations], str], Float[np.ndarray, " H"]]:
    def correlate(read: Sequence[Activations], part: str) -> Float[np.ndarray, " H"]:
        wanted = np.concatenate([[*of(cell.tokens)] for cell in read])
        values = np.concatenate([cell.parts[part] for cell in read])
        wanted, values = wanted - wanted.mean(), values - values.mean(0)
        return wanted @ values / (np.linalg.norm(wanted) * np.linalg.norm(values, axis=0))

    return correlate


def _difference(read: Sequence[Activations], part: str) -> Float[np.ndarray, " H"]:
    values = np.concatenate([cell.parts[part] for cell in read])
    is_space = np.array([token == " " for cell in read for token in cell.tokens])
    is_letter = np.array([token.isalpha() for cell in read for token in cell.tokens])
    return values[is_space].mean(0) - values[is_letter].mean(0)
