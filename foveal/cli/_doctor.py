"""`foveal doctor`: diagnose a run, and name the flags that help."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from ..inspection import examine
from ..inspection.doctor._finding import Finding
from ..inspection.doctor._findings import findings_page
from ..planning._files import open_for
from ..shelf._finding import folder_for_pages
from ..specs._files import specs_in
from ._threads import use_threads

_STYLES = {"alarm": "red", "warning": "yellow", "note": "cyan"}
PAGE = "doctor.html"


def command(
    run: Positional[Path],
    files: Positional[tuple[str, ...]] = (),
    /,
    *,
    as_json: Annotated[bool, arg(name="json")] = False,
    with_specs: Path | None = None,
    threads: int | None = None,
) -> None:
    """Diagnose a run: gradients through time, gates, attention, padding, curves and outputs.

    The command prints its findings, and writes a page with figures into the folder of the run.

    Args:
        run: The folder of a run, finished or failed.
        files: Examples that the model was not trained on. Defaults to the validation files of the run.
        as_json: Print the findings as one JSON object, without figures.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
        threads: The number of threads that torch uses. Defaults to OMP_NUM_THREADS, or to one per core.
    """
    use_threads(threads)
    also = specs_in(with_specs)
    examples = list(open_for(run, files, also).source) if files else None
    findings = examine(run, examples, also=also)
    written = folder_for_pages(run) / PAGE
    text = findings_page(f"Diagnosis of {run.name}", findings)
    written.write_text(text, encoding="utf-8")
    if as_json:
        rows = [{**asdict(finding), "drawing": bool(finding.drawing)} for finding in findings]
        sys.stdout.write(json.dumps({"findings": rows}, ensure_ascii=False) + "\n")
        return
    _say(Console(highlight=False), findings, written)


def _say(console: Console, findings: Sequence[Finding], written: Path) -> None:
    if not findings:
        console.print("The doctor found no problem.")
    for finding in findings:
        head = f"{finding.severity}: {finding.name}"
        console.print(head, style=_STYLES[finding.severity], markup=False, soft_wrap=True)
        for line in (finding.text, f"Cause: {finding.cause}", f"Remedy: {finding.remedy}"):
            console.print(f"  {line}", markup=False, soft_wrap=True)
    console.print(f"Page with figures: {written}", markup=False, soft_wrap=True)
