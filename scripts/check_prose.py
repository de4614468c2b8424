"""Check the English of docs, docstrings, comments and printed texts: count habits that make sentences hard to read.

    python scripts/check_prose.py                       all groups, with the limit of each; exit 1 if one is over
    python scripts/check_prose.py docs/data.md          the marked sentences of some files
    python scripts/check_prose.py --sample 100 --seed 1  random sentences of all groups, to read one by one

A marked sentence is a hint, not an error: some are good English, so each group has a limit and not zero. A text
without marks can still be bad; read the sentence, then say it as you would to a colleague.
"""

import argparse
import ast
import io
import random
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# A pattern, and the words to try instead.
HABITS = {
    r"\b(?:of|by|from|for|with|in|to|at|on|than|and|between|as|is|has|shows?|gives?|finds?|knows?|makes?|reads?|takes?)"
    r" what\b(?![^.]*\?)": "name the thing: 'the file that ...', 'the answer of ...'",
    r"^what\b(?![^.]*\?)": "begin with the thing or with a verb",
    r"\bbeside\b": "next to, in addition to",
    r"\b(?:stands?|stood)\b(?! for)": "is, has, contains",
    r"\b(?:go|goes|went|going|gone) on\b": "continue, resume",
    r"\bof (?:its|their|your|one's) own\b": "its own ..., custom, separate",
    r"\bby (?:itself|themselves)\b": "alone, separately",
    r"\b(?:anew|hardly|nothing but|all but|but for)\b": "again, rarely, only, almost all, except",
    r"\b(?:that|those) (?:of|which|with|who)\b": "repeat the noun",
    r"\b(?:whatever|whoever|wherever|however (?:many|large|much))\b": "any, every, regardless of",
    r"\b(?:to be had|asked for|what came)\b": "available, requested",
    r"\blearnt\b|\bby heart\b": "learned, memorized",
    r"\b(?:says|said|tells?|told)\b": "a file has, shows or contains; a person says",
    r"\bso that\b": "to, so, because",
    r"\bas (?:many|much|often|far|wide|large) as\b|\bthe (?:more|longer)\b": "the same number of, up to",
}
OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)  # they have docstrings
MIN_WORDS = 5  # a shorter sentence is a label


class Group(NamedTuple):
    """Files with one limit, in percent of their sentences; `printed` checks string literals instead of docstrings."""

    paths: tuple[str, ...]
    limit: float
    printed: bool = False


GROUPS = {
    "first pages": Group(("README.md", "docs/index.md", "docs/first_model.md"), 5.0),
    "chapters of the course": Group(("course",), 5.0),
    "pages": Group(("README.md", "CONTRIBUTING.md", "docs"), 8.0),
    "docstrings and comments": Group(("foveal",), 10.0),
    "docstrings and help of the command line": Group(("foveal/cli",), 5.0),
    "texts that the command line prints": Group(("foveal",), 5.0, printed=True),
}


class Sentence(NamedTuple):
    """A sentence, its file, and the advice for each habit that it has."""

    file: Path
    text: str
    advice: tuple[str, ...]


def prose_of(file: Path, *, printed: bool = False) -> str:
    """Return the prose of a Markdown or Python file, without code, tables and headings.

    Args:
        file: A file that ends in .md or .py.
        printed: Return the string literals of a Python file, such as error messages, instead of its docstrings and
            comments.
    """
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        text = _literals(text) if printed else _docstrings(text)
    else:
        text = _markdown(text)
    return re.sub(r"`[^`]*`", "CODE", text).replace("*", "")


def _markdown(text: str) -> str:
    text = re.sub(r"```.*?```|<!--.*?-->", "\n\n", text, flags=re.S)
    kept = []
    for line in text.split("\n"):
        is_code = re.match(r"    |\t", line) and not re.match(r"\s+[-*\d]", line)
        kept.append("" if is_code or re.match(r"\s*([|#:>]|!\[)", line) else line)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(kept))


def _literals(text: str) -> str:
    """The string literals that are not docstrings, each as a paragraph; VALUE is an expression of an f-string."""
    tree = ast.parse(text)
    inside = set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, OWNERS) and ast.get_docstring(node, clean=False) is not None:
            inside.update(ast.walk(node.body[0]))
        elif isinstance(node, ast.JoinedStr) and node not in inside:
            inside.update(part for part in ast.walk(node) if part is not node)
    parts = list[str]()
    for node in ast.walk(tree):
        if node in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            parts.append("".join(map(_constant, node.values)))
        elif isinstance(node, ast.Constant):
            parts.append(_constant(node))
    return "\n\n".join(parts)


def _constant(node: ast.AST) -> str:
    if not isinstance(node, ast.Constant):
        return "VALUE"
    return node.value if isinstance(node.value, str) else ""


def _docstrings(text: str) -> str:
    """The docstrings and comments, each as a paragraph; indented lines are code or descriptions of arguments."""
    parts = [
        "\n".join(line for line in found.split("\n") if not line.startswith((">>>", "    ")))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, OWNERS) and (found := ast.get_docstring(node))
    ]
    comment = list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comment.append(token.string.lstrip("# "))
        elif token.type not in (tokenize.NL, tokenize.INDENT) and comment:
            parts.append(" ".join(comment))
            comment = []
    return "\n\n".join(parts)


def sentences(file: Path, *, printed: bool = False) -> Iterator[Sentence]:
    """Yield the sentences of a file."""
    prose = prose_of(file, printed=printed)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*] )|\n(?=\s*\d+\. )", prose):
        joined = re.sub(r"^[-*>] *", "", " ".join(paragraph.split()))
        for text in re.split(r"(?<=[.?!])\s+(?=[A-Z\"(])", joined):
            if len(text.split()) >= MIN_WORDS:
                found = (advice for habit, advice in HABITS.items() if re.search(habit, text, re.I))
                yield Sentence(file, text, tuple(found))


def files_of(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the Markdown and Python files of files and folders, each once."""
    for path in (ROOT / name for name in paths):
        if path.is_file():
            yield path
        else:
            yield from sorted(file for file in path.rglob("*") if file.suffix in (".md", ".py"))


def check() -> bool:
    """Print the fraction of marked sentences of each group; return whether all are within their limits."""
    is_fine = True
    for name, group in GROUPS.items():
        found = [
            one for file in files_of(group.paths) for one in sentences(file, printed=group.printed)
        ]
        share = 100 * sum(bool(one.advice) for one in found) / max(1, len(found))
        over = "" if share <= group.limit else "  TOO MANY"
        is_fine = is_fine and not over
        print(f"{name}: {share:.1f} % of {len(found)} sentences, at most {group.limit:.0f} %{over}")
    return is_fine


def main() -> None:
    """Check all groups, or print the sentences of some files, or a sample."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", help="print the marked sentences of these files")
    parser.add_argument(
        "--sample", type=int, default=0, help="print random sentences of all groups"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--printed", action="store_true", help="print sentences of messages instead of docstrings"
    )
    given = parser.parse_args()
    if given.sample:
        everything = dict.fromkeys(
            file for group in GROUPS.values() for file in files_of(group.paths)
        )
        found = [one for file in everything for one in sentences(file)]
        for one in random.Random(given.seed).sample(found, given.sample):
            print(f"{one.file.relative_to(ROOT)}: {one.text}")
    elif given.paths:
        files = files_of(given.paths)
        for one in (one for file in files for one in sentences(file, printed=given.printed)):
            if one.advice:
                print(f"{one.file.relative_to(ROOT)}: {one.text}\n    {'; '.join(one.advice)}")
    elif not check():
        sys.exit(1)


if __name__ == "__main__":
    main()
