"""Write the reference of the command line, docs/command_line.md, from the parsers of the commands.

    python scripts/command_line.py          write the page
    python scripts/command_line.py --check  exit with 1 if the page differs from the parsers

The reference is the text between two comments of the page. It is committed, because people also read the page without
the site.
"""

import argparse
import importlib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]
from foveal.cli._main import COMMANDS  # noqa: E402

PAGE = ROOT / "docs/command_line.md"
BETWEEN = re.compile(r"(<!-- begin: commands [^>]*-->\n).*?(<!-- end: commands -->)", re.DOTALL)
HINT = re.compile(r" ?\((?:default: (.+)|(required))\)$")
EXAMPLES = {
    "demo": ("foveal demo", "foveal demo --minutes 5 --explore"),
    "data": ("foveal data", "foveal data samples pronunciation --out samples"),
    "models": (
        "foveal models",
        "foveal models verify g2p-en",
        "foveal models add runs/english --name my-english",
        "foveal models add https://example.org/my-english.zip --sha256 CHECKSUM",
    ),
    "fit": (
        "foveal fit train.tsv --dev dev.tsv --test test.tsv --out runs/english",
        "foveal fit train.tsv --out runs/small --set encoder.hidden_size=64 --minutes 5",
    ),
    "prepare": ("foveal prepare 'corpus/*.tsv.zst' --out prepared",),
    "sweep": (
        "foveal sweep train.tsv --dev dev.tsv --trials 20 --budget 2h",
        "foveal sweep train.tsv --over training.learning_rate=1e-4..1e-2",
    ),
    "evaluate": (
        "foveal evaluate runs/english test.tsv",
        "foveal evaluate runs/english test.tsv --against runs/small",
    ),
    "predict": (
        "foveal predict runs/english words.txt",
        "foveal predict runs/english words.txt --nbest 5 --format jsonl",
        "foveal predict g2p-en Reykjavik",
    ),
    "lexicon": (
        "foveal lexicon runs/english words.txt --known known.txt --format sherpa",
        "foveal lexicon runs/english words.txt --check doubtful.tsv",
    ),
    "bulk": ("foveal bulk runs/english --in 'texts/*.txt.gz' --out answers",),
    "export": (
        "foveal export runs/english --out english.export",
        "foveal export runs/english --out small.export --int8",
    ),
    "serve": (
        "foveal serve runs/english --port 8000",
        "foveal serve en=runs/english de=runs/german --host 0.0.0.0 --tokens tokens.txt",
    ),
    "explore": ("foveal explore runs/english", "foveal explore runs/english runs/small"),
    "report": ("foveal report runs/english test.tsv --out report.html",),
    "explain": (
        "foveal explain runs/english knight",
        "foveal explain runs/english knight --json",
    ),
    "align": (
        "foveal align runs/de-en pairs.tsv --format pharaoh",
        "foveal align runs/de-en pairs.tsv --reverse runs/en-de --gold gold.txt",
    ),
    "doctor": ("foveal doctor runs/english", "foveal doctor runs/english dev.tsv --json"),
    "explain-config": (
        "foveal explain-config runs/english",
        "foveal explain-config runs/english --changed",
    ),
}


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    tyro = importlib.import_module("tyro")
    arguments = importlib.import_module("foveal.cli._arguments")
    module = importlib.import_module(f"foveal.cli._{name.replace('-', '_')}")
    with warnings.catch_warnings():
        # tyro announces to remove this function; constraints.txt pins a version that has it.
        warnings.simplefilter("ignore")
        return tyro.extras.get_parser(
            arguments.documented(module.command),
            prog=f"foveal {name}",
            config=arguments.CONFIGURATION,
        )


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments of a parser, without --help."""
    return [each for each in parser._actions if "--help" not in each.option_strings]


def written(action: argparse.Action) -> str:
    """Return an argument as a user types it."""
    value = f" {action.metavar}" if action.option_strings and action.metavar else ""
    return ", ".join(f"{name}{value}" for name in action.option_strings) or str(action.metavar)


def usage(parser: argparse.ArgumentParser) -> str:
    """Return the usage line: positional arguments, and the options that a command requires."""
    actions = actions_of(parser)
    required = [written(each) for each in actions if each.option_strings and each.required]
    positional = [str(each.metavar) for each in actions if not each.option_strings]
    return " ".join([parser.prog, *positional, *required, "[OPTIONS]"])


def row(action: argparse.Action) -> str:
    """Return one row of the table: the argument, its default and its meaning."""
    text = (action.help or "").strip().replace("%%", "%").replace("|", "\\|")
    hint = HINT.search(text)
    default = "" if hint is None else hint[2] or f"`{hint[1]}`"
    return f"| `{written(action)}` | {default} | {HINT.sub('', text)} |"


def section(name: str) -> Iterator[str]:
    """Yield the lines of the section of a command."""
    parser = parser_of(name)
    description = " ".join((parser.description or "").split())
    examples = [f"$ {each}" for each in EXAMPLES[name]]
    yield from (f"## foveal {name}", "", "```text", usage(parser), "```", "", description, "")
    yield from ("| argument | default | meaning |", "|---|---|---|")
    yield from map(row, actions_of(parser))
    yield from ("", "For example:", "", "```console", *examples, "```", "")


def reference() -> str:
    """Return the text between the comments of the page."""
    return "\n".join(["", *(line for name in COMMANDS for line in section(name)), ""])


def filled(page: str) -> str:
    """Return the text of the page with the current reference."""
    return BETWEEN.sub(lambda found: found[1] + reference() + found[2], page)


def main(arguments: Iterable[str]) -> int:
    """Write the page, or with --check only compare it."""
    page = PAGE.read_text(encoding="utf-8")
    current = filled(page)
    if "--check" not in arguments:
        PAGE.write_text(current, encoding="utf-8")
    elif page != current:
        print("docs/command_line.md differs from the parsers. Run python scripts/command_line.py.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
