"""Does every runtime give the stored outputs of every line of the self-test?

A runtime stops at the first line with another output, which counts as none. The npm package is packed and installed as a user
installs it, and the C library is built by its Makefile.
"""

import functools
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from typing_extensions import override

from ..browser import open_browser
from ..results import Row
from ._c_library import SOURCES
from ._models import SEED, Case

PACKAGE = SOURCES.parent / "js"
_PAGE = """<!DOCTYPE html><title>Self-test</title><script type="importmap">{"imports": {
"foveal-runtime": "/node_modules/foveal-runtime/dist/browser.mjs",
"onnxruntime-web/wasm": "/node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs"}}</script>
"""
_TESTED = """
const [folder, engine, done] = arguments;
import("foveal-runtime")
  .then(({load}) => load(folder, {engine}))
  .then((model) => model.selfTest())
  .then(done, (error) => done(String(error)));
"""
_ENGINES = ("onnx", "plain")


def rows(case: Case) -> Iterator[Row]:
    """Run the self-test of an export in Python, Node, Chromium and C."""
    folder = case.export()
    num_lines = len((folder / "selftest.jsonl").read_text(encoding="utf-8").splitlines())
    found: dict[str, int] = {"Python": case.exported().self_test()}
    place = _installed(case.folder.with_name("node"))
    command = ("node", place / "node_modules/foveal-runtime/dist/command.mjs")
    engines = _ENGINES if case.is_plain else _ENGINES[:1]
    for engine in engines:
        options = ("--self-test", "--engine", engine)
        found[f"Node, {engine}"] = _tested([*command, folder, *options])
    found |= _in_chromium(case, place, engines)
    if case.is_plain:
        build = case.folder.with_name("c")
        subprocess.run(["make", "-s", "-C", SOURCES, f"BUILD={build}"], check=True)
        found["C"] = _tested([build / "foveal-run", folder, "--self-test"])
    for name, number in found.items():
        yield Row(
            name=f"{case.name}: lines of the self-test with the stored output, {name}",
            value=number,
            unit="lines",
            seeds=(SEED,),
            target=num_lines,
            sense=">=",
        )


def _tested(command: list[str | Path]) -> int:
    """Return the number of lines that a command reports; 0 if a line differs."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    words = ran.stdout.rpartition(": ")[2].split()
    return int(words[0]) if ran.returncode == 0 else 0


def _installed(place: Path) -> Path:
    """Pack the npm package and install it with its engine, once."""
    if (place / "node_modules").exists():
        return place
    place.mkdir(parents=True, exist_ok=True)
    (place / "package.json").write_text('{"private": true, "type": "module"}')
    package = json.loads((PACKAGE / "package.json").read_text())
    engine = f"onnxruntime-web@{package['devDependencies']['onnxruntime-web']}"
    subprocess.run(["npm", "pack", "--pack-destination", place], cwd=PACKAGE, check=True)
    (packed,) = place.glob("foveal-runtime-*.tgz")
    subprocess.run(
        ["npm", "install", "--no-audit", f"./{packed.name}", engine], cwd=place, check=True
    )
    return place


def _in_chromium(case: Case, place: Path, engines: tuple[str, ...]) -> Mapping[str, int]:
    """Run the self-test in a page."""
    (place / "index.html").write_text(_PAGE)
    link = place / case.name
    if not link.exists():
        link.symlink_to(case.export().resolve())
    found = dict[str, int]()
    with _served(place) as address, open_browser() as browser:
        browser.set_script_timeout(600)
        browser.get(address)
        for engine in engines:
            told = browser.execute_async_script(_TESTED, f"/{case.name}/", engine)
            if not isinstance(told, int):
                print(f"{case.name}, Chromium, {engine}: {told}", flush=True)
            found[f"Chromium, {engine}"] = told if isinstance(told, int) else 0
    return found


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; yields its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""
