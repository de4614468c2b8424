"""`foveal COMMAND ...`: finds the command, parses its arguments, and prints errors in one line.

Only the module of the requested command is imported: the overview and a typing error do not wait for torch.
"""

import difflib
import importlib
import platform
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata

from .. import __version__
from ..extras import require
from ._failures import told
from ._speech import LEVEL, Level, is_verbose

# The name of a command -> its description. Each has a module `_name` with a function `command`.
COMMANDS = {
    "demo": "train a small model from a sample, print predictions and write a report",
    "data": "list the public data sets and get them, or copy the samples",
    "fit": "train a model from files, or go on with one",
    "prepare": "write a large corpus as numbers, for fit to read",
    "sweep": "train with many settings, and keep the best model",
    "evaluate": "score a model on files with targets",
    "predict": "answer for every line of a file or of the standard input",
    "bulk": "answer many files into a folder, and only those that are missing",
    "serve": "answer over HTTP, with one model or several",
    "explore": "serve a page where one or two models are asked and looked into",
    "report": "write the page of a run: curves, scores, mistakes, what to mend",
    "explain": "write a page on how a model came to one answer",
    "align": "link the words of pairs of texts by attention, and score the links",
    "doctor": "say what is wrong with a run, why, and which flag helps",
    "explain-config": "list every setting of a run, where it came from and why",
}

_OPTIONS = """\
For every command:
  --quiet    print results and errors only
  --verbose  print versions, the time taken, and the traceback of an error
"""
_LEVELS = {"--quiet": Level.QUIET, "--verbose": Level.VERBOSE}
_HELP = ("-h", "--help")
_WRONG_USE = 2  # the exit status of shells and argparse for wrong usage
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; exits with status 0, or prints the error in one line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    level, words = _level(words)
    if not words or words[0] in (*_HELP, "help"):
        sys.stdout.write(overview())
        return
    if words[0] == "--version":
        sys.stdout.write(f"foveal {__version__}\n")
        return
    name = words[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        advice = f"Did you mean {near[0]}?" if near else "Commands: " + ", ".join(COMMANDS) + "."
        _end(f"foveal: there is no command {name!r}. {advice}", _WRONG_USE)
    before = LEVEL.set(level)
    try:
        with _described():
            _run(name, words[1:])
    except KeyboardInterrupt:
        _end(f"foveal {name}: interrupted", _INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output, for example `head`, has closed the pipe. Nothing more may be written to it,
        # not even by the interpreter when it closes its files.
        sys.stdout = None
        sys.exit(0)
    except Exception as error:
        text = told(error)
        if text is None:
            raise
        if is_verbose():
            traceback.print_exc()
        _end(f"foveal {name}: {text}", _WRONG_USE)
    finally:
        LEVEL.reset(before)


def _level(words: list[str]) -> tuple[Level, list[str]]:
    """Return the verbosity level, and the other arguments. All arguments after `--` belong to the command."""
    cut = words.index("--") if "--" in words else len(words)
    given = [_LEVELS[word] for word in words[:cut] if word in _LEVELS]
    rest = [word for word in words[:cut] if word not in _LEVELS] + words[cut:]
    return (given[-1] if given else Level.NORMAL), rest


def _run(name: str, words: Sequence[str]) -> None:
    require("toolkit", "tyro", "rich", needed_by="The command foveal")
    reader = importlib.import_module("tyro")
    module = importlib.import_module(f"._{name.replace('-', '_')}", __package__)
    try:
        reader.cli(module.command, prog=f"foveal {name}", args=words)
    except SystemExit:
        if any(word in _HELP for word in words):
            sys.stdout.write(f"\n{_OPTIONS}")
        raise


@contextmanager
def _described() -> Iterator[None]:
    """With --verbose, print versions before a command and its duration afterwards."""
    if not is_verbose():
        yield
        return
    others = ", ".join(f"{name} {_version(name)}" for name in ("torch", "foveal-native"))
    sys.stderr.write(
        f"foveal {__version__}, {others}; Python {platform.python_version()}, {platform.platform()}\n"
    )
    began = time.perf_counter()
    try:
        yield
    finally:
        sys.stderr.write(f"took {time.perf_counter() - began:.1f} s\n")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def overview() -> str:
    """List the commands, one on each line."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, about in COMMANDS.items()]
    return "\n".join(
        [
            "usage: foveal COMMAND ...",
            "       foveal --version",
            "",
            *lines,
            "",
            _OPTIONS,
            "foveal COMMAND --help says more.",
            "",
        ]
    )


def _end(text: str, status: int) -> None:
    sys.stderr.write(text + "\n")
    sys.exit(status)
