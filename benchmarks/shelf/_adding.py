"""Write a trained model into the shelf: its bundle in float16, its int8 export, and the measured data of its card.

models/NAME/card.json     what was measured once, with the test files
models/NAME/CARD.md       the card, from card.json and the other files of the folder
index.json                all models, from their cards and the checksums of their files
"""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from shutil import rmtree
from typing import Any

import torch
import zstandard

from foveal import __version__
from foveal.bundles import load_bundle, save_bundle
from foveal.data import Example, LineReader, Picture
from foveal.data._example import evenly_spaced
from foveal.data.images._bytes import IMAGE, media_bytes
from foveal.datasets import data_folder
from foveal.datasets._contents import content_digest
from foveal.errors import ExportError
from foveal.export import ExportOptions, export_bundle
from foveal.shelf._adding import EXAMPLE, model_files
from foveal.shelf._index import CARD, CARD_DATA, INDEX, MODELS, files_of, index_json, model_of
from foveal.tasks import AbstractTask, Evaluation
from foveal.training import Run
from foveal.views._drawing import drawing

from ..records._fitting import Cost
from ..records._scoring import source_files
from ..results import Results
from ._card import card
from ._catalogue import Described, data_set_of

NUM_MISTAKES = 10
NUM_TIMED = 1000  # test examples that the speed is measured on
FEW_TIMED = 100  # recordings
NUM_TESTED = 20  # examples of the self-test of an export, which it contains
FEW_TESTED = 4  # a lexicon leaves less room
ROUNDS = 3
LEVEL = 22  # of compression of the lexicon
MOST_BYTES = 20_000  # of an image of the shelf
CACHE = Path(__file__).resolve().parents[2] / ".cache"


def add(name: str, described: Described, run: Path, shelf: Path) -> None:
    """Write one model of the shelf, without its card.

    Args:
        name: The name of the model.
        described: Its recipe, and the words of its card.
        run: The folder of its training run.
        shelf: The folder of the shelf.
    """
    folder = shelf / MODELS / name
    rmtree(folder, ignore_errors=True)
    task = load_bundle(run)
    task.vocabularies = replace(task.vocabularies, rare=(), majority={})
    save_bundle(task, folder, half=True)
    task = load_bundle(folder)  # the weights that a user gets
    made = described.run()
    test = list(made.test or ())
    found = task.evaluate(test)
    exported = _export(folder, described, test)
    _write_lexicon(folder, described)
    data = {
        **_measured(found),
        "shelf": _row(name, described, task, found, _speed(task, test)),
        "example": described.example,
        "recipe": described.recipe,
        "data": [_data_set(each, made) for each in described.data],
        "left_out": described.left_out,
        "use": described.use,
        "limits": described.limits,
        "examples": {part: sum(1 for _ in source or ()) for part, source in _parts(made).items()},
        "parameters": sum(each.numel() for each in task.model.parameters()),
        "cpu_minutes": Cost.load(run).processor_minutes,
        "export": exported,
        "made_with": {"foveal": __version__, "torch": torch.__version__.partition("+")[0]},
        "machine": asdict(Results.here("").machine),
    }
    _draw_mistake(task, found, folder)
    _write_example(test[0], folder)
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    (folder / CARD_DATA).write_text(text, encoding="utf-8")
    (folder / "LICENSE.txt").write_text(_license(described), encoding="utf-8")


def write_cards(shelf: Path) -> None:
    """Write the card of each model, and the index."""
    models = []
    for path in sorted((shelf / MODELS).glob(f"*/{CARD_DATA}")):
        folder, data = path.parent, json.loads(path.read_text(encoding="utf-8"))
        (folder / CARD).write_text(card(folder), encoding="utf-8")
        row = {
            **data["shelf"],
            "files": [asdict(one) for one in files_of(folder, model_files(folder))],
        }
        models.append(model_of(row, folder))
    (shelf / INDEX).write_text(index_json(models), encoding="utf-8")


def _parts(run: Run) -> dict[str, Any]:
    return {"training": run.train, "validation": run.dev, "test": run.test}


def _row(
    name: str, described: Described, task: AbstractTask[Any], found: Evaluation, speed: float
) -> dict[str, Any]:
    """Return the row of the index, without files."""
    main = found.metrics[found.main.name]
    return {
        "name": name,
        "version": __version__,
        "about": described.about,
        "task": task.spec.kind,
        "license": described.license,
        "score": {
            "metric": found.main.name,
            "value": main.value,
            "low": main.low,
            "high": main.high,
        },
        "languages": list(described.languages),
        "words_per_second": speed,
    }


def _measured(found: Evaluation) -> dict[str, Any]:
    """Return scores, slices, calibration and the most confident mistakes."""
    reliability, curve = found.reliability, found.risk_coverage
    assert reliability is not None
    assert curve is not None
    return {
        "higher_is_better": found.main.higher_is_better,
        "metrics": {name: metric._asdict() for name, metric in found.metrics.items()},
        "slices": [
            {"name": part.name, "examples": part.num_examples, **part.metric._asdict()}
            for part in found.slices
        ],
        "reliability": {"ece": reliability.ece, "chance": reliability.chance},
        "coverage": {f"{100 * risk:.0f} %": curve.coverage_at(risk) for risk in (0.01, 0.05, 0.1)},
        "mistakes": [
            {
                "source": _shown(example),
                "expected": expected,
                "output": prediction.output,
                "confidence": round(prediction.confidence, 4),
            }
            for example, expected, prediction in found.mistakes[:NUM_MISTAKES]
        ],
    }


def _shown(example: Example) -> str:
    """Return the text of an example, or the name of its file without the folders of this machine."""
    text = str(example.source)
    return Path(text).name if Path(text).is_absolute() else text


def _speed(task: AbstractTask[Any], examples: list[Example]) -> float:
    """Return the number of examples in a second of CPU time, on one thread, in batches: the best of three rounds."""
    number = NUM_TIMED if task.inputs.text else FEW_TIMED
    asked = [replace(example, target=None) for example in islice(cycle(examples), number)]
    seconds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        task.predict(asked)
        seconds.append(time.process_time() - began)
    return round(len(asked) / min(seconds), 1)


def _export(folder: Path, described: Described, test: list[Example]) -> dict[str, Any] | None:
    """Write the int8 export, and return how many of the tested examples it answers like the bundle. Return None for a
    model without an export.
    """
    options = ExportOptions(storage="int8", license=described.license, data=described.data)
    number = NUM_TESTED if described.lexicon is None else FEW_TESTED
    examples = [replace(each, target=None) for each in evenly_spaced(test, number)]
    try:
        done = export_bundle(folder, folder / "export", examples, options)
    except ExportError:
        return None
    return {"size": done.size, "tested": done.num_tested, "equal": done.num_equal}


def _write_lexicon(folder: Path, described: Described) -> None:
    if described.lexicon is None:
        return
    lines = LineReader(str(data_folder().joinpath(*described.lexicon)))
    words = [line.partition(" #")[0].rstrip() for line in lines]
    content = "".join(f"{line}\n" for line in sorted({*words, *described.additions})).encode()
    packed = zstandard.ZstdCompressor(level=LEVEL).compress(content)
    (folder / "lexicon.txt.zst").write_bytes(packed)


def _data_set(name: str, run: Run) -> dict[str, Any]:
    """Return source, license and citation of a data set, and the checksums of the files of the run."""
    entry = data_set_of(name)
    known = {file.path: file.sha256 for file in entry.files}
    used = {path for source in _parts(run).values() for path in source_files(source)}
    # A recipe draws its images into the cache of the checkout.
    folder = entry.folder if entry.folder.exists() else CACHE
    inside = [path.relative_to(folder) for path in used if path.is_relative_to(folder)]
    return {
        "name": name,
        "source": entry.source,
        "revision": entry.revision,
        "license": entry.license,
        "citation": entry.citation,
        "files": [
            {"path": path, "sha256": known.get(path) or content_digest(folder / path)}
            for path in sorted(each.as_posix() for each in inside) or known
        ]
        or [_whole_folder(folder)],
    }


def _whole_folder(folder: Path) -> dict[str, str]:
    """Return one checksum for all files of a folder: the sha256 of the lines "sha256  path"."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [(sha256(path.read_bytes()).hexdigest(), path.relative_to(folder)) for path in paths]
    lines = "".join(f"{digest}  {path.as_posix()}\n" for digest, path in files)
    name = f"all {len(files):,} files"
    return {"path": name, "sha256": sha256(lines.encode()).hexdigest()}


def _draw_mistake(task: AbstractTask[Any], found: Evaluation, folder: Path) -> None:
    """Draw the attention of the most confident mistake, if the model shows attention."""
    for example, _, _ in found.mistakes[:1]:
        asked = replace(example, target=None)
        trace = task.predict(asked, replace(task.prediction, trace=True)).trace
        if trace is not None:
            drawn = drawing(trace, image=task.picture_seen(asked))
            (folder / "mistake.svg").write_text(drawn + "\n", encoding="utf-8")


def _write_example(example: Example, folder: Path) -> None:
    """Write the image of an example, so that a user has one to try the model with."""
    if isinstance(example.source, Picture):
        content = media_bytes(example.source.file, MOST_BYTES, IMAGE)
        (folder / EXAMPLE).write_bytes(content)


def _license(described: Described) -> str:
    return "".join(f"{line}\n" for line in _license_lines(described))


def _license_lines(described: Described) -> Iterator[str]:
    """Yield the license of the weights, and credit for the data."""
    yield f"The files of this folder are licensed under {described.license}."
    yield f"License text: https://spdx.org/licenses/{described.license}.html"
    yield ""
    for name in described.data:
        entry = data_set_of(name)
        yield f"The model was trained on {name}: {entry.about}."
        yield f"Source: {entry.source}"
        yield f"License of the data: {entry.license}"
        yield f"Please cite: {entry.citation}"
        notice = entry.folder / "LICENSE"
        if described.license.startswith("BSD"):
            yield from ("", notice.read_text(encoding="utf-8").strip())
