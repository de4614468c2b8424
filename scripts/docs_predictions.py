"""Tables of the outputs of several models for the same programs, from results/predictions/<experiment>.json.

`python -m benchmarks.lectures score <experiment>` writes the files.
"""

import json
from typing import Any

from docs_records import RESULTS


def predictions(experiment: str, model: str) -> str:
    """Return a row for each program and a column for each case of a model. An error has its kind in parentheses."""
    path = RESULTS / f"predictions/{experiment}.json"
    programs: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    cases = [case for case in programs[0]["outputs"] if case.startswith(f"{model}, ")]
    if not cases:
        raise ValueError(f"results/predictions/{experiment}.json: no case of {model}.")
    names = [case.removeprefix(f"{model}, ") for case in cases]
    lines = [
        "| program | output | " + " | ".join(names) + " |",
        "|---|---:|" + "---:|" * len(names),
    ]
    for each in programs:
        cells = [_cell(each["outputs"][case]) for case in cases]
        text = "<br>".join(f"`{line}`" for line in each["program"].split(";"))
        lines.append(f"| {text} | {each['expected']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(answer: dict[str, str | None]) -> str:
    if answer["error"] is None:
        return str(answer["output"])
    return f"**{answer['output']}**<br>({answer['error']})"
