"""Run the chapters of the course and write their notebooks.

python -m course run               all chapters at full size; writes results/course and results/course.json
python -m course run 06 11         some chapters
python -m course run --reduced     a quick check, which writes nothing
python -m course notebooks         writes course/notebooks
"""

import argparse
import os
import subprocess
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models are fastest on one thread

from benchmarks.results import Results, Row

from ._chapter import Chapter, chapters, read_chapter
from ._notebooks import NOTEBOOKS, notebook
from ._running import run, timed_run
from ._stored import TIMES, store

MADE_BY = "python -m course run"
MOST_SECONDS = 300.0


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run chapters")
    running.add_argument("numbers", nargs="*", help="chapters, such as 06; by default all")
    running.add_argument(
        "--reduced", action="store_true", help="use the reduced values and write nothing"
    )
    commands.add_parser("notebooks", help="write the notebooks")
    given = parser.parse_args()
    if given.command == "notebooks":
        write_notebooks()
        return
    chosen = [path for path in chapters() if not given.numbers or path.name[:2] in given.numbers]
    if not chosen:
        names = ", ".join(path.name[:2] for path in chapters())
        raise SystemExit(f"course: expected chapters among {names}, got {' '.join(given.numbers)}.")
    if len(chosen) == 1:
        run_one(read_chapter(chosen[0]), reduced=given.reduced)
        return
    options = ["--reduced"] if given.reduced else []
    for path in chosen:  # each in its own process, as its reader does
        subprocess.run([sys.executable, "-m", "course", "run", path.name[:2], *options], check=True)


def run_one(chapter: Chapter, *, reduced: bool) -> None:
    """Run a chapter, print how long it took, and store the outputs of a full run."""
    print(f"{chapter.title} ...", flush=True)
    if reduced:
        run(chapter, reduced=True, check_starts=True)
        return
    outputs, seconds = timed_run(chapter)
    store(chapter, outputs)
    row = Row(
        name=f"{chapter.name[:2]}: {chapter.title.partition('. ')[2] or chapter.title}",
        value=round(seconds, 1),
        unit="s",
        target=MOST_SECONDS,
        sense="<=",
    )
    results = Results.here(MADE_BY).continued_from(TIMES, any_machine=True)
    kept = [each for each in results.rows if not each.name.startswith(row.name[:3])]
    rows = sorted([*kept, row], key=lambda each: each.name)
    Results.here(MADE_BY).with_rows(rows).save(TIMES)
    print(f"{seconds:.0f} s")


def write_notebooks() -> None:
    """Write all notebooks, and remove those of chapters that no longer exist."""
    NOTEBOOKS.mkdir(exist_ok=True)
    names = set[str]()
    for path in chapters():
        (NOTEBOOKS / f"{path.stem}.ipynb").write_text(
            notebook(read_chapter(path)), encoding="utf-8"
        )
        names.add(path.stem)
    for path in NOTEBOOKS.glob("*.ipynb"):
        if path.stem not in names:
            path.unlink()


if __name__ == "__main__":
    main()
