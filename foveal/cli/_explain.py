"""`foveal explain`: a page on one answer, or its data."""

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from ..bundles import load_bundle
from ..data import Example
from ..inspection import explain
from ..inspection.explaining._erasure import change_without
from ..inspection.explaining._explanation_page import explanation_page
from ..specs._files import specs_in
from ..tasks import AbstractTask
from ._threads import use_threads

_LONGEST_NAME = 40


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
    as_json: Annotated[bool, arg(name="json")] = False,
    with_specs: Path | None = None,
    threads: int | None = None,
) -> None:
    """Say how a model came to its answer: other answers, how sure it was of each symbol, where it
    looked, and whether the answer depends on that.

    Args:
        bundle: the folder of a model that `fit` made.
        text: the input, or the first text of a pair.
        second: the second text, for a model that reads pairs of texts.
        features: which form is wanted, for a model that reads features.
        out: the page to write; by default explain-INPUT.html in the current folder.
        beam_size: candidates kept in search, and answers shown.
        alternatives: symbols shown for each step.
        prefix: what the output must begin with.
        as_json: print the data instead of writing a page.
        with_specs: a Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The file is run.
        threads: threads that torch computes with; by default OMP_NUM_THREADS, or one for each core.
    """
    use_threads(threads)
    task = load_bundle(bundle, also=specs_in(with_specs))
    example = Example(text if second is None else f"{text}\t{second}", features=features)
    explanation = explain(
        task, example, beam_size=beam_size, alternatives=alternatives, prefix=_symbols(task, prefix)
    )
    change = change_without(task, example, [step.token for step in explanation.steps])
    if as_json:
        data = explanation.to_data() | {"erased": None if change is None else change.tolist()}
        sys.stdout.write(json.dumps(data, ensure_ascii=False) + "\n")
        return
    path = Path(f"explain-{_safe(text)}.html") if out is None else out
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(explanation_page(explanation, change), encoding="utf-8")
    said = f"{text} -> {explanation.output} (confidence {explanation.confidence:.2f})"
    if not explanation.nbest:
        said = f"{text}: log-probability {explanation.score:.2f}"
    sys.stdout.write(said + "\n")
    sys.stdout.write(f"{path} shows how\n")


def _symbols(task: AbstractTask[Any], prefix: str) -> list[str]:
    """What the output must begin with, cut into symbols."""
    return task.output_symbols(prefix) if prefix else []


def _safe(text: str) -> str:
    """A text as part of the name of a file."""
    name = re.sub(r"\W+", "-", text).strip("-")[:_LONGEST_NAME]
    while len(name.encode()) > 3 * _LONGEST_NAME:
        name = name[:-1]
    return name or "input"
