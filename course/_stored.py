"""The outputs of full runs, in results/course: pages show them, and a test finds outputs of outdated code."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ._chapter import Chapter
from ._running import Output, hash_of

RESULTS = Path(__file__).resolve().parents[1] / "results"
FOLDER, TIMES = RESULTS / "course", RESULTS / "course.json"


def file_of(chapter: Chapter) -> Path:
    """Return the file with the outputs of a chapter."""
    return FOLDER / f"{chapter.name}.json"


def store(chapter: Chapter, outputs: Sequence[Output]) -> None:
    """Write the outputs of all blocks, each with a hash of its code."""
    content = [
        {"code": hash_of(block), **asdict(output)}
        for block, output in zip(chapter.blocks, outputs, strict=True)
    ]
    FOLDER.mkdir(parents=True, exist_ok=True)
    file_of(chapter).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def stored(chapter: Chapter) -> list[Output] | None:
    """Return the stored outputs; None if there are none, or if they are outputs of other code."""
    path = file_of(chapter)
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    if [each["code"] for each in content] != [hash_of(block) for block in chapter.blocks]:
        return None
    return [Output(each["text"], each["svg"]) for each in content]
