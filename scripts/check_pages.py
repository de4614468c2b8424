"""Check the built site in a browser: formulas render, code fits, no page scrolls sideways, and the search finds pages.

python scripts/check_pages.py FOLDER

Each line of scripts/search_queries.tsv has a query and the pages that answer it ("." is the front page). The search box of the site must show one
of them among its first three results. Without chromium, nothing is checked.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, final

from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait
from typing_extensions import override

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]
from benchmarks.browser import SECONDS, BrowserMissingError, open_browser  # noqa: E402

QUERIES = ROOT / "scripts/search_queries.tsv"
WIDE, NARROW, HEIGHT = 1280, 400, 900  # pixels: a laptop and a phone
MAX_CUT = 0.05  # fraction of the code blocks that may be wider than the text
TOP = 3  # results of the search that people read

MEASURE = """
const blocks = [...document.querySelectorAll(".md-content pre > code")];
return {
  blocks: blocks.length,
  cut: blocks.filter(block => block.scrollWidth > block.clientWidth).map(block => block.textContent.slice(0, 60)),
  errors: [...document.querySelectorAll(".katex-error")].map(formula => formula.title),
  plain: document.querySelectorAll(".arithmatex:not(:has(.katex))").length,
};
"""
# Scrollbars take no room on a phone, so the window is as wide as the page may be.
OVERHANG = "return document.documentElement.scrollWidth - window.innerWidth"
# An empty query clears the list. Later results then belong to the next query.
ASK = """
const field = document.querySelector(".md-search__input");
field.focus();
field.value = arguments[0];
field.dispatchEvent(new Event("input", {bubbles: true}));
field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
"""
FOUND = """
const about = document.querySelector(".md-search-result__meta").textContent;
const items = [...document.querySelectorAll(".md-search-result__item")];
const done = items.length > 0 || about.includes("No matching");
return {done, pages: items.map(item => new URL(item.querySelector("a").href).pathname)};
"""


# Every page sorts the index of the search, which takes longer than all that is measured in the layout.
NO_INDEX = b'{"config": {"lang": ["en"], "separator": " ", "pipeline": []}, "docs": []}'


@final
class _Silent(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def __init__(self, *args: Any, directory: str, index: bytes | None) -> None:
        self.index = index
        super().__init__(*args, directory=directory)

    @override
    def do_GET(self) -> None:
        if self.index is None or not self.path.endswith("/search_index.json"):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.index)))
        self.end_headers()
        self.wfile.write(self.index)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serve(site: Path, index: bytes | None = None) -> Iterator[str]:
    """Serve a folder on a free port of this machine, if given with another search index, and give its address."""
    handler = partial(_Silent, directory=str(site), index=index)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def resize(browser: Chrome, width: int) -> None:
    """Set the width of the page, which a window cannot have below 500 pixels."""
    metrics = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": width == NARROW}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def layout_faults(browser: Chrome, address: str, pages: list[str]) -> Iterator[str]:
    """Open every page, wide and narrow, and yield a line for each fault."""
    num_blocks, cut = 0, list[str]()
    for page in pages:
        resize(browser, WIDE)
        browser.get(address + page)
        seen = browser.execute_script(MEASURE)
        num_blocks += seen["blocks"]
        cut += [f"{page}: {text!r}" for text in seen["cut"]]
        yield from (f"{page}: {error}" for error in seen["errors"])
        if seen["plain"]:
            yield f"{page}: {seen['plain']} formulas are not rendered"
        resize(browser, NARROW)
        if (overhang := browser.execute_script(OVERHANG)) > 0:
            yield f"{page}: {overhang} pixels wider than a window of {NARROW}"
    print(f"{len(cut)} of {num_blocks} code blocks are cut at {WIDE} pixels", *cut, sep="\n  ")
    if len(cut) > MAX_CUT * num_blocks:
        yield f"more than {MAX_CUT:.0%} of the code blocks are cut; write shorter lines"


def queries() -> Iterator[tuple[str, list[str]]]:
    """The queries, each with the addresses of the pages that answer it."""
    for line in QUERIES.read_text(encoding="utf-8").splitlines():
        query, pages = line.split("\t")
        yield query, ["/" if page == "." else f"/{page}/" for page in pages.split()]


def search_faults(browser: Chrome, address: str, site: Path) -> Iterator[str]:
    """Type each query into the search box, and yield a line where no right page is near the top."""
    resize(browser, WIDE)
    browser.get(address)
    wait = WebDriverWait(browser, SECONDS, poll_frequency=0.02)
    for query, expected in queries():
        yield from (
            f"{QUERIES.name}: {query!r} names {page}, which does not exist"
            for page in expected
            if not (site / page.strip("/") / "index.html").is_file()
        )
        browser.execute_script(ASK, "")
        wait.until(lambda browser: not browser.execute_script(FOUND)["pages"])
        browser.execute_script(ASK, query)
        wait.until(lambda browser: browser.execute_script(FOUND)["done"])
        found = browser.execute_script(FOUND)["pages"][:TOP]
        if not set(expected) & set(found):
            yield f"search {query!r}: found {found}, expected one of {expected}"


def main() -> None:
    """Print the faults of a site; exit 1 if there are any."""
    site = Path(sys.argv[1])
    pages = sorted(str(path.relative_to(site).parent) + "/" for path in site.rglob("index.html"))
    try:
        with open_browser() as browser:
            with serve(site, NO_INDEX) as address:
                found = list(layout_faults(browser, address, pages))
            with serve(site) as address:
                found += search_faults(browser, address, site)
    except BrowserMissingError as error:
        print(f"skipped: {error}")
        return
    print("\n".join(found) or "no faults")
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
