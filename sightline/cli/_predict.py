"""`sightline predict`: an answer for every line, as a table or as JSON lines.

    source <TAB> output <TAB> score <TAB> confidence                  one answer
    source <TAB> rank <TAB> output <TAB> score <TAB> confidence       --nbest 2 and more

A model that reads features takes them from the second column of the input, one that reads pairs of
texts, or questions about images, takes the second text from there. One that reads images is given their
paths: images themselves, as arguments, or files with one on each line. Other columns are left alone, so that a file with targets can
be given too.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from ..data import CHUNK, Example, LineReader
from ..serving import Predictor, answer_json
from ..tasks import PictureTaskSpec, Prediction, TaskSpec
from ._bars import answering_bar
from ._models import load_models
from ._threads import use_threads

# Lines: enough to fill batches of one length, few enough that answers begin to come soon.
_AT_ONCE = 4096
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".mp4", ".mkv")


def command(
    bundle: Positional[Path],
    files: Positional[tuple[str, ...]] = (),
    /,
    *,
    nbest: int = 1,
    width: int | None = None,
    output: Annotated[Literal["tsv", "jsonl"], arg(name="format")] = "tsv",
    attention: bool = False,
    others: Annotated[tuple[Path, ...], arg(name="with")] = (),
    threads: int | None = None,
) -> None:
    """Answer for every line of files or, without any, of the standard input.

    Args:
        bundle: the folder of a model that `fit` made.
        files: texts, one on each line; plain, gzip or zstd. For a model that reads images: images.
        nbest: answers for each line, the best first.
        width: candidates kept in search; 1 is greedy. By default as the model was fitted, or nbest.
        output: a table, or one JSON object for each line.
        attention: say where the model looked, for every symbol of the answer; with --format jsonl.
        others: folders of more models, which answer together with the first as one.
        threads: threads that torch computes with; by default OMP_NUM_THREADS, or one for each core.
    """
    use_threads(threads)
    predictor = Predictor(*load_models(bundle, others))
    settings = predictor.settings(
        nbest=nbest, width=width, attention=attention and output == "jsonl"
    )
    is_asking = not files and sys.stdin.isatty()
    examples = map(predictor.example, _lines_of(files, predictor.spec))
    with answering_bar(None, is_quiet=is_asking) as answered:
        for some in _parts(examples, 1 if is_asking else _AT_ONCE):
            for example, prediction in zip(some, predictor.predict(some, settings), strict=True):
                for line in _lines(example, prediction, nbest, output):
                    sys.stdout.write(line + "\n")
            sys.stdout.flush()
            answered(len(some))


def _lines_of(files: Sequence[str], spec: TaskSpec) -> Iterator[str]:
    """The lines of all files; an image stands for a line that names it."""
    if not files:
        # What has come so far, rather than whole chunks: a person may be typing.
        descriptor = sys.stdin.fileno()
        chunks = iter(lambda: os.read(descriptor, CHUNK), b"")
        yield from LineReader("standard input", chunks=chunks)
    for file in files:
        if isinstance(spec, PictureTaskSpec) and Path(file).suffix.lower() in _PICTURES:
            yield file
        else:
            yield from LineReader(file)


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
        number = () if nbest == 1 else (str(rank),)
        figures = f"{candidate.score:.4f}", f"{candidate.probability:.4f}"
        yield "\t".join((example.source, *number, candidate.output, *figures))
