"""The pages of the product pictures, made by the commands that users run, and a record of what they show.

A screenshot cannot be compared with a page, because letters differ a little between machines. The record can: it is the
text of the page, and checksums of its styles and of its markup without numbers. It is stored next to the models, and a page
that differs from its record has an outdated picture.
"""

import contextlib
import hashlib
import io
import json
import re
import shutil
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

from foveal.bundles import load_bundle
from foveal.cli._main import main as foveal
from foveal.data import Example
from foveal.inspection import explain
from foveal.tasks.explaining._explanation import Explanation
from foveal.web._assets import assets

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "results/product"
PRONUNCIATION, HASTY = MODELS / "pronunciation", MODELS / "hasty"
WORD = "throat"  # of the test file
STEP, PLACE = 2, 4  # the explorer forces the third phoneme to read the letter a

NUMBER = re.compile(r"-?\d*\.?\d+(?:e[+-]?\d+)?")
_EMBEDDED = re.compile(
    r"data:[\w/+;]+,[\w+/=]*|sl-[0-9a-f]{12}(-\d+)?"
)  # images, and keys made of them
_STYLE = re.compile("<style>.*?</style>", re.DOTALL)
_VALUES = re.compile('="[^"]*"|>[^<]*<')  # attributes and texts
_UNSEEN = ("style", "title", "desc", "script")


def explanation(*, forced: bool = False) -> Explanation:
    """Explain the word, as `foveal explain` and the explorer do; with forced attention, as the picture shows it."""
    task = load_bundle(PRONUNCIATION)
    own = explain(task, Example(WORD))
    if not forced:
        return own
    weights = [float(place == PLACE) for place in range(len(WORD))]
    prefix = [step.token for step in own.steps[:STEP]]
    return explain(task, Example(WORD), prefix=prefix, forced={STEP: weights})


@cache
def written_page(command: str) -> str:
    """Run `foveal explain`, `report` or `doctor` on a copy of a model, and return the page that it writes."""
    stored = HASTY if command == "doctor" else PRONUNCIATION
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(ROOT),  # the runs name their files relative to it
        contextlib.redirect_stdout(io.StringIO()),
    ):
        run, page = Path(folder) / stored.name, Path(folder) / stored.name / f"{command}.html"
        shutil.copytree(stored, run)
        words = {
            "explain": [str(run), WORD, "--out", str(page)],
            "report": [str(run), "--out", str(page)],
            "doctor": [str(run)],
        }
        foveal([command, *words[command], "--threads", "1"])
        return page.read_text(encoding="utf-8")


def page_record(html: str) -> str:
    """Return the text that a page shows and checksums of its styles and its markup.

    The checksum of the markup does not depend on numbers in texts and attributes, which differ a little between processors.
    """
    reader = _Reader()
    reader.feed(html)
    lines = [" ".join(text.split()) for text in reader.texts if text.strip()]
    styles = "".join(_STYLE.findall(html))
    markup = _EMBEDDED.sub("", _STYLE.sub("", html))
    bare = _VALUES.sub(lambda value: NUMBER.sub("0", value[0]), markup)
    return "\n".join([f"styles {_checksum(styles)}", f"markup {_checksum(bare)}", *lines, ""])


def explorer_record() -> str:
    """Return the data that the explorer shows, and the checksum of its page, scripts and styles."""
    files = "\n".join(assets()[name].content.decode() for name in sorted(assets()))
    data = json.dumps(explanation(forced=True).to_data(), ensure_ascii=False, indent=1)
    return f"files {_checksum(files)}\n{data}\n"


def _checksum(text: str) -> str:
    """Return a checksum in letters, because digits would be compared as numbers."""
    digest = hashlib.sha256(text.encode()).digest()[:12]
    return "".join(chr(ord("a") + byte % 26) for byte in digest)


class _Reader(HTMLParser):
    """Collects the visible text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = list[str]()
        self._hidden = 0  # depth of elements whose text is not shown

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count hidden elements."""
        self._hidden += tag in _UNSEEN

    def handle_endtag(self, tag: str) -> None:
        """Count hidden elements."""
        self._hidden -= tag in _UNSEEN

    def handle_data(self, data: str) -> None:
        """Keep visible text."""
        if not self._hidden:
            self.texts.append(data)
