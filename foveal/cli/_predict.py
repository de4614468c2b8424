"""`foveal predict`: an answer for every line, as a table or as JSON lines.

    source <TAB> rank <TAB> output <TAB> score <TAB> confidence

The columns are the same for every --nbest; a model of pairs has two source columns. A model that reads features
takes them from the second input column. A model that reads pairs of texts, or questions about images, takes the
second text from there. In a comma-separated file, and in a table whose first line names the columns that the model
was trained on, these columns are read. A model that reads images takes image files as arguments, or files with one
path on each line. JSON Lines, stories and lists of images in the format of the training files are read like the
training files. Other columns are ignored, so you can also pass a file with targets.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from ..data import Example, LineReader
from ..data.formats._tables import without_target
from ..errors import SpecError
from ..planning._files import open_records, open_table
from ..serving import Predictor
from ..serving._answer import answer_json
from ..serving._engines import Engine
from ..specs._files import specs_in
from ..tasks import Prediction, TaskSpec
from ._bars import answering_bar
from ._conllu import fill_files
from ._loading import load_predictor
from ._speech import explain_engine, note
from ._standard_input import standard_input
from ._threads import use_threads

# Lines: enough to fill batches of one length, few enough that the first answers appear soon.
_AT_ONCE = 4096
_LIKE_PATH = re.compile(r"[/\\*?\[]|\.\w+$")  # a path, a pattern or an extension
_COLUMNS = ("source", "rank", "output", "score", "confidence")
_PICTURES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".bmp",
    ".webp",
    ".mp4",
    ".mkv",
    ".wav",
    ".flac",
    ".ogg",
)


def command(
    bundle: Positional[Path],
    files: Positional[tuple[str, ...]] = (),
    /,
    *,
    nbest: int = 1,
    beam_size: int | None = None,
    no_repeat_ngram: int | None = None,
    output: Annotated[Literal["tsv", "jsonl", "conllu"], arg(name="format")] = "tsv",
    attention: bool = False,
    header: bool = False,
    skip_header: bool = False,
    others: Annotated[tuple[Path, ...], arg(name="with")] = (),
    with_specs: Path | None = None,
    threads: int | None = None,
    device: str = "auto",
    engine: Engine = "auto",
) -> None:
    """Predict an answer for every line of files or, without files, of the standard input, or for texts.

    Each output line contains the source, the rank, the output, its score and its confidence.

    Args:
        bundle: The folder of a model that `foveal fit` saved.
        files: Files with one text per line; plain, gzip or zstd. For a model that reads images: image files. A name
            that is no file, has no extension and no slash is itself the text to answer.
        nbest: The number of answers for each line, best first.
        beam_size: The beam size; 1 is greedy search. Defaults to the model's setting, or to nbest.
        no_repeat_ngram: The size of the n-grams that no answer may contain twice; 0 allows repetition. Defaults to
            the model's setting.
        output: Print a table, or one JSON object per line. For a parser also conllu, which reads CoNLL-U and
            writes it with heads and labels.
        attention: Print the attention for every token of the answer. Needs --format jsonl.
        header: Print a first line with the column names of the table.
        skip_header: Skip the first line of each file, which contains column names.
        others: Folders of more models, which form an ensemble with the first.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
        threads: The number of threads that torch uses. Defaults to OMP_NUM_THREADS, or to one per core.
        device: The device to compute on: auto, cpu, cuda, cuda:1 or mps. auto uses a GPU if there is one.
        engine: The software that computes: torch, or onnx for ONNX Runtime, which is faster for single inputs. auto
            uses onnx if it is installed, the model has an export, and both give the same answers to examples of the run.
    """
    if attention and output != "jsonl":
        raise SpecError(
            "--attention: only the format jsonl can contain attention. Add --format jsonl."
        )
    if header and output != "tsv":
        raise SpecError(
            "--header: only the format tsv has a line of column names. Remove the option."
        )
    use_threads(threads)
    also = specs_in(with_specs)
    predictor, chosen = load_predictor(bundle, others, also, device, engine)
    if output == "conllu":
        fill_files(predictor, files)
        return
    settings = predictor.settings(
        nbest=nbest, beam_size=beam_size, no_repeat_ngram=no_repeat_ngram, attention=attention
    )
    explain_engine(chosen)
    is_asking = not files and sys.stdin.isatty()
    examples = _examples_of(files, bundle, also, predictor, skip_header=skip_header)
    if header:
        source, *others_named = _COLUMNS
        named = (source, "second") if predictor.is_pair else (source,)
        sys.stdout.write("\t".join((*named, *others_named)) + "\n")
    with answering_bar(None, is_quiet=is_asking) as answered:
        for some in _parts(examples, 1 if is_asking else _AT_ONCE):
            for example, prediction in zip(some, predictor.predict(some, settings), strict=True):
                for line in _lines(example, prediction, nbest, output):
                    sys.stdout.write(line + "\n")
            sys.stdout.flush()
            answered(len(some))


def _examples_of(
    files: Sequence[str],
    bundle: Path,
    also: Sequence[type],
    predictor: Predictor,
    *,
    skip_header: bool,
) -> Iterator[Example]:
    """Yield the examples of all files. Comma-separated files, and tables that name the columns the model was
    trained on, are read by column name; records like the training files; other files by position, from the first
    column.
    """
    num_read = 2 if predictor.is_pair or predictor.has_features else 1
    for file in files or (None,):
        if file is not None and _is_text(file, predictor.spec):
            note(f"there is no file {file!r}, so this is the text")
            yield predictor.example(file)
            continue
        table = None if file is None else open_table(bundle, file, also)
        if file is not None and table is None and not _is_picture(file, predictor.spec):
            records = open_records(bundle, file, also)
            if records is not None:
                yield from records
                continue
        if table is None:
            lines = _lines_of(file, predictor.spec, num_read, skip_header=skip_header)
            yield from map(predictor.example, lines)
            continue
        table = without_target(table, second=predictor.is_pair, features=predictor.has_features)
        yield from replace(table, header=table.header or skip_header)


def _lines_of(
    file: str | None, spec: TaskSpec, num_read: int, *, skip_header: bool
) -> Iterator[str]:
    """Yield the lines of a file, or of the standard input; an image counts as a line with its path."""
    if file is None:
        yield from _lines_in(standard_input(), num_read, skip_header=skip_header)
    elif _is_picture(file, spec):
        yield file
    else:
        yield from _lines_in(LineReader(file), num_read, skip_header=skip_header)


def _is_text(file: str, spec: TaskSpec) -> bool:
    """Return whether an argument is a text: no file, and without the slash or the extension of a mistyped path."""
    if spec.inputs.picture or Path(file).exists():
        return False
    return not _LIKE_PATH.search(file)


def _is_picture(file: str, spec: TaskSpec) -> bool:
    return spec.inputs.picture and Path(file).suffix.lower() in _PICTURES


def _lines_in(reader: LineReader, num_read: int, *, skip_header: bool) -> Iterator[str]:
    """Yield the lines of a file. If the file has more columns than the model reads, print a note with the used ones."""
    for number, line in enumerate(reader):
        if number == 0 and (has := line.count("\t") + 1) > num_read:
            which = "column 1" if num_read == 1 else "columns 1 and 2"
            note(f"{reader.file} has {has} columns; the model reads only {which}")
        if number or not skip_header:
            yield line


def _parts(examples: Iterator[Example], size: int) -> Iterator[list[Example]]:
    while some := list(islice(examples, size)):
        yield some


def _lines(
    example: Example, prediction: Prediction, nbest: int, output: Literal["tsv", "jsonl"]
) -> Iterator[str]:
    """Return the output lines for one input line."""
    if output == "jsonl":
        yield answer_json(example, prediction, nbest=nbest)
        return
    source = " ".join(str(example.source).splitlines())  # a document stays on one line of the table
    for rank, candidate in enumerate(prediction.nbest, start=1):
        figures = f"{candidate.score:.4f}", f"{candidate.probability:.4f}"
        yield "\t".join((source, str(rank), candidate.output, *figures))
