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
    "models": "list, verify and add pretrained models, which commands accept by name",
    "fit": "train a model from files, or resume an interrupted run",
    "prepare": "tokenize a large corpus once, for fast training",
    "sweep": "train with many settings, and keep the best model",
    "evaluate": "score a model on files with targets",
    "predict": "predict an answer for every line of a file or of the standard input",
    "lexicon": "write a pronunciation lexicon for a speech engine",
    "bulk": "predict many files into a folder; a restart computes only the missing ones",
    "export": "export a model to a folder that runs without torch",
    "serve": "serve one or more models over HTTP",
    "explore": "query and inspect one or two models in the browser",
    "report": "write the report of a run: curves, scores, mistakes, findings",
    "explain": "write a page that explains one prediction",
    "align": "align the words of text pairs by attention, and score the links",
    "doctor": "diagnose a run: problems, causes and remedies",
    "explain-config": "list every setting of a run with its origin and reason",
}

_OPTIONS = """\
Options of every command:
  --quiet    print only results and errors
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
        _end(f"foveal: unknown command {name!r}. {advice}", _WRONG_USE)
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
    arguments = importlib.import_module("._arguments", __package__)
    module = importlib.import_module(f"._{name.replace('-', '_')}", __package__)
    try:
        reader.cli(
            arguments.documented(module.command),
            prog=f"foveal {name}",
            args=words,
            config=arguments.CONFIGURATION,
        )
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
            "foveal COMMAND --help prints the arguments of a command.",
            "",
        ]
    )


def _end(text: str, status: int) -> None:
    sys.stderr.write(text + "\n")
    sys.exit(status)
