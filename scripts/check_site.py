"""Check the built site: examples are code, specs are tables of settings, and every image has a text.

python scripts/check_site.py FOLDER
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import final

from typing_extensions import override

MIN_EXAMPLES = 169  # docstring examples in the reference; each is a highlighted block
NESTED = re.compile(r"<blockquote>\s*<blockquote>")
EXAMPLE = re.compile(r'<div class="highlight"><pre><span></span><code><span class="gp">')
# A default that is a call of `setting`; the function itself has its own heading.
CALL = re.compile(r"=\s*setting\s*\(")


@final
class _Images(HTMLParser):
    """Collects the addresses of images without a text."""

    def __init__(self) -> None:
        super().__init__()
        self.silent = list[str]()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "img" and not (found.get("alt") or "").strip():
            self.silent.append(str(found.get("src"))[:60])


def faults(site: Path) -> Iterator[str]:
    """Yield a line for each fault."""
    num_examples = 0
    for page in sorted(site.rglob("*.html")):
        text, name = page.read_text(encoding="utf-8"), page.relative_to(site)
        images = _Images()
        images.feed(text)
        yield from (f"{name}: the image {address} has no alt text" for address in images.silent)
        if name.parts[0] != "reference":
            continue
        num_examples += len(EXAMPLE.findall(text))
        if number := len(NESTED.findall(text)):
            yield f"{name}: {number} doctests render as block quotes; put them under Examples:"
        for signature in re.findall(r'<div class="doc-signature.*?</pre>', text, re.DOTALL):
            if CALL.search(re.sub(r"<[^>]+>", "", signature)):
                yield f"{name}: a signature shows a call of setting in place of a default"
    if num_examples < MIN_EXAMPLES:
        yield f"reference: {num_examples} examples are code, expected at least {MIN_EXAMPLES}"


def main() -> None:
    """Print the faults of a site; exit 1 if there are any."""
    found = list(faults(Path(sys.argv[1])))
    print("\n".join(found) or "no faults")
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
