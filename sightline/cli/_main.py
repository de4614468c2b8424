"""`sightline COMMAND ...`: finds the command, reads its arguments, and says errors in one line.

Only the file of the command that was asked for is imported, so that an overview or a typing error
does not wait for torch.
"""

import difflib
import importlib
import sys
from collections.abc import Sequence

from ..errors import SightlineError

# The name of a command -> what it does. Each has a module `_name` with a function `command`.
COMMANDS = {
    "fit": "train a model from files, or go on with one",
    "prepare": "write a large corpus as numbers, for fit to read",
    "sweep": "train with many settings, and keep the best model",
    "evaluate": "score a model on files with targets",
    "predict": "answer for every line of a file or of the standard input",
    "bulk": "answer many files into a folder, and only those that are missing",
    "serve": "answer over HTTP, with one model or several",
    "explore": "serve a page where one or two models are asked and looked into",
    "bench-serve": "ask a server of this machine all it can answer, and time it",
    "report": "write the page of a run: curves, scores, mistakes, what to mend",
    "explain": "write a page on how a model came to one answer",
    "align": "link the words of pairs of texts by attention, and score the links",
    "doctor": "say what is wrong with a run, why, and which flag helps",
    "explain-config": "list every setting of a run, where it came from and why",
}

_WRONG_USE = 2  # the exit status that shells and argparse have for it
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; exits with status 0, or says in one line what is wrong."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview())
        return
    name = words[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        advice = f"Did you mean {near[0]}?" if near else "Commands: " + ", ".join(COMMANDS) + "."
        _end(f"sightline: there is no command {name!r}. {advice}", _WRONG_USE)
    reader = importlib.import_module("tyro")
    try:
        module = importlib.import_module(f"._{name.replace('-', '_')}", __package__)
        reader.cli(module.command, prog=f"sightline {name}", args=words[1:])
    except SightlineError as error:
        _end(f"sightline {name}: {error}", _WRONG_USE)
    except KeyboardInterrupt:
        _end(f"sightline {name}: interrupted", _INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output, `head` say, has had enough. Nothing more may be written to it,
        # not even by the interpreter when it closes its files.
        sys.stdout = None
        sys.exit(0)


def overview() -> str:
    """The commands, one on each line."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, about in COMMANDS.items()]
    return "\n".join(
        ["usage: sightline COMMAND ...", "", *lines, "", "sightline COMMAND --help says more.", ""]
    )


def _end(text: str, status: int) -> None:
    sys.stderr.write(text + "\n")
    sys.exit(status)
