"""Tables of the pages in docs/records: scores with costs, errors by slice, and example mistakes.

All is read from results/<recipe>.json and results/mistakes/<recipe>.json, which
`python -m benchmarks.records score <recipe>` writes.
"""

import html
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.results import Results, Row
from foveal.attention import AttentionTrace
from foveal.views import heatmap

RESULTS = Path(__file__).resolve().parent.parent / "results"
COSTS = ("parameters", "processor minutes", "examples/s")


def record(recipe: str, *beginnings: str) -> str:
    """A row for each case, a column for each figure, and where they come from. With `beginnings`, of the
    cases whose names begin so.
    """
    results = Results.load(RESULTS / f"{recipe}.json")
    cells = dict[str, dict[str, Row]]()
    for row in results.rows:
        if beginnings and not row.name.startswith(beginnings):
            continue
        case, _, figure = row.name.partition(": ")
        cells.setdefault(case, {})[figure] = row
    found = dict.fromkeys(figure for row in cells.values() for figure in row)
    if not found:
        raise ValueError(f"results/{recipe}.json: no case begins with {' or '.join(beginnings)}.")
    columns = sorted(found, key=lambda figure: figure in COSTS)  # scores first
    lines = [
        "| | " + " | ".join(columns) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for case, row in cells.items():
        name = f"**{case}**" if case == "mean" else case
        texts = (_cell(row[column], column) if column in row else "" for column in columns)
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    lines += ["", *_references(cells)]
    data = f" Data: sha256 in `results/{recipe}.json`." if results.data else ""
    lines += [f"{origin(asdict(results))}{data}"]
    return "\n".join(lines)


def _references(cells: dict[str, dict[str, Row]]) -> list[str]:
    """A sentence with kind and source on each column that has only figures of others, and on each line of such figures in
    columns of ours.
    """
    ours = {figure for row in cells.values() for figure, each in row.items() if each.kind is None}
    found = {
        case if figure in ours else figure: row
        for case, row_cells in cells.items()
        for figure, row in row_cells.items()
        if row.kind is not None
    }
    return [f"*{name}* ({row.kind}): {row.source}." for name, row in found.items()]


def origin(results: dict[str, Any]) -> str:
    """Return the origin of figures: command, date, versions and machine."""
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    machine = results["machine"]
    return (
        f"Made by `{results['made_by']}` on {results['date']}, with {versions}, "
        f"on {machine['cpu']}, {machine['threads']} of {machine['cores']} cores."
    )


def slices(recipe: str) -> str:
    """Errors of the ensembles by kind of word, a row for each case. The length
    classes depend on the words of a case, so they differ between cases.
    """
    found = _mistakes(recipe)["slices"]
    others = [part["name"] for parts in found.values() for part in parts if not _is_length(part)]
    columns = ["by length", *dict.fromkeys(others)]
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for case, parts in found.items():
        texts = {part["name"]: f"{part['value']:.1f} % of {part['examples']}" for part in parts}
        lengths = [f"{part['name']}: {texts[part['name']]}" for part in parts if _is_length(part)]
        texts["by length"] = "<br>".join(lengths)
        lines.append(f"| {case} | " + " | ".join(texts.get(name, "") for name in columns) + " |")
    return "\n".join(lines)


def _is_length(part: dict[str, Any]) -> bool:
    return str(part["name"]).endswith("symbols")


def mistakes(recipe: str, pictures: str) -> str:
    """The surest mistakes with where the models looked; `pictures` is the folder's address."""
    parts = list[str]()
    for number, each in enumerate(_mistakes(recipe)["mistakes"], start=1):
        said = html.escape(
            f"{each['case']}: {each['source']} → {each['output']}, where {each['expected']} is right; "
            f"confidence {each['confidence']:.2f}"
        )
        parts.append(f"<p>{number}. {said}</p>")
        if each["attention"] is not None:
            parts.append(f"![where the models looked]({pictures}/{_picture(recipe, number)}.svg)")
    return "\n\n".join(parts)


def drawings() -> dict[str, Callable[[], str]]:
    """The heat maps of all mistakes, by name."""
    found = dict[str, Callable[[], str]]()
    for path in sorted((RESULTS / "mistakes").glob("*.json")):
        for number, each in enumerate(_mistakes(path.stem)["mistakes"], start=1):
            if each["attention"] is not None:
                trace = AttentionTrace.from_json(json.dumps(each["attention"]))
                found[_picture(path.stem, number)] = lambda trace=trace: heatmap(trace)
    return found


def _picture(recipe: str, number: int) -> str:
    return f"mistake_{recipe}_{number}"


@cache
def _mistakes(recipe: str) -> Any:
    return json.loads((RESULTS / "mistakes" / f"{recipe}.json").read_text(encoding="utf-8"))


def _cell(row: Row, column: str) -> str:
    """The value, and for a score the lowest and the highest of the seeds in parentheses."""
    text = _number(row.value)
    if column not in COSTS and row.spread is not None and row.spread[0] != row.spread[1]:
        text += f" ({unbroken(f'{_number(row.spread[0])} to {_number(row.spread[1])}')})"
    if row.target is not None:
        sign = {"<=": "≤", ">=": "≥"}.get(row.sense or "", "")
        text += f", {unbroken(f'aim {sign} {row.target:g}')}"
    return text


def unbroken(text: str) -> str:
    """Return a text that a narrow cell does not break."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _number(value: float) -> str:
    """Format a number with one decimal digit, or with two significant digits below 1."""
    if 0 < abs(value) < 1:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"
