"""The card of a model, from the files of its folder: card.json has the measured figures, and the bundle all others.

The header is the metadata of a model card of the Hugging Face hub, with the scores as `model-index`.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from foveal.datasets._catalog import catalog
from foveal.shelf._index import CARD_DATA

Data = Mapping[str, Any]
_TITLES = {
    "g2p": "Pronunciation",
    "names": "Names",
    "tagger": "Parts of speech",
    "parser": "Dependency trees",
    "scenes": "Captions",
    "formulas": "Formulas",
    "digits": "Spoken digits",
    "commands": "Commands",
}
_HUB_TASKS = {
    "transduction": "text2text-generation",
    "tagging": "token-classification",
    "parsing": "token-classification",
    "captioning": "image-to-text",
    "transcription": "automatic-speech-recognition",
}
_MOST_SYMBOLS = 200


def card(folder: Path) -> str:
    """Return the text of the card of a model.

    Args:
        folder: The folder of the model on the shelf.

    Returns:
        Markdown with a YAML header.
    """
    data = _json(folder / CARD_DATA)
    sections = (
        _header(data),
        _summary(data, folder),
        _data(data),
        _scores(data),
        _confidence(data),
        _mistakes(data, folder),
        _model(data, folder),
        _limits(data),
    )
    return "\n".join(line for section in sections for line in section)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _header(data: Data) -> Iterator[str]:
    row = data["shelf"]
    yield "---"
    yield f"license: {row['license'].lower()}"
    yield f"language: [{', '.join(_quoted(one) for one in row['languages'])}]"
    yield "library_name: foveal"
    yield f"tags: [{row['task']}, structured-attention]"
    yield "model-index:"
    yield f"- name: {row['name']}"
    yield "  results:"
    yield "  - task:"
    yield f"      type: {_HUB_TASKS[row['task']]}"
    yield f"      name: {_quoted(row['about'])}"
    yield "    dataset:"
    yield f"      name: {_quoted(data['data'][0]['name'])}"
    yield f"      type: {data['data'][0]['name']}"
    yield "      split: test"
    yield "    metrics:"
    for name, metric in data["metrics"].items():
        yield f"    - type: {name}"
        yield f"      value: {metric['value']:.2f}"
    yield "---"
    yield ""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _summary(data: Data, folder: Path) -> Iterator[str]:
    row, example = data["shelf"], data["example"]
    if (folder / example).exists():  # an image of the model's folder
        example = f'"$(foveal models path {row["name"]})/{example}"'
    yield f"# {row['name']}"
    yield ""
    yield f"{_title(row['name'])}: {row['about']}. Version {row['version']}, license of the files: {row['license']}."
    yield ""
    yield "```console"
    yield f"$ foveal predict {row['name']} {example}"
    yield "```"
    yield ""
    yield data["use"]
    yield ""


def _title(name: str) -> str:
    return _TITLES[name.partition("-")[0]]


def _data(data: Data) -> Iterator[str]:
    yield "## Data"
    yield ""
    counts = ", ".join(f"{number:,} for {part}" for part, number in data["examples"].items())
    yield f"Examples: {counts}. {data['left_out']}"
    yield ""
    for one in data["data"]:
        revision = f", commit {one['revision']}" if one["revision"] else ""
        yield f"- `{one['name']}`: {one['source']}{revision}; {one['license']}; {one['citation']}"
        yield from (f"    - `{file['path']}`, sha256 `{file['sha256']}`" for file in one["files"])
    yield ""


def _scores(data: Data) -> Iterator[str]:
    yield "## Scores"
    yield ""
    direction = "higher" if data["higher_is_better"] else "lower"
    main = data["shelf"]["score"]["metric"]
    yield f"Test set, scored once, with 95 % intervals. The main score is {main}; {direction} is better."
    yield ""
    yield "| score | value | interval | computed as |"
    yield "|---|---:|---:|---|"
    for name, metric in data["metrics"].items():
        yield f"| {name} | {metric['value']:.2f} | {_interval(metric)} | {metric['signature']} |"
    yield ""
    if data["slices"]:
        yield f"| {main} by slice | value | interval | examples |"
        yield "|---|---:|---:|---:|"
        for part in data["slices"]:
            cells = (f"{part['value']:.2f}", _interval(part), f"{part['examples']:,}")
            yield f"| {part['name']} | {' | '.join(cells)} |"
        yield ""


def _interval(metric: Data) -> str:
    return f"{metric['low']:.2f} to {metric['high']:.2f}"


def _confidence(data: Data) -> Iterator[str]:
    found = data["reliability"]
    yield "## Calibration"
    yield ""
    yield (
        f"Expected calibration error of the confidence: {found['ece']:.3f} ({found['chance']:.3f} for a perfectly calibrated "
        f"model, by chance)."
    )
    kept = ", ".join(f"{100 * share:.0f} % at {risk}" for risk, share in data["coverage"].items())
    yield f"Fraction of the answers to keep, the most confident first, for an error rate: {kept}."
    yield ""


def _mistakes(data: Data, folder: Path) -> Iterator[str]:
    yield "## The most confident mistakes"
    yield ""
    yield "| input | expected | output | confidence |"
    yield "|---|---|---|---:|"
    for one in data["mistakes"]:
        cells = (_cell(one[key]) for key in ("source", "expected", "output"))
        yield f"| {' | '.join(cells)} | {one['confidence']:.2f} |"
    yield ""
    if (folder / "mistake.svg").exists():
        yield f"![Attention of the model for {_cell(data['mistakes'][0]['source'])}](mistake.svg)"
        yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _model(data: Data, folder: Path) -> Iterator[str]:
    row, export, sizes = data["shelf"], data["export"], _sizes(folder)
    yield "## Model"
    yield ""
    yield f"- Parameters: {data['parameters']:,}; the settings are in `spec.json`."
    yield f"- Files: {', '.join(f'{name} {size / 1e6:.2f} MB' for name, size in sizes.items())}."
    if export is not None:
        yield (
            f"- `export/` runs without torch and stores the weights in 8 bits; it answers {export['equal']} of "
            f"{export['tested']} test inputs like the bundle."
        )
    yield (
        f"- Speed: {row['words_per_second']:,.0f} inputs in a second of CPU time, on one thread, in batches "
        f"({data['machine']['cpu']})."
    )
    yield f"- Training: {data['cpu_minutes']:.1f} CPU minutes."
    for side, symbols in _inventories(folder):
        shown = " ".join(symbols[:_MOST_SYMBOLS])
        more = f" and {len(symbols) - _MOST_SYMBOLS:,} more" if len(symbols) > _MOST_SYMBOLS else ""
        yield f"- {len(symbols):,} symbols of the {side}: `{shown}`{more}"
    yield ""
    yield "To make it again:"
    yield ""
    yield "```console"
    names = [one["name"] for one in data["data"] if one["name"] in catalog()]
    if names:
        yield f"$ foveal data get {' '.join(names)}"
    yield f"$ foveal fit --recipe recipes/shelf.py:{data['recipe']} --out runs/{row['name']}"
    yield f"$ python -m benchmarks.shelf fit --runs runs --names {row['name']}"
    yield f"$ python -m benchmarks.shelf add --runs runs --names {row['name']}"
    yield "```"
    yield ""
    made = ", ".join(f"{name} {version}" for name, version in data["made_with"].items())
    yield f"`foveal fit` trains the model in your own folder; the last two commands write the shelf. Made with {made}."
    yield ""


def _sizes(folder: Path) -> dict[str, int]:
    """Return the sizes of the parts of a model in bytes."""
    parts = {
        "bundle": ("spec.json", "vocabulary.json", "weights.safetensors", "calibration.json"),
        "lexicon": ("lexicon.txt.zst",),
        "export": tuple(f"export/{path.name}" for path in sorted((folder / "export").glob("*"))),
    }
    found = {
        part: sum((folder / name).stat().st_size for name in names if (folder / name).exists())
        for part, names in parts.items()
    }
    return {part: size for part, size in found.items() if size}


def _inventories(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the symbols of the source and of the target, most frequent first."""
    vocabulary = _json(folder / "vocabulary.json")
    for side, key in (("source", "source"), ("target", "target"), ("target", "labels")):
        found = vocabulary.get(key)
        names = found["names"] if isinstance(found, dict) else found
        if names:
            yield side, ["␣" if not each.strip() else each for each in names if each != "`"]


def _limits(data: Data) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield data["limits"]
    yield ""
