"""`foveal-run FOLDER`: answer every line of the standard input.

    source <TAB> rank <TAB> output <TAB> score <TAB> confidence

A model that reads features takes them from the second column.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice

from ._answers import Answer, Source
from ._errors import ExportedModelError
from ._model import load

_AT_ONCE = 1024  # lines: enough to fill batches, few enough that the first answers appear soon
_WRONG_USE = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="foveal-run",
        description="Answer every line of the standard input with an exported model, without torch.",
    )
    parser.add_argument("folder", help="the folder that foveal export wrote")
    parser.add_argument("--nbest", type=int, default=1, help="answers for each line, best first")
    parser.add_argument("--beam-size", type=int, help="1 is greedy search; default: of the model")
    parser.add_argument("--format", choices=("tsv", "jsonl"), default="tsv")
    parser.add_argument("--attention", action="store_true", help="with --format jsonl")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--self-test", action="store_true", help="compare with the answers stored at export"
    )
    given = parser.parse_args(arguments)
    try:
        model = load(given.folder, threads=given.threads)
        if given.self_test:
            sys.stdout.write(f"{given.folder}: {model.self_test()} answers are as expected\n")
            return
        lines = (line.rstrip("\r\n") for line in sys.stdin)
        while some := list(islice(lines, _AT_ONCE)):
            sources = [_source(line) for line in some]
            answers = model.predict(
                sources, nbest=given.nbest, beam_size=given.beam_size, attention=given.attention
            )
            for source, answer in zip(sources, answers, strict=True):
                for line in _lines(source, answer, given.format):
                    sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except ExportedModelError as error:
        sys.stderr.write(f"foveal-run: {error}\n")
        sys.exit(_WRONG_USE)
    except BrokenPipeError:
        # The reader of our output has closed the pipe; the interpreter may not write to it either.
        sys.stdout = None
        sys.exit(0)


def _source(line: str) -> Source:
    text, _, rest = line.partition("\t")
    return Source(text, rest.split("\t")[0])


def _lines(source: Source, answer: Answer, form: str) -> Iterator[str]:
    if form == "tsv":
        for rank, each in enumerate(answer.nbest, start=1):
            figures = f"{each.score:.4f}", f"{each.confidence:.4f}"
            yield "\t".join((source.text, str(rank), each.output, *figures))
        return
    data = {
        "source": source.text,
        "output": answer.output,
        "score": answer.score,
        "confidence": answer.confidence,
        "nbest": [each._asdict() for each in answer.nbest],
        "token_probabilities": answer.token_probabilities,
    }
    if answer.attention is not None:
        data["attention"] = vars(answer.attention)
    yield json.dumps(data, ensure_ascii=False)
