"""Open files named by a user: one file format for all, or two parallel files."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ..data import AbstractSourceSpec, Example, Parallel, SourceSpec, TabSeparated, open_source
from ..data._example import evenly_spaced
from ..data.formats._babi import Babi
from ..data.formats._conllu import ConllU
from ..data.formats._dialogs import Dialogs
from ..data.formats._formats import JsonLines
from ..data.formats._image_lists import ImageList
from ..data.formats._opening import Opened
from ..data.formats._tables import AbstractTable, in_files
from ..data.formats._treebank import Treebank
from ..data.streams._prepared import PreparedCorpus
from ..errors import FovealError, SpecError
from ..training._outputs import sample_sources
from ._choices import load_plan
from ._held_out import DATA, divided_files

_PACKED = (".gz", ".zst")
_NUM_TRIALS = 32
_MOST_READ = 1000  # validation examples to select trials from: enough for variety, and read at once


def open_files(files: Sequence[str]) -> Opened:
    """Open files as a source. If two file names differ only in their extensions (dev.ja and dev.en), the first file
    has the sources and the second the targets.
    """
    if len(files) == 2:
        first, second = map(_unpacked, files)
        if first.stem == second.stem and first.suffix != second.suffix:
            return open_source(files[0], files[1])
    return open_source(tuple(files))


def open_like(other: SourceSpec, files: Sequence[str]) -> SourceSpec:
    """Open files as a source, with the columns of another source if it has the same format."""
    source = open_files(files).source
    if isinstance(source, Parallel):
        return source
    if isinstance(source, AbstractTable) and isinstance(other, type(source)):
        return in_files(other, source)
    # A file of words and tags without empty lines looks like a table of two columns.
    is_tagged = isinstance(source, TabSeparated) and isinstance(other, ConllU)
    # CoNLL-U is opened for its tags, unless the training files were opened for their trees.
    is_treebank = isinstance(source, ConllU) and isinstance(other, Treebank)
    is_alike = is_tagged or is_treebank or source.kind == other.kind
    assert not isinstance(source, AbstractSourceSpec)  # files have one of the built-in formats
    return replace(other, paths=source.paths) if is_alike else source


def open_same(train: SourceSpec, files: Sequence[str], role: str) -> SourceSpec:
    """Open files as a source, in the format and with the columns of the training files.

    Args:
        train: The training files.
        files: The validation or test files.
        role: The option that names them, dev or test.

    Returns:
        The source.

    Raises:
        SpecError: If the files have another format.
    """
    source = open_like(train, files)
    if source.kind != train.kind:
        raise SpecError(
            f"--{role} {' '.join(files)}: expected the format of the training files ({train.kind}), "
            f"got {open_files(files).reason} ({source.kind}). Convert the files to one format."
        )
    return source


def open_for(bundle: Path, files: Sequence[str], also: Sequence[type] = ()) -> Opened:
    """Open files as a source, with the columns that the model was trained on if they are known. Ten lines are too few
    to distinguish labels from texts.
    """
    opened = open_files(files)
    try:
        source = open_like(_trained_on(bundle, also), files)
    except SpecError:  # a bundle without its run
        return opened
    return opened if source == opened.source else Opened(source, "columns as in training")


def open_table(bundle: Path, file: str, also: Sequence[type] = ()) -> AbstractTable | None:
    """Open a file of inputs as a table: a comma-separated file, or a tab-separated file if the training files have
    named columns. Return None for other files.
    """
    suffix = _unpacked(file).suffix.lower()
    if suffix not in (".csv", ".tsv") or (
        suffix == ".tsv" and not _are_columns_named(bundle, also)
    ):
        return None
    source = open_for(bundle, (file,), also).source
    if isinstance(source, AbstractTable) and (suffix == ".csv" or source.is_named):
        return source
    return None


def open_records(
    bundle: Path, file: str, also: Sequence[type] = ()
) -> JsonLines | Dialogs | Babi | ImageList | None:
    """Open a file of inputs whose lines are not the inputs themselves, if the training files have the same format:
    JSON Lines, dialogs, stories, or a list of images with a column for the target. Return None for other files.
    """
    try:
        train = _trained_on(bundle, also)
    except SpecError:  # a bundle without its run
        return None
    if not isinstance(train, JsonLines | Dialogs | Babi | ImageList):
        return None
    source = open_files((file,)).source
    if isinstance(source, JsonLines) and isinstance(train, JsonLines):
        return replace(train, paths=source.paths, target=None, alignment=None)
    if isinstance(source, Dialogs) and isinstance(train, Dialogs):
        return replace(train, paths=source.paths, has_target=False)
    if isinstance(source, ImageList) and isinstance(train, ImageList):
        has_target = (source.target, source.second) == (train.target, train.second)
        return source if has_target else None
    return source if isinstance(source, Babi) and isinstance(train, Babi) else None


def _are_columns_named(bundle: Path, also: Sequence[type]) -> bool:
    try:
        train = _trained_on(bundle, also)
    except SpecError:  # a bundle without its run
        return False
    return isinstance(train, AbstractTable) and train.is_named


def _trained_on(bundle: Path, also: Sequence[type]) -> SourceSpec:
    """Return the files that a run was given, also if some of their examples were held out."""
    train = load_plan(bundle, also=also).run.train
    if isinstance(train, PreparedCorpus):
        return train.like
    return divided_files(bundle / DATA) or train


def own_examples(bundle: Path, also: Sequence[type] = ()) -> Opened:
    """Open the test file of a run or, if it has none, its validation file."""
    run = load_plan(bundle, also=also).run
    for name, source in (("test", run.test), ("dev", run.dev)):
        if source is not None:
            return Opened(source, f"the {name} file of the run, because no file was given")
    raise SpecError(
        f"{bundle}: the run has neither a test nor a validation file. Give a file to score on."
    )


def validation_examples(
    bundle: Path, also: Sequence[type] = (), *, most: int | None = None
) -> list[Example]:
    """Return the examples that selected the best weights of a run, at most the first `most`; none if they cannot be
    found.
    """
    try:
        dev = load_plan(bundle, also=also).run.dev
        named = (example for example in dev or () if example.target is not None)
        return list(islice(named, most))
    except (FovealError, OSError):  # a bundle without its run, or a file that was moved or changed
        return []


def trial_examples(bundle: Path, also: Sequence[type] = ()) -> list[Example]:
    """Return a few examples to test a model on: validation examples of its run or, if they cannot be found, sources that
    the run has saved as samples; none for a bundle without its run.
    """
    found = evenly_spaced(validation_examples(bundle, also, most=_MOST_READ), _NUM_TRIALS)
    return found or [Example(source) for source in sample_sources(bundle, _NUM_TRIALS)]


def _unpacked(file: str) -> Path:
    path = Path(file)
    return path.with_suffix("") if path.suffix in _PACKED else path
