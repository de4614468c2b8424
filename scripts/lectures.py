"""Write docs/lectures.md from docs/lectures.toml: each item of the lectures, and the place where the project covers it.

    python scripts/lectures.py          write the page
    python scripts/lectures.py --check  exit with 1 if the page is outdated or the table has an error

A target is a file (`recipes/babi.py`), a name in a Python file (`foveal/models/_seq2seq.py:Seq2Seq`, also
`Class.method`), a page or a heading of it (`docs/networks.md#decoders`), or a command (`foveal doctor`).
"""

import ast
import re
import sys
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT)]
from stored_files import Contents, write_or_check  # noqa: E402

from course._chapter import chapters as chapter_files  # noqa: E402
from foveal.cli._main import COMMANDS  # noqa: E402

DOCS = ROOT / "docs"
TABLE, PAGE = DOCS / "lectures.toml", DOCS / "lectures.md"
STATUSES = ("covered", "partial", "open", "nothing to build")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?)(?: +\{#([\w-]+)\})?$", re.MULTILINE)
# The page contains the words of all pages. Without this, a search would find it before them.
HEAD = """---
search:
  boost: 0.1
---

# The lectures, item by item

Foveal follows five lectures on recurrent networks and attention. This page lists every item of the lectures and the module,
page, command, recipe or result that covers it, with the chapter of the [course](course/index.md) that teaches it.

- *covered*: the code does it, and tests or results show it.
- *partial*: a part of it is missing.
- *open*: the project does not contain it.
- *nothing to build*: history, motivation or a list of references.

A slide that repeats an earlier item is counted again, so the counts are a rough guide. A test checks that every target
exists. The table is [lectures.toml](lectures.toml); `python scripts/lectures.py` makes this page from it.
"""


class Item(NamedTuple):
    """One item of a lecture."""

    place: str  # slide or section
    item: str
    status: str
    chapter: str = ""  # of the course, which teaches the item: 06
    targets: Sequence[str] = ()
    missing: str = ""  # what is not covered
    note: str = ""  # why there is nothing to build, or a limit of something covered


class Lecture(NamedTuple):
    """A lecture and its items, in the order of the slides."""

    name: str
    title: str
    by: str
    items: Sequence[Item]

    def count(self, status: str) -> int:
        """Return the number of items with this status."""
        return sum(item.status == status for item in self.items)


def read_table(text: str) -> list[Lecture]:
    """Read the lectures from TOML."""
    return [
        Lecture(each["name"], each["title"], each["by"], [Item(**item) for item in each["items"]])
        for each in tomllib.loads(text)["lectures"]
    ]


@cache
def headings(page: Path) -> dict[str, str]:
    """Return the headings of a page by their anchors."""
    found = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {anchor or slug(title): title for title, anchor in found}


def slug(title: str) -> str:
    """Return the anchor that the site gives to a heading."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


@cache
def names(file: Path) -> set[str]:
    """Return the names that a Python file defines: `name`, `Class` and `Class.name`."""
    return set(_defined(ast.parse(file.read_text(encoding="utf-8")).body))


def _defined(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.ClassDef():
                yield node.name
                yield from (f"{node.name}.{name}" for name in _defined(node.body))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                inside = chain.from_iterable(map(ast.walk, targets))
                yield from (each.id for each in inside if isinstance(each, ast.Name))
            case _:
                pass


def fault_of(target: str) -> str | None:
    """Return the reason why a target does not exist, or None if it does."""
    if target.startswith("foveal "):
        command = target.removeprefix("foveal ")
        return None if command in COMMANDS else f"foveal has no command {command!r}"
    path, _, inside = target.partition("#" if ".md" in target else ":")
    file = ROOT / path
    if not file.is_file():
        return f"there is no file {path}"
    if inside and file.suffix == ".md" and inside not in headings(file):
        return f"{path} has no heading with the anchor {inside}"
    if inside and file.suffix == ".py" and inside not in names(file):
        return f"{path} does not define {inside}"
    if inside and file.suffix not in (".md", ".py"):
        return f"only Python files and pages have names inside, got {target}"
    return None


@cache
def chapters() -> dict[str, str]:
    """Return the file names of the chapters of the course by their numbers."""
    return {path.name[:2]: path.name for path in chapter_files()}


def item_faults(item: Item) -> Iterator[str]:
    """Yield the errors of one row."""
    if item.status not in STATUSES:
        yield f"the status is one of {', '.join(STATUSES)}, got {item.status!r}"
    if item.status in ("covered", "partial") and not item.targets:
        yield "a covered or partial item needs a target"
    if item.status in ("partial", "open") and not item.missing:
        yield "a partial or open item needs the text `missing`"
    if item.status in ("covered", "nothing to build") and item.missing:
        yield "only a partial or open item has the text `missing`"
    if item.status == "nothing to build" and not item.note:
        yield "an item with nothing to build needs the reason as a `note`"
    if "|" in f"{item.place}{item.item}{item.missing}{item.note}":
        yield "a bar ends the cell of a table; write \\mid in a formula"
    if item.chapter not in chapters():
        yield f"the chapter of the course is one of {', '.join(chapters())}, got {item.chapter!r}"
    yield from filter(None, map(fault_of, item.targets))


def faults(lectures: Sequence[Lecture]) -> list[str]:
    """Return the errors of the table, each with its row."""
    return [
        f"{lecture.name}, {item.place}, {item.item}: {fault}"
        for lecture in lectures
        for item in lecture.items
        for fault in item_faults(item)
    ]


def page_of(lectures: Sequence[Lecture]) -> str:
    """Return the page as Markdown."""
    parts = [HEAD, _summary(lectures)]
    for lecture in lectures:
        rows = [
            [
                item.place,
                item.item,
                f"[{item.chapter}](course/{chapters()[item.chapter]})",
                item.status,
                _coverage(item).replace("\n", "<br>"),
            ]
            for item in lecture.items
        ]
        header = ("place", "item", "chapter", "status", "covered by; missing")
        parts += [f"\n## {lecture.name}\n", _table(header, rows)]
    return "\n".join(parts) + "\n"


def _summary(lectures: Sequence[Lecture]) -> str:
    rows = [
        [
            f"[{each.name}](#{slug(each.name)}), *{each.title}* ({each.by})",
            *(str(number) for number in (len(each.items), *map(each.count, STATUSES))),
        ]
        for each in lectures
    ]
    sums = [sum(int(row[column]) for row in rows) for column in range(1, len(STATUSES) + 2)]
    header = ("lecture", "items", *STATUSES)
    return _table(header, [*rows, ["all", *map(str, sums)]], num_texts=1)


def _table(
    header: Sequence[str], rows: Sequence[Sequence[str]], num_texts: int | None = None
) -> str:
    num_texts = len(header) if num_texts is None else num_texts
    rule = "|---" * num_texts + "|---:" * (len(header) - num_texts) + "|"
    lines = [f"| {' | '.join(row)} |" for row in (header, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]])


def _coverage(item: Item) -> str:
    targets = ", ".join(map(_shown, item.targets))
    missing = item.missing and f"*Missing:* {item.missing}"
    return "\n".join(filter(None, (targets, missing, item.note)))


def _shown(target: str) -> str:
    """A page as a link with the title of its section, everything else as code."""
    path, _, anchor = target.partition("#")
    if not path.endswith(".md"):
        return f"`{target}`"
    titles = headings(ROOT / path)
    title = titles[anchor] if anchor else next(iter(titles.values()))
    return f"[{title}]({target.removeprefix('docs/')})"


def contents() -> Contents:
    """The file that this script writes, and its content."""
    return {PAGE: lambda: page_of(read_table(TABLE.read_text(encoding="utf-8")))}


def main(arguments: Sequence[str]) -> int:
    """Print the errors of the table, or write or check the page."""
    found = faults(read_table(TABLE.read_text(encoding="utf-8")))
    if found:
        print(*found, sep="\n")
        return 1
    return write_or_check(contents(), arguments, script="lectures.py")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
