"""`foveal explain`: explain one answer, as a page or as data."""

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from ..bundles import load_bundle
from ..data import Example
from ..errors import ValueRangeError
from ..inspection import activations, explain
from ..inspection.explaining._erasure import change_without
from ..inspection.explaining._explanation_page import explanation_page
from ..specs._files import specs_in
from ..tasks import AbstractTask
from ..views import colored_text
from ._threads import use_threads

_LONGEST_NAME = 40
_UNIT = re.compile(r"([^:]+)(?::([a-z]+))?(?::(\d+))?").fullmatch  # cell, part, number


def command(
    bundle: Positional[Path],
    text: Positional[str],
    /,
    *,
    second: str | None = None,
    features: str = "",
    out: Path | None = None,
    beam_size: int = 5,
    alternatives: int = 5,
    prefix: str = "",
    unit: tuple[str, ...] = (),
    as_json: Annotated[bool, arg(name="json")] = False,
    with_specs: Path | None = None,
    threads: int | None = None,
    device: str = "auto",
) -> None:
    """Explain one prediction as a page or as JSON.

    The explanation contains the n-best list, the probability of each token, the attention, and a test of whether the
    prediction depends on the attended positions.

    Args:
        bundle: The folder of a model that `foveal fit` saved.
        text: The input, or the first text of a pair.
        second: The second text, for a model that reads text pairs.
        features: The features of the requested form, for a model that reads features.
        out: The page to write. Defaults to explain-INPUT.html in the current folder.
        beam_size: The beam size, and the number of answers to show.
        alternatives: The number of candidate tokens to show for each step.
        prefix: The required beginning of the output.
        unit: Units or gates of recurrent cells to draw over the text, as CELL:PART:NUMBER, for example
            decoder:cell:12 or decoder:forget:3. Without a number, the unit that varies most is drawn.
        as_json: Print JSON instead of writing a page.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
        threads: The number of threads that torch uses. Defaults to OMP_NUM_THREADS, or to one per core.
        device: The device to compute on: auto, cpu, cuda, cuda:1 or mps. auto uses a GPU if there is one.
    """
    use_threads(threads)
    task = load_bundle(bundle, also=specs_in(with_specs), device=device)
    example = Example(text if second is None else f"{text}\t{second}", features=features)
    explanation = explain(
        task, example, beam_size=beam_size, alternatives=alternatives, prefix=_symbols(task, prefix)
    )
    change = change_without(task, example, [step.token for step in explanation.steps])
    if as_json:
        data = explanation.to_data() | {"erased": None if change is None else change.tolist()}
        sys.stdout.write(json.dumps(data, ensure_ascii=False) + "\n")
        return
    units = _drawn_units(task, example, unit) if unit else []
    path = Path(f"explain-{_safe(text)}.html") if out is None else out
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(explanation_page(explanation, change, units), encoding="utf-8")
    line = f"{text} -> {explanation.output} (confidence {explanation.confidence:.2f})"
    if not explanation.nbest:
        line = f"{text}: log-probability {explanation.score:.2f}"
    sys.stdout.write(line + "\n")
    sys.stdout.write(f"Explanation: {path}\n")


def _drawn_units(task: AbstractTask[Any], example: Example, names: tuple[str, ...]) -> list[str]:
    """Draw the text once for each unit."""
    found = {each.name: each for each in activations(task, example)}
    drawings = list[str]()
    for name in names:
        fields = _UNIT(name)
        cell, part, number = fields.groups("") if fields else ("", "", "")
        part = part or "hidden"
        if cell not in found or part not in found[cell].parts:
            known = "; ".join(f"{each.name}: {', '.join(each.parts)}" for each in found.values())
            raise ValueRangeError(
                f"--unit {name}: expected a cell and a part of this model ({known}). Write, for example, "
                f"--unit {next(iter(found))}:hidden"
            )
        one = found[cell]
        place = one.most_varied(part) if not number else int(number)
        drawings.append(
            colored_text(one.tokens, one.unit(part, place), title=f"{cell}, {part}, unit {place}")
        )
    return drawings


def _symbols(task: AbstractTask[Any], prefix: str) -> list[str]:
    """Tokenize the required prefix of the output."""
    return task.output_symbols(prefix) if prefix else []


def _safe(text: str) -> str:
    """Convert a text to a part of a file name."""
    name = re.sub(r"\W+", "-", text).strip("-")[:_LONGEST_NAME]
    while len(name.encode()) > 3 * _LONGEST_NAME:
        name = name[:-1]
    return name or "input"
