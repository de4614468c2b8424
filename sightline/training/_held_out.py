"""A development set for who has none: some training examples, set apart in files of their own.

Which ones is decided by the text of the source, so that equal sources stay on one side and the
same file is always divided in the same way.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TextIO

from ..data import Example, JsonLines, json_lines

ONE_IN = 10
MOST = 1000  # examples set apart: enough to choose by, and few enough to decode often


class Divided(NamedTuple):
    """The two parts, as files."""

    train: JsonLines
    dev: JsonLines
    num_train: int
    num_dev: int


def hold_out(examples: Iterable[Example], folder: Path) -> Divided:
    """Write the examples as `train.jsonl` and `dev.jsonl`; one in ten is in the latter, at most
    1,000. They are read once, and none is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "train.jsonl", folder / "dev.jsonl"
    counts = [0, 0]
    with paths[0].open("w", encoding="utf-8") as train, paths[1].open("w", encoding="utf-8") as dev:
        for example in examples:
            # Of a pair the first text decides: what is said of it stays together.
            first = example.source.partition("\t")[0]
            is_apart = counts[1] < MOST and _digest(first) % ONE_IN == 0
            _write(dev if is_apart else train, example)
            counts[is_apart] += 1
    train_part, dev_part = (
        json_lines(
            str(path), source="source", target="target", features="features", alignment="alignment"
        )
        for path in paths
    )
    return Divided(train_part, dev_part, *counts)


def _write(file: TextIO, example: Example) -> None:
    record = {
        "source": example.source,
        "target": example.target,
        "features": example.features,
        "alignment": example.alignment,
    }
    file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
