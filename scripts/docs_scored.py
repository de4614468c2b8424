"""Parts of pages that the site shows only once their experiment is scored.

<!-- scored: dialog; sgd -->       the part up to <!-- end scored -->, if results/dialog.json has rows that begin so
"""

import json
import re
from pathlib import Path

MARKER = re.compile(
    r"^<!-- scored: ([a-z0-9_]+)(?:; ([a-z0-9_]+))? -->\n(.*?)^<!-- end scored -->$",
    re.MULTILINE | re.DOTALL,
)


def scored_only(markdown: str, results: Path) -> str:
    """Return the text without the parts whose experiment has no such rows in the folder of results."""
    return MARKER.sub(
        lambda match: _part(results / f"{match[1]}.json", match[2], match[3]), markdown
    )


def _part(path: Path, beginning: str | None, text: str) -> str:
    if not path.exists():
        return ""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return text if any(row["name"].startswith(beginning or "") for row in rows) else ""
