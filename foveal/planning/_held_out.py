"""A validation set for a user who has none: some training examples, in a file of their own.

The text of the source decides which examples are held out, so that equal sources stay on one side and the
same file is always divided in the same way. Of running text, which has no targets, the last lines are held
out, so that the rest stays connected.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..data import Example, JsonLines, json_lines
from ..errors import DataError
from ..training.checkpoints._inputs import Input, Inputs
from ..training.checkpoints._whole import replacing

ONE_IN = 10
MOST = 1000  # examples held out: enough to choose by, and few enough to decode often

_Rule = Callable[[int, Example], bool]  # whether the example with this number is held out


@dataclass(frozen=True, kw_only=True)
class Divided:
    """The two parts of a corpus. Nothing is written before `write`."""

    train: JsonLines
    dev: JsonLines
    num_train: int
    num_dev: int
    examples: Iterable[Example]
    folder: Path
    is_held: _Rule

    def train_examples(self) -> "Part":
        """The training part, read from the original files."""
        return Part(self, is_dev=False)

    def dev_examples(self) -> "Part":
        """The validation part, read from the original files."""
        return Part(self, is_dev=True)

    def inputs(self) -> Inputs:
        """The fingerprints that the two files will have."""
        return {
            "train": [self._fingerprint(self.train, self.train_examples())],
            "dev": [self._fingerprint(self.dev, self.dev_examples())],
        }

    def write(self) -> None:
        """Write both parts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for source, part in ((self.train, self.train_examples()), (self.dev, self.dev_examples())):
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
    """One part of a divided corpus, which can be iterated over any number of times."""

    whole: Divided
    is_dev: bool

    def __iter__(self) -> Iterator[Example]:
        whole, num_held = self.whole, 0
        for number, example in enumerate(whole.examples):
            is_held = num_held < whole.num_dev and whole.is_held(number, example)
            num_held += is_held
            if is_held == self.is_dev:
                yield example


def hold_out(examples: Iterable[Example], folder: Path) -> Divided:
    """Divide examples into `train.jsonl` and `dev.jsonl` of a folder: one in ten is in the latter, at most
    1,000 and at least one. Nothing is written yet; the examples are read as a stream, more than once.

    Raises:
        DataError: if there are too few examples to divide.
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
        is_held = lambda number, _: number >= num - num_dev  # noqa: E731 - beside its two siblings
    elif 0 < num_chosen < num:
        num_dev = min(MOST, num_chosen)
        is_held = lambda _, example: _digest(example) % ONE_IN == 0  # noqa: E731
    else:  # a file of few examples
        num_dev = min(MOST, num_lowest)
        is_held = lambda _, example: _digest(example) == lowest  # noqa: E731
    if num_dev >= num:
        found = "1 example" if num == 1 else f"{num} examples with one source"
        raise DataError(
            f"the training files have {found}, expected at least two different ones, of which one is held "
            f"out for validation. Give more examples (a useful model needs some hundreds), or files for "
            f"validation: --dev dev.tsv"
        )
    return Divided(
        train=_part_file(folder / "train.jsonl", has_target=has_target),
        dev=_part_file(folder / "dev.jsonl", has_target=has_target),
        num_train=num - num_dev,
        num_dev=num_dev,
        examples=examples,
        folder=folder,
        is_held=is_held,
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
        "source": example.source,
        "target": example.target,
        "features": example.features,
        "alignment": example.alignment,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _digest(example: Example) -> int:
    """In a pair of texts the first one decides, so that all pairs with the same first text stay together."""
    first = example.source.partition("\t")[0]
    return int.from_bytes(hashlib.blake2b(first.encode(), digest_size=8).digest())
