"""The page on the lectures is generated from its table, and every target of the table exists."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
TABLE = (ROOT / "docs/lectures.toml").read_text(encoding="utf-8")
WRONG_TARGETS = {
    "foveal/models/_nothing.py:Seq2Seq": "there is no file foveal/models/_nothing.py",
    "foveal/models/_seq2seq.py:Seq3Seq": "_seq2seq.py does not define Seq3Seq",
    "foveal/models/_seq2seq.py:Seq2Seq.fly": "_seq2seq.py does not define Seq2Seq.fly",
    "docs/nothing.md": "there is no file docs/nothing.md",
    "docs/networks.md#encoder": "no heading with the anchor encoder",
    "docs/data.md#dev-1-of-2-examples-are-in-train-too": "no heading",  # a comment in a code block
    "results/nothing.json": "there is no file results/nothing.json",
    "results/babi.json:rows": "only Python files and pages have names inside",
    "foveal dance": "foveal has no command 'dance'",
}
WRONG_ITEMS = {
    "a covered or partial item needs a target": {"status": "covered"},
    "a partial or open item needs the text `missing`": {"status": "open"},
    "only a partial or open item has the text": {
        "status": "nothing to build",
        "missing": "All.",
        "note": "History.",
    },
    "needs the reason as a `note`": {"status": "nothing to build"},
    "the status is one of covered, partial": {"status": "done"},
    "the chapter of the course is one of 00, 01": {
        "status": "covered",
        "targets": ["docs/networks.md"],
        "chapter": "99",
    },
    "a bar ends the cell of a table": {"status": "open", "missing": "p(a|b)"},
}


@pytest.fixture(scope="module")  # caches the names and headings of files
def lectures() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        yield import_module("lectures")
    for name in ("lectures", "stored_files"):
        sys.modules.pop(name, None)


def test_the_table_has_no_faults(lectures: ModuleType) -> None:
    found = lectures.read_table(TABLE)
    assert [len(lecture.items) for lecture in found] == [58, 17, 56, 58, 47]
    assert lectures.faults(found) == []


def test_the_page_is_that_of_the_table(lectures: ModuleType) -> None:
    assert import_module("stored_files").outdated(lectures.contents()) == []


def test_another_status_makes_the_page_outdated(lectures: ModuleType) -> None:
    page = lectures.page_of(lectures.read_table(TABLE))
    changed = TABLE.replace('status = "partial"', 'status = "open"', 1)
    assert lectures.page_of(lectures.read_table(changed)) != page


def test_the_counts_of_the_page_are_those_of_its_rows(lectures: ModuleType) -> None:
    lines = lectures.page_of(lectures.read_table(TABLE)).splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("|")]
    (total,) = (row for row in cells if row[1] == "all")
    header = next(row for row in cells if row[1] == "place")
    in_rows = [row[header.index("status")] for row in cells if len(row) == len(header)]
    assert [int(number) for number in total[3:-1]] == list(map(in_rows.count, lectures.STATUSES))


@pytest.mark.parametrize(("target", "fault"), WRONG_TARGETS.items())
def test_a_target_that_does_not_exist_is_found(
    target: str, fault: str, lectures: ModuleType
) -> None:
    right = 'targets = ["docs/attention/softmax.md", '
    assert right in TABLE
    planted = TABLE.replace(right, f'targets = ["{target}", ', 1)
    (found,) = lectures.faults(lectures.read_table(planted))
    assert fault in found


@pytest.mark.parametrize(
    "target",
    [
        "recipes/clips.py:caption_none",  # one of several assigned names
        "foveal/networks/recurrent/_cells.py:AbstractCell.run",
        "docs/tasks.md#tagging",  # an anchor generated from a heading
        "docs/doctor.md#how-gradients-are-measured",
        "foveal explain-config",
    ],
)
def test_a_target_that_exists_is_no_fault(target: str, lectures: ModuleType) -> None:
    assert lectures.fault_of(target) is None


@pytest.mark.parametrize(("fault", "fields"), WRONG_ITEMS.items())
def test_an_item_says_what_is_missing(
    fault: str, fields: dict[str, Any], lectures: ModuleType
) -> None:
    item = lectures.Item(**{"place": "1", "item": "Attention", "chapter": "06", **fields})
    (found,) = lectures.item_faults(item)
    assert fault in found
