"""Hold out training examples as a validation set, for users who have none.

A hash of the source decides which examples are held out. Equal sources therefore stay in the same set, and a file is
always divided in the same way. For running text, which has no targets, the last lines are held out, which keeps the
rest connected.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..data import Example, JsonLines, SourceSpec, json_lines
from ..errors import DataError, SpecError
from ..specs import from_json, to_json
from ..training.checkpoints._inputs import Input, Inputs
from ..training.checkpoints._whole import replace_text, replacing

DATA = "data"  # the folder of the parts, in the folder of a run
FILES = "files.json"
ONE_IN = 10
MOST = 1000  # examples held out: enough for model selection, and few enough to decode often

_Rule = Callable[[int, Example], bool]  # True if the example with this number is held out


@dataclass(frozen=True, kw_only=True)
class Divided:
    """Training and validation examples that become two files of a run. Only `write` writes them."""

    train: JsonLines
    dev: JsonLines
    train_examples: Iterable[Example]
    dev_examples: Iterable[Example]
    num_train: int
    num_dev: int
    folder: Path
    files: SourceSpec | None = None  # the divided files, if the examples come from files

    def inputs(self) -> Inputs:
        """Return the fingerprints that the two files will have."""
        return {
            "train": [self._fingerprint(self.train, self.train_examples)],
            "dev": [self._fingerprint(self.dev, self.dev_examples)],
        }

    def write(self) -> None:
        """Write both parts, and a description of the files that they come from."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.files is not None:
            replace_text(self.folder / FILES, to_json(self.files) + "\n")
        for source, part in ((self.train, self.train_examples), (self.dev, self.dev_examples)):
            with replacing(Path(source.paths[0])) as file:
                file.writelines(map(_line, part))

    def _fingerprint(self, source: JsonLines, part: Iterable[Example]) -> Input:
        digest, size = hashlib.sha256(), 0
        for example in part:
            line = _line(example).encode()
            digest.update(line)
            size += len(line)
        return Input(source.paths[0], size, digest.hexdigest())


@dataclass(frozen=True)
class Part:
    """One part of a divided corpus, which can be iterated any number of times."""

    whole: Iterable[Example]
    is_held: _Rule
    num_dev: int
    is_dev: bool

    def __iter__(self) -> Iterator[Example]:
        num_held = 0
        for number, example in enumerate(self.whole):
            is_held = num_held < self.num_dev and self.is_held(number, example)
            num_held += is_held
            if is_held == self.is_dev:
                yield example


def keep(train: Sequence[Example], dev: Sequence[Example], folder: Path) -> Divided:
    """Keep examples in memory that become `train.jsonl` and `dev.jsonl` of a folder. Nothing is written yet."""
    has_target = any(example.target is not None for example in train)
    return Divided(
        train=_part_file(folder / "train.jsonl", has_target=has_target),
        dev=_part_file(folder / "dev.jsonl", has_target=has_target),
        train_examples=train,
        dev_examples=dev,
        num_train=len(train),
        num_dev=len(dev),
        folder=folder,
    )


def divided_files(folder: Path) -> SourceSpec | None:
    """Return the files that were divided into the parts in a folder; None if unknown."""
    try:
        return from_json(SourceSpec, (folder / FILES).read_text(encoding="utf-8"))
    except (OSError, SpecError):  # not the folder of a run, or written before this was recorded
        return None


def hold_out(
    examples: Iterable[Example], folder: Path, *, files: SourceSpec | None = None
) -> Divided:
    """Divide examples into `train.jsonl` and `dev.jsonl` of a folder. One in ten examples is in `dev.jsonl`, at most
    1,000 and at least one. Nothing is written yet; the examples are read as a stream, more than once.

    Args:
        examples: The examples to divide.
        folder: The folder for the parts.
        files: The files that the examples come from, recorded with the parts.

    Returns:
        Both parts as sources, with their examples and numbers of examples; its `write` writes the files.

    Raises:
        DataError: If there are too few examples to divide.
    """
    num = num_chosen = num_lowest = 0
    lowest = 1 << 64
    has_target = False
    for example in examples:
        num += 1
        has_target = has_target or example.target is not None
        digest = _digest(example)
        num_chosen += digest % ONE_IN == 0
        if digest < lowest:
            lowest, num_lowest = digest, 0
        num_lowest += digest == lowest
    is_held: _Rule
    if not has_target:
        num_dev = max(1, min(MOST, num // ONE_IN))
        is_held = lambda number, _: number >= num - num_dev  # noqa: E731 - next to two similar rules
    elif 0 < num_chosen < num:
        num_dev = min(MOST, num_chosen)
        is_held = lambda _, example: _digest(example) % ONE_IN == 0  # noqa: E731
    else:  # few examples
        num_dev = min(MOST, num_lowest)
        is_held = lambda _, example: _digest(example) == lowest  # noqa: E731
    if num_dev >= num:
        found = "1 example" if num == 1 else f"{num} examples with one source"
        raise DataError(
            f"the training files have {found}, expected at least two different examples, one of them "
            f"for validation. Add more examples (a useful model needs some hundreds), or validation "
            f"files: --dev dev.tsv"
        )
    return Divided(
        train=_part_file(folder / "train.jsonl", has_target=has_target),
        dev=_part_file(folder / "dev.jsonl", has_target=has_target),
        num_train=num - num_dev,
        num_dev=num_dev,
        train_examples=Part(examples, is_held, num_dev, is_dev=False),
        dev_examples=Part(examples, is_held, num_dev, is_dev=True),
        folder=folder,
        files=files,
    )


def _part_file(path: Path, *, has_target: bool) -> JsonLines:
    return json_lines(
        str(path),
        source="source",
        target="target" if has_target else None,
        features="features",
        alignment="alignment",
    )


def _line(example: Example) -> str:
    record = {
        "source": str(example.source),
        "target": example.target,
        "features": example.features,
        "alignment": example.alignment,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _digest(example: Example) -> int:
    """Hash the source of an example. For a pair of texts only the first text counts, so pairs with equal first texts
    stay together.
    """
    source = example.source
    group = source if isinstance(source, str) else source.group
    return int.from_bytes(hashlib.blake2b(group.encode(), digest_size=8).digest())
