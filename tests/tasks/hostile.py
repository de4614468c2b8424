"""Malicious bundles: valid checksums, but contents that no save has written.

`named` writes a fixed list of them, `drawn` random ones by a seed: a stored bundle with one change to
its spec, vocabulary, calibration, manifest or weights.
"""

import hashlib
import json
import math
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save

from foveal.bundles._manifest import _manifest_bytes
from tests.tasks.stored import BUNDLES

STORED = sorted(path for path in (BUNDLES / "0.1.0").iterdir() if path.is_dir())
SPEC, VOCABULARY, CALIBRATION, WEIGHTS, MANIFEST = (
    "spec.json",
    "vocabulary.json",
    "calibration.json",
    "weights.safetensors",
    "manifest.json",
)
TEXTS = (SPEC, VOCABULARY, CALIBRATION)
Files = dict[str, bytes]
DEEP = b"[" * 200_000 + b"]" * 200_000


def files_of(folder: Path) -> Files:
    return {name: (folder / name).read_bytes() for name in (*TEXTS, WEIGHTS)}


def sealed(folder: Path, files: Files) -> Path:
    """Write a bundle with valid checksums, like `write_sealed` but without waiting for the disk."""
    folder.mkdir(parents=True)
    listed = {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
    }
    about = {"format": 1, "foveal": "0.1.0", "files": listed}
    for name, content in {**files, MANIFEST: _manifest_bytes(about)}.items():
        (folder / name).write_bytes(content)
    return folder


def packed(header: Any, body: bytes) -> bytes:
    """Build a safetensors file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def unpacked(weights: bytes) -> tuple[dict[str, Any], bytes]:
    (size,) = struct.unpack("<Q", weights[:8])
    return json.loads(weights[8 : 8 + size]), weights[8 + size :]


def filled(weights: bytes, number: float) -> bytes:
    return save({name: torch.full_like(tensor, number) for name, tensor in load(weights).items()})


# --- the fixed list


def named(root: Path) -> Iterator[Path]:
    """Write every bundle that must be refused, each in a folder below the root."""
    base = BUNDLES / "0.1.0" / "transduction"
    for name, change in {**_specs(), **_vocabularies(), **_calibrations(), **_weights()}.items():
        files = files_of(base)
        change(files)
        yield sealed(root / name, files)
    for name, tamper in _tampered(base).items():
        folder = shutil.copytree(base, root / name)
        tamper(folder)
        yield folder


def _specs() -> dict[str, Callable[[Files], None]]:
    def spec(section: str, **values: Any) -> Callable[[Files], None]:
        def change(files: Files) -> None:
            data = json.loads(files[SPEC])
            part = data
            for name in filter(None, section.split(".")):
                part = part[name]
            part.update(values)
            files[SPEC] = json.dumps(data).encode()

        return change

    def raw(content: bytes) -> Callable[[Files], None]:
        return lambda files: files.update({SPEC: content})

    sizes = (10**9, 20_000, 10**12, 10**18, int("9" * 400), -1, 0, 1.5, True, None, "16", [16])
    found = {
        f"{section}-{field}-{str(size)[:20]}": spec(section, **{field: size})
        for section in ("model.encoder", "model.decoder")
        for field in ("hidden_size", "embedding_size")
        for size in sizes
    }
    for layers in (2, 10**4, 10**6, 10**12, 10**30):
        found[f"encoder-layers-{layers}"] = spec("model.encoder", num_layers=layers)
        found[f"decoder-layers-{layers}"] = spec("model.decoder", num_layers=layers)
    for name, value in {
        "beam_size": 10**9,
        "nbest": 10**9,
        "max_length": 10**12,
        "length_penalty": 1e308,
        "no_repeat_ngram": 10**9,
        "batch_size": 10**12,
    }.items():
        found[f"prediction-{name}"] = spec("prediction", **{name: value})
    heads = {"kind": "multi_head", "num_heads": 10**9}
    return found | {
        "heads": spec("model.decoder", attention=heads),
        "kind-list": spec("", kind=["x"]),
        "kind-dunder": spec("", kind="__class__"),
        "model-null": spec("", model=None),
        "class": spec("", **{"class": "os.system"}),
        "class-of-attention": spec(
            "model.decoder", attention={"class": "os.system", "kind": "mine"}
        ),
        "class-number": spec("model.decoder", attention={"class": 1, "kind": "softmax"}),
        "encoder-null": spec("model", encoder=None),
        "spec-surrogate": spec("", features={"separator": "\ud800"}),
        "spec-nested": raw(DEEP),
        "spec-nested-objects": raw(b'{"encoder":' * 5000 + b"1" + b"}" * 5000),
        "spec-long-number": raw(b'{"kind":' + b"9" * 5000 + b"}"),
        "spec-utf16": raw('{"a":1}'.encode("utf-16")),
        "spec-bad-utf8": raw(b'{"kind":"\xff"}'),
        "spec-empty": raw(b""),
        "spec-large": raw(b"[" + b"[]," * 4_000_000 + b"[]]"),
    }


def _vocabularies() -> dict[str, Callable[[Files], None]]:
    def raw(content: bytes) -> Callable[[Files], None]:
        return lambda files: files.update({VOCABULARY: content})

    def part(name: str, value: Any) -> Callable[[Files], None]:
        def change(files: Files) -> None:
            data = json.loads(files[VOCABULARY])
            data[name] = value
            files[VOCABULARY] = json.dumps(data).encode()

        return change

    found = {
        f"vocabulary-{name}-{label}": part(name, value)
        for name in ("source", "target", "rare", "lengths")
        for label, value in {
            "null": None,
            "number": 5,
            "text": "abc",
            "numbers": [1, 2],
            "nested": [[["a"]]],
            "object": {"a": 1},
            "repeated": ["a", "a", 0],
            "surrogate": ["\ud800"],
        }.items()
    }
    for label, value in {"nan": math.nan, "inf": math.inf, "huge": 1e300, "text": "2"}.items():
        found[f"lengths-{label}"] = part("lengths", {"ratio": value, "slack": 1.0})
    return found | {
        "vocabulary-more": part("source", [f"s{number}" for number in range(1_000_000)]),
        "vocabulary-features": part("features", ["a", "b"]),
        "vocabulary-list": raw(b"[]"),
        "vocabulary-null": raw(b"null"),
        "vocabulary-nested": raw(DEEP),
        "vocabulary-large": raw(b"[" + b"[]," * 10_000_000 + b"[]]"),
    }


def _calibrations() -> dict[str, Callable[[Files], None]]:
    def raw(content: Any) -> Callable[[Files], None]:
        text = content if isinstance(content, bytes) else json.dumps(content).encode()
        return lambda files: files.update({CALIBRATION: text})

    bad = {
        "nan": math.nan,
        "inf": math.inf,
        "minus-inf": -math.inf,
        "low": -1e308,
        "high": 1e308,
        "text": "x",
        "list": [1],
        "bool": True,
    }
    temperatures = {**bad, "zero": 0, "tiny": 1e-300, "null": None}
    found = {
        f"temperature-{label}": raw([{"temperature": value, "others": 0.0}])
        for label, value in temperatures.items()
    }
    for label, value in bad.items():
        found[f"others-{label}"] = raw([{"temperature": 1.0, "others": value}])
    return found | {
        "calibration-none": raw([]),
        "calibration-mixed": raw([{"temperature": 1.0, "others": v} for v in (None, 0.5)]),
        "calibration-object": raw({}),
        "calibration-null": raw(None),
        "calibration-texts": raw(["a"]),
        "calibration-missing": raw([{"temperature": 1.0}]),
        "calibration-more": raw([{"temperature": 1.0, "others": 0.0, "__class__": 1}]),
        "calibration-many": raw([{"temperature": 1.0, "others": 0.0}] * 20_000),
        "calibration-nested": raw(DEEP),
        "calibration-large": raw(b"[" + b"[]," * 4_000_000 + b"[]]"),
    }


def _weights() -> dict[str, Callable[[Files], None]]:
    def changed(change: Callable[[bytes], bytes]) -> Callable[[Files], None]:
        return lambda files: files.update({WEIGHTS: change(files[WEIGHTS])})

    def entry(**values: Any) -> Callable[[Files], None]:
        def change(weights: bytes) -> bytes:
            header, body = unpacked(weights)
            header[min(header)].update(values)
            return packed(header, body)

        return changed(change)

    def overlapping(weights: bytes) -> bytes:
        header, body = unpacked(weights)
        place = header[min(header)]["data_offsets"]
        return packed({name: {**one, "data_offsets": place} for name, one in header.items()}, body)

    def with_one_nan(weights: bytes) -> bytes:
        tensors = load(weights)
        tensors[max(tensors)].view(-1)[0] = math.nan
        return save(tensors)

    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    many = packed({str(number): empty for number in range(100_000)}, b"")
    found = {
        f"weights-{label}": changed(lambda weights, number=number: filled(weights, number))
        for label, number in {
            "nan": math.nan,
            "inf": math.inf,
            "low": -math.inf,
            "huge": 1e30,
        }.items()
    }
    return found | {
        "weights-one-nan": changed(with_one_nan),
        "weights-half": changed(lambda weights: weights[: len(weights) // 2]),
        "weights-empty": changed(lambda weights: b""),
        "weights-long-header": changed(lambda weights: struct.pack("<Q", 2**63 - 1) + b"{}"),
        "weights-header-beyond": changed(lambda weights: struct.pack("<Q", 10**8) + b"{" * 100),
        "weights-header-nested": changed(
            lambda weights: struct.pack("<Q", 200_000) + DEEP[:200_000]
        ),
        "weights-shape": entry(shape=[2**40, 2**40]),
        "weights-no-elements": entry(shape=[0, 10**18], data_offsets=[0, 0]),
        "weights-before": entry(data_offsets=[-8, 8]),
        "weights-dtype": entry(dtype="F64"),
        "weights-dtype-unknown": entry(dtype="X1"),
        "weights-overlapping": changed(overlapping),
        "weights-many": changed(lambda weights: many),
        "weights-other-model": lambda files: files.update(
            {WEIGHTS: (BUNDLES / "0.1.0" / "tagging" / WEIGHTS).read_bytes()}
        ),
    }


def _tampered(base: Path) -> dict[str, Callable[[Path], None]]:
    def replaced(name: str, change: Callable[[Path], object]) -> Callable[[Path], None]:
        def tamper(folder: Path) -> None:
            (folder / name).unlink()
            change(folder / name)

        return tamper

    def listing(folder: Path) -> None:
        data = json.loads((folder / MANIFEST).read_bytes())
        del data["seal"]
        data["files"]["../../passwd"] = {"size": 1, "sha256": "x"}
        (folder / MANIFEST).write_bytes(_manifest_bytes(data))

    return {
        "changed-bit": replaced(
            WEIGHTS, lambda path: path.write_bytes((base / WEIGHTS).read_bytes()[:-1] + b"\x55")
        ),
        "link": replaced(WEIGHTS, lambda path: path.symlink_to(base / WEIGHTS)),
        "missing": replaced(WEIGHTS, lambda path: None),
        "fifo": replaced(WEIGHTS, os.mkfifo),
        "folder": replaced(SPEC, lambda path: path.mkdir()),
        "manifest-fifo": replaced(MANIFEST, os.mkfifo),
        "manifest-large": replaced(MANIFEST, lambda path: path.write_bytes(b"[" * (1 << 20))),
        "manifest-listing": listing,
    }


# --- random changes

_VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1.5, 7, 10**5, 10**9, 10**12, 10**30, int("9" * 400), -(10**12),
    1e308, -1e308, math.nan, math.inf, "", "x", "x" * 5000, "\ud800", "\0", "../../etc/passwd",
    "evil/model", [], [[]], [None], [1] * 1000, ["a", "a"], {}, {"kind": "backbone"},
    {"kind": "text", "num_layers": 10**6},
)  # fmt: skip


def drawn(folder: Path, seed: int) -> Path:
    """Write a stored bundle with one random change."""
    chance = random.Random(seed)
    base = chance.choice(STORED)
    files = files_of(base)
    where = chance.choice((*TEXTS, *TEXTS, WEIGHTS, WEIGHTS, MANIFEST))
    if where == MANIFEST:
        sealed(folder, files)
        (folder / MANIFEST).write_bytes(_drawn_manifest((folder / MANIFEST).read_bytes(), chance))
        return folder
    if where == WEIGHTS:
        files[WEIGHTS] = _drawn_weights(files[WEIGHTS], chance)
    elif chance.random() < 0.1:
        files[where] = files_of(chance.choice([other for other in STORED if other != base]))[where]
    elif chance.random() < 0.2:
        files[where] = _drawn_bytes(files[where], chance)
    else:
        data = json.loads(files[where])
        files[where] = json.dumps(_drawn_data(data, chance)).encode()
    return sealed(folder, files)


def _drawn_data(data: Any, chance: random.Random) -> Any:
    """Replace, remove, add or nest one value of JSON data."""
    parents = [one for one in _nodes(data) if one]
    parent = chance.choice(parents)
    key = chance.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    match chance.randrange(6):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, dict):
            parent[chance.choice(["extra", "__class__", "kind", "weights"])] = chance.choice(
                _VALUES
            )
        case 2:
            nested: Any = parent[key]
            for _ in range(chance.choice([1, 50, 400])):
                nested = [nested] if isinstance(parent, list) else {"encoder": nested}
            parent[key] = nested
        case _:
            parent[key] = chance.choice(_VALUES)
    return data


def _nodes(data: Any) -> Iterator[Any]:
    if isinstance(data, dict | list):
        yield data
        for below in data.values() if isinstance(data, dict) else data:
            yield from _nodes(below)


def _drawn_bytes(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    match chance.randrange(5):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + chance.randbytes(chance.randint(1, 9)) + content[at:]
        case 2:
            return (
                content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]
            )
        case 3:
            return content[:at] + content
        case _:
            return chance.choice([b"[", b'{"a":']) * 50_000


def _drawn_weights(weights: bytes, chance: random.Random) -> bytes:
    header, body = unpacked(weights)
    name = chance.choice(sorted(header))
    match chance.randrange(8):
        case 0:
            return _drawn_bytes(weights, chance)
        case 1:
            return packed(_drawn_bytes(json.dumps(header).encode(), chance), body)
        case 2:
            header[name]["shape"] = chance.choice(
                [[], [1], [2**62], [0], header[name]["shape"] + [1]]
            )
        case 3:
            header[name]["dtype"] = chance.choice(
                ["F16", "BF16", "F64", "I32", "BOOL", "F8_E4M3", 3]
            )
        case 4:
            header[chance.choice(["extra", "", "a" * 5000, "../x"])] = header.pop(name)
        case 5:
            offsets = header[name]["data_offsets"]
            header[name]["data_offsets"] = [chance.choice(_VALUES[3:13]), offsets[1]]
        case 6:
            tensors = load(weights)
            number = chance.choice([math.nan, math.inf, -math.inf, 1e35])
            tensors[name].view(-1)[chance.randrange(tensors[name].numel())] = number
            return save(tensors)
        case _:
            return packed(_drawn_data(header, chance), body)
    return packed(header, body)


def _drawn_manifest(content: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.3:
        return _drawn_bytes(content, chance)
    data = json.loads(content)
    del data["seal"]
    return _manifest_bytes(_drawn_data(data, chance))
