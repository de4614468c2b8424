"""`foveal predict`: an answer for every line, as a table or as JSON lines.

    source <TAB> rank <TAB> output <TAB> score <TAB> confidence

The columns are the same for every --nbest; a model of pairs has two for its source. A model that reads features
takes them from the second column of the input; a model that reads pairs of texts, or questions about images, takes
the second text from there. A model that reads images takes their paths: images themselves, as arguments, or files
with one path on each line. Other columns are not read, so that you can pass a file with targets, too.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from ..data import Example, LineReader
from ..data._bytes import CHUNK
from ..errors import SpecError
from ..serving import Predictor
from ..serving._answer import answer_json
from ..tasks import Prediction, TaskSpec
from ..tasks._specs import PictureTaskSpec
from ._bars import answering_bar
from ._models import load_models
from ._speech import note
from ._threads import use_threads

# Lines: enough to fill batches of one length, few enough that answers begin to come soon.
_AT_ONCE = 4096
_COLUMNS = ("source", "rank", "output", "score", "confidence")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".mp4", ".mkv")


def command(
    bundle: Positional[Path],
    files: Positional[tuple[str, ...]] = (),
    /,
    *,
    nbest: int = 1,
    beam_size: int | None = None,
    output: Annotated[Literal["tsv", "jsonl"], arg(name="format")] = "tsv",
    attention: bool = False,
    header: bool = False,
    skip_header: bool = False,
    others: Annotated[tuple[Path, ...], arg(name="with")] = (),
    threads: int | None = None,
) -> None:
    """Answer for every line of files or, without any, of the standard input.

    Args:
        bundle: the folder of a model that `fit` made.
        files: texts, one on each line; plain, gzip or zstd. For a model that reads images: images.
        nbest: answers for each line, the best first.
        beam_size: candidates kept in search; 1 is greedy. By default as the model was fitted, or nbest.
        output: a table, or one JSON object for each line.
        attention: say where the model looked, for every symbol of the answer; with --format jsonl.
        header: begin the table with a line of column names.
        skip_header: do not answer the first line of each file, which names its columns.
        others: folders of more models, which answer together with the first as one.
        threads: threads that torch computes with; by default OMP_NUM_THREADS, or one for each core.
    """
    if attention and output == "tsv":
        raise SpecError("--attention: a table has no room for it. Add --format jsonl.")
    if header and output == "jsonl":
        raise SpecError("--header: JSON objects name their fields already. Leave it out.")
    use_threads(threads)
    predictor = Predictor(*load_models(bundle, others))
    settings = predictor.settings(nbest=nbest, beam_size=beam_size, attention=attention)
    is_asking = not files and sys.stdin.isatty()
    num_read = 2 if predictor.is_pair or predictor.has_features else 1
    lines = _lines_of(files, predictor.spec, num_read, skip_header=skip_header)
    examples = map(predictor.example, lines)
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


def _lines_of(
    files: Sequence[str], spec: TaskSpec, num_read: int, *, skip_header: bool
) -> Iterator[str]:
    """The lines of all files; an image stands for a line that names it."""
    if not files:
        # What has come so far, rather than whole chunks: a person may be typing.
        descriptor = sys.stdin.fileno()
        chunks = iter(lambda: os.read(descriptor, CHUNK), b"")
        reader = LineReader("standard input", chunks=chunks)
        yield from _lines_in(reader, num_read, skip_header=skip_header)
    for file in files:
        if isinstance(spec, PictureTaskSpec) and Path(file).suffix.lower() in _PICTURES:
            yield file
        else:
            yield from _lines_in(LineReader(file), num_read, skip_header=skip_header)


def _lines_in(reader: LineReader, num_read: int, *, skip_header: bool) -> Iterator[str]:
    """The lines of a file. A note says which columns are read, if the file has more."""
    for number, line in enumerate(reader):
        if number == 0 and (has := line.count("\t") + 1) > num_read:
            which = "column 1 is read" if num_read == 1 else "columns 1 and 2 are read"
            note(f"{reader.file} has {has} columns: {which}, and no other")
        if number or not skip_header:
            yield line


def _parts(examples: Iterator[Example], size: int) -> Iterator[list[Example]]:
    while some := list(islice(examples, size)):
        yield some


def _lines(
    example: Example, prediction: Prediction, nbest: int, output: Literal["tsv", "jsonl"]
) -> Iterator[str]:
    """The lines of the output for one line of the input."""
    if output == "jsonl":
        yield answer_json(example, prediction, nbest=nbest)
        return
    for rank, candidate in enumerate(prediction.nbest, start=1):
        figures = f"{candidate.score:.4f}", f"{candidate.probability:.4f}"
        yield "\t".join((example.source, str(rank), candidate.output, *figures))
