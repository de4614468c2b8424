"""The JavaScript runtime under test: the packed npm package next to onnxruntime-web, in Node.js and in Chromium."""

import contextlib
import functools
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from foveal.runtime import Source

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "foveal/export/javascript"
HERE = Path(__file__).parent
SECONDS = 240
_NPM = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
_PAGE = """<!DOCTYPE html><html lang="en"><title>Test</title><link rel="icon" href="data:,">
<script type="importmap">{"imports": {
"foveal-runtime": "/node_modules/foveal-runtime/dist/browser.mjs",
"onnxruntime-web/wasm": "/node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs"}}</script></html>
"""


def installed(folder: Path) -> Path:
    """Pack the npm package and install it into a folder; skip the test if npm or its registry is missing."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are needed")
    package = ROOT / "runtimes/js"
    _npm("pack", "--pack-destination", str(folder), folder=package)
    (packed,) = folder.glob("foveal-runtime-*.tgz")
    version = json.loads((package / "package.json").read_text())["devDependencies"][
        "onnxruntime-web"
    ]
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    try:
        _npm("install", f"./{packed.name}", f"onnxruntime-web@{version}", *_NPM, folder=folder)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"npm cannot install onnxruntime-web: {error.stderr[-300:]}")
    for name in ("answers.mjs", "node.mjs"):
        shutil.copy(HERE / name, folder)
    (folder / "index.html").write_text(_PAGE)
    return folder


def _npm(command: str, *arguments: str, folder: Path) -> None:
    subprocess.run(
        ["npm", command, *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def in_node(module: str | Path, name: str, *given: Any, script: Path = HERE / "node.mjs") -> Any:
    """Call an exported function of a module in Node.js."""
    request = json.dumps({"module": str(module), "name": name, "given": given})
    ran = subprocess.run(
        ["node", script],
        input=request,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; yields its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


def source_data(sources: Sequence[Source]) -> list[dict[str, str]]:
    """Return sources in the form of the JavaScript runtime."""
    return [{"text": each.text, "features": each.features} for each in sources]
