"""Tables of the page about exports, from results/exporting.json.

<!-- exporting: answers -->     differences between exports and their originals, a row for each model
<!-- exporting: storage -->     size and quality with smaller weights
<!-- exporting: runtimes -->    lines of the self-test with the stored output, a column for each runtime
<!-- exporting: speed -->       words per second of each engine, with the ratio to torch
<!-- exporting: start -->       time and memory of the first answer
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from docs_gpu import number_table
from docs_records import origin

MARKER = re.compile(r"^<!-- exporting: (answers|storage|runtimes|speed|start) -->$", re.MULTILINE)
MODELS = {
    "ice": "Icelandic",
    "hun": "Hungarian",
    "bul": "Bulgarian",
    "katakana": "katakana",
    "tur": "Turkish inflection",
    "tagger": "tags",
    "ja_en": "Japanese to English",
}
_DIFFERENCES = {
    "examples": "inputs",
    "same output as torch": "same output, %",
    "largest difference of scores": "score",
    "largest difference of confidence": "confidence",
    "largest difference of attention weights": "attention",
    "largest difference of scores alone and in batches of 32": "alone and in a batch",
}
_SELF_TEST = "lines of the self-test with the stored output, "
_SPEED = re.compile(r"(\w+), (.+), batch (\d+): (.+)")
_START = re.compile(r"\w+, (runtime|torch): (.+)")


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.001 else f"{value:.1e}"


def _by_model(rows: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the values of each model, by the rest of their names."""
    found: dict[str, dict[str, float]] = {}
    for name, row in rows.items():
        model, separator, rest = name.partition(": ")
        if separator and model in MODELS:
            found.setdefault(model, {})[rest] = row["value"]
    return {model: found[model] for model in MODELS if model in found}


def answers(rows: Mapping[str, Any]) -> list[str]:
    """Return the largest differences of each model."""
    body = [
        [MODELS[model], *(_cell(values.get(name)) for name in _DIFFERENCES)]
        for model, values in _by_model(rows).items()
    ]
    return number_table(["model", *_DIFFERENCES.values()], body)


def storage(rows: Mapping[str, Any]) -> list[str]:
    """Return size, quality and calibration of each model with 8 and 16 bits."""
    heads = ["model", "bits", "size", "same output, %", "points worse", "calibration error"]
    body = list[list[str]]()
    for model, title in MODELS.items():
        whole = f"{model}, float32: "
        if f"{whole}calibration error" not in rows:
            continue
        error = rows[f"{whole}calibration error"]["value"]
        size = rows[f"{whole}size of the graph"]["value"]
        body.append([title, "32", f"{size:.1f} MB", "", "", _cell(error)])
        for kind, bits in (("half", "16"), ("int8", "8")):
            of = {
                name.removeprefix(f"{model}, {kind}: "): row["value"]
                for name, row in rows.items()
                if name.startswith(f"{model}, {kind}: ")
            }
            worse = next(value for name, value in of.items() if name.endswith("points worse"))
            cells = (of["same output as float32"], worse, of["calibration error"])
            body.append(["", bits, f"{of['size over float32']:.3f} x", *map(_cell, cells)])
    return number_table(heads, body)


def runtimes(rows: Mapping[str, Any]) -> list[str]:
    """Return the lines that each runtime answers as stored, of all lines."""
    found = _by_model({name: row for name, row in rows.items() if _SELF_TEST in name})
    kinds = list(dict.fromkeys(kind for values in found.values() for kind in values))
    body = [
        [
            MODELS[model],
            *(
                f"{values[kind]} of {rows[f'{model}: {kind}']['target']}" if kind in values else ""
                for kind in kinds
            ),
        ]
        for model, values in found.items()
    ]
    return number_table(["model", *(kind.removeprefix(_SELF_TEST) for kind in kinds)], body)


def speed(rows: Mapping[str, Any]) -> list[str]:
    """Return the median speed of each engine, with the ratio to torch in brackets."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for name, row in rows.items():
        match = _SPEED.fullmatch(name)
        if match is None or match[4].endswith(" over torch"):
            continue
        ratio = rows.get(f"{name} over torch")
        text = f"{row['value']:,.0f}" + (f" ({ratio['value']:.1f} x)" if ratio else "")
        found.setdefault((match[2], match[3]), {})[match[4]] = text
    engines = list(dict.fromkeys(engine for cells in found.values() for engine in cells))
    body = [
        [f"{search}, batch {batch}", *(cells.get(engine, "") for engine in engines)]
        for (search, batch), cells in found.items()
    ]
    return number_table(["words per second", *engines], body)


def start(rows: Mapping[str, Any]) -> list[str]:
    """Return time and memory up to the first answer."""
    found: dict[str, dict[str, str]] = {}
    for name, row in rows.items():
        match = _START.fullmatch(name)
        if match is not None and row["unit"] in ("s", "MB"):
            found.setdefault(match[2], {})[match[1]] = f"{row['value']:.3g} {row['unit']}"
    heads = ["", "runtime", "torch"]
    body = [[what, cells["runtime"], cells["torch"]] for what, cells in found.items()]
    return number_table(heads, body)


_TABLES: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "answers": answers,
    "storage": storage,
    "runtimes": runtimes,
    "speed": speed,
    "start": start,
}


def exporting_table(name: str, results: Path) -> str:
    """Return the table of one marker; the last of the page, `start`, with the origin of all."""
    content = json.loads((results / "exporting.json").read_text(encoding="utf-8"))
    lines = _TABLES[name]({row["name"]: row for row in content["rows"]})
    return "\n".join([*lines, "", origin(content)] if name == "start" else lines)
