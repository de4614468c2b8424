"""`foveal report`: write the report of a run."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tyro.conf import Positional

from ..data import Example
from ..inspection import report
from ..planning._files import open_files
from ..shelf._finding import folder_for_pages
from ..specs._files import specs_in
from ._bars import answering_bar
from ._threads import use_threads

PAGE = "report.html"  # in the folder of the run


def command(
    run: Positional[Path],
    files: Positional[tuple[str, ...]] = (),
    /,
    *,
    out: Path | None = None,
    with_specs: Path | None = None,
    threads: int | None = None,
) -> None:
    """Write the report of a run as a page.

    The report contains curves, scores, error analysis, calibration, faithfulness of attention, the findings of
    `foveal doctor`, and the settings with their reasons.

    Args:
        run: The folder of a run.
        files: Test files with targets. Defaults to the test or validation files of the run, if they still exist.
        out: The page to write. Defaults to report.html in the folder of the run, or in the current folder for a
            model of a shelf.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
        threads: The number of threads that torch uses. Defaults to OMP_NUM_THREADS, or to one per core.
    """
    use_threads(threads)
    examples = list(open_files(files).source) if files else None
    path = write_report(run, examples, out, also=specs_in(with_specs))
    sys.stdout.write(f"{path}\n")


def write_report(
    run: Path,
    examples: list[Example] | None = None,
    out: Path | None = None,
    *,
    is_quiet: bool = False,
    also: Sequence[type] = (),
) -> Path:
    """Write the page, with a progress bar on a terminal."""
    with answering_bar(None, is_quiet=is_quiet) as answered:
        text = report(run, examples, answered=answered, also=also)
    path = folder_for_pages(run) / PAGE if out is None else out
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
