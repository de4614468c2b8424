"""Files as a user names them: one format for all, or two whose lines go together."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..data import Example, Opened, Parallel, PreparedCorpus, SourceSpec, open_source
from ..errors import SightlineError, SpecError
from ..training import load_plan

_PACKED = (".gz", ".zst")


def open_files(files: Sequence[str]) -> Opened:
    """The source that files are. Two files whose names differ in their endings alone (dev.ja and
    dev.en) have the source in the one and the target in the other.
    """
    if len(files) == 2:
        first, second = map(_unpacked, files)
        if first.stem == second.stem and first.suffix != second.suffix:
            return open_source(files[0], files[1])
    return open_source(tuple(files))


def open_like(other: SourceSpec, files: Sequence[str]) -> SourceSpec:
    """The source that files are, with the columns of another where it has the same format."""
    opened = open_files(files).source
    if isinstance(opened, Parallel) or type(opened) is not type(other):
        return opened
    return replace(other, paths=opened.paths)


def open_for(bundle: Path, files: Sequence[str]) -> Opened:
    """The source that files are, with the columns that the model was trained on, if that is known:
    ten lines do not tell labels from texts.
    """
    opened = open_files(files)
    try:
        train = load_plan(bundle).run.train
        source = open_like(train.like if isinstance(train, PreparedCorpus) else train, files)
    except SpecError:  # a bundle by itself, without its run
        return opened
    return opened if source == opened.source else Opened(source, "columns as in training")


def validation_examples(bundle: Path) -> list[Example]:
    """The examples that told the best weights of a run; none where they are not to be found again."""
    try:
        dev = load_plan(bundle).run.dev
        return [] if dev is None else [example for example in dev if example.target is not None]
    except (SightlineError, OSError):  # a bundle without its run, or a file moved or changed since
        return []


def _unpacked(file: str) -> Path:
    path = Path(file)
    return path.with_suffix("") if path.suffix in _PACKED else path
