"""A page: one self-contained HTML file that opens without a network.

It follows the reader's light or dark scheme, works with a keyboard and a screen reader, and reads the same
in gray print.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree as ET

from markupsafe import Markup

from ..errors import ValueRangeError
from ._render import render
from ._tables import Table

MOST_BYTES = 1_000_000
ALLOWED_ADDRESS = re.compile(r"#|data:image/png;base64,")
FETCHES = re.compile(r"@import|url\((?!#)", re.IGNORECASE)  # in a style or an attribute
KEY = re.compile(r'\bid="(sl-[0-9a-f]{12})"')


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A part of a page: text (paragraphs separated by empty lines), drawings (SVG from the views of this package),
    and tables.
    """

    title: str
    text: str = ""
    drawings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


class Printed(NamedTuple):
    """The largest folded table that is printed."""

    columns: int = 12
    rows: int = 40


class Drawing(NamedTuple):
    """A drawing in the page, with its accessible name."""

    label: str
    markup: Markup


class Shown(NamedTuple):
    """A section in the form that the template needs."""

    title: str
    paragraphs: list[str]
    drawings: list[Drawing]
    tables: tuple[Table, ...]


def _name(tag: str) -> str:
    return tag.rpartition("}")[2]


def _faults(root: ET.Element) -> Iterator[str]:
    """List the forbidden parts of a drawing: scripts and external resources."""
    for element in root.iter():
        if _name(element.tag) in ("script", "foreignObject", "a", "iframe"):
            yield f"a <{_name(element.tag)}> element"
        if _name(element.tag) == "style" and FETCHES.search(element.text or ""):
            yield "a style that fetches"
        for attribute, value in element.attrib.items():
            if FETCHES.search(value):
                yield "a style that fetches"
            if _name(attribute).startswith("on"):
                yield f"the attribute {attribute}"
            if _name(attribute) in ("href", "src") and not ALLOWED_ADDRESS.match(value):
                yield f"the address {value[:60]!r}"


def _checked(drawing: str) -> str:
    """Return the title of a drawing. Raises an error for invalid SVG and for external references."""
    try:
        root = ET.fromstring(drawing)
    except ET.ParseError as error:
        raise ValueRangeError(
            f"page: a drawing must be SVG, got {drawing[:60]!r}, which is not well-formed ({error}). "
            f"Pass the result of a view; plain text belongs in Section.text."
        ) from error
    fault = next(_faults(root), None) if _name(root.tag) == "svg" else f"a <{root.tag}>"
    if fault is not None:
        raise ValueRangeError(
            f"page: a drawing must be an <svg> that neither runs nor fetches anything, got {fault}. "
            f"Pass the result of a view, unchanged."
        )
    return root.get("aria-label", "drawing")


def _with_own_keys(drawing: str, number: int) -> Markup:
    """Give the drawing ids that are unique within the page."""
    for key in set(KEY.findall(drawing)):
        drawing = drawing.replace(key, f"{key}-{number}")
    return Markup(drawing)  # checked: it runs nothing and fetches nothing


def page(title: str, sections: Sequence[Section]) -> str:
    """Render a self-contained HTML page of less than a megabyte.

    Args:
        title: Title and heading of the page, as plain text.
        sections: Parts of the page, in order.

    Returns:
        The HTML of the page.

    Raises:
        ValueRangeError: The page is too large, or a drawing is not SVG or refers to something outside the page.

    Examples:
        >>> text = page("Ups & downs", [Section(title="One", text="First.")])
        >>> "<h1" in text and "Ups &amp; downs" in text
        True
    """
    shown, count = list[Shown](), 0
    for section in sections:
        drawings = list[Drawing]()
        for drawing in section.drawings:
            count += 1
            drawings.append(Drawing(_checked(drawing), _with_own_keys(drawing, count)))
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", section.text) if part.strip()]
        shown.append(Shown(section.title, paragraphs, drawings, section.tables))
    text = render("page.html", title=title, sections=shown, num_drawings=count, printed=Printed())
    size = len(text.encode())
    if size > MOST_BYTES:
        largest = max(shown, key=lambda each: sum(len(part.markup) for part in each.drawings))
        raise ValueRangeError(
            f"page: a page must be under {MOST_BYTES} bytes, got {size}; the drawings of "
            f"{largest.title!r} are the largest. Show fewer examples, or write several pages."
        )
    return text
