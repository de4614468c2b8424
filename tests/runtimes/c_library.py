"""The C library under test: built by its Makefile, and asked through its command and in WebAssembly."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from foveal.runtime import Source

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "runtimes/c"
SECONDS = 280
_ASKED = """
import {readFileSync} from "node:fs";
const [library, wasm, model] = process.argv.slice(1);
const {load} = await import(library);
const loaded = await load(readFileSync(wasm), readFileSync(model));
const options = JSON.parse(readFileSync(0, "utf8"));
const answers = options.map(([text, given]) => ({attention: null, ...loaded.predict(text, given)}));
console.log(JSON.stringify({selfTest: loaded.selfTest(), answers}));
"""


def build(target: str, folder: Path, *needed: str) -> Path:
    """Build a target of the Makefile in a folder; skip the test if a program is missing."""
    for program in ("make", *needed):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is needed")
    command = ["make", "-s", "-C", LIBRARY, f"BUILD={folder}", target]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""  # no warnings
    return folder


def run(tool: Path, *arguments: str | Path, lines: Sequence[str] = ()) -> str:
    """Run the command on lines, and return what it writes."""
    ran = subprocess.run(
        [tool, *arguments],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def ask(tool: Path, folder: Path, sources: Sequence[Source], *options: str) -> list[dict[str, Any]]:
    """Answer sources with attention, in the form of the other runtimes."""
    lines = [f"{source.text}\t{source.features}" for source in sources]
    written = run(tool, folder, "--format", "jsonl", "--attention", *options, lines=lines)
    # Not splitlines, which splits at other separators too.
    rows = [json.loads(line) for line in written.removesuffix("\n").split("\n")]
    return [
        {"attention": None, "tokenProbabilities": row["token_probabilities"], **row} for row in rows
    ]


def ask_wasm(
    module: Path, folder: Path, sources: Sequence[Source], nbest: int
) -> tuple[int, list[dict[str, Any]]]:
    """Answer sources in Node.js, after the self-test of the model; also return the number of its examples."""
    options = [
        (each.text, {"features": each.features, "nbest": nbest, "attention": True})
        for each in sources
    ]
    command = ["node", "--input-type=module", "-e", _ASKED]
    places = [LIBRARY / "wasm/foveal.mjs", module, folder / "model.plain"]
    ran = subprocess.run(
        [*command, *places],
        input=json.dumps(options),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    return found["selfTest"], found["answers"]
