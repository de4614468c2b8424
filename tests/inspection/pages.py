"""Requirements for every page of the project: `check_page`.

    well-formed         tags nest and close, drawings are XML, every id is unique
    self-contained      nothing is fetched, nothing runs, under a megabyte
    legible             text has a contrast of 4.5 to 1 with its background and marks that must be
                        seen have 3 to 1 (WCAG 2.2, AA), in the light and in the dark scheme,
                        computed from the colors of the page
    described           every image has an alternative text

Contrast is computed for elements in the page: for a number on a cell, the background is the ink of
this cell, otherwise it is the paper.
"""

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import NamedTuple, TypeAlias
from xml.etree import ElementTree as ET

MOST_BYTES = 1_000_000
READABLE, VISIBLE = 4.5, 3.0  # for text, and for marks that must be seen
VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr"}
ADDRESSES = ("href", "src", "xlink:href", "action", "poster", "srcset", "data", "formaction")
DARK = re.compile(r"@media screen and \(prefers-color-scheme: ?dark\)\{")
TONES = {"kk", "kw", "wk", "ww"}  # text on the ramp
MARKS = {"best", "mark", "edge", *(f"{kind}{n}" for kind in "sm" for n in range(6))}

Color: TypeAlias = tuple[float, float, float]
Attributes: TypeAlias = dict[str, str]


class Reader(HTMLParser):
    """Collects the tags, texts and styles of a page, and fails if a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags = list[tuple[str, Attributes]]()
        self.open, self.said, self.styles = list[str](), list[str](), list[str]()
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: content or "" for name, content in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: content or "" for name, content in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.styles.append(data)
        elif self.open:
            self.said.append(data)

    def all(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.tags if name == tag]


def check_page(text: str, *, scripts: bool = False) -> Reader:
    """Raise AssertionError unless the page meets the requirements above; return the parsed page.

    Args:
        text: the whole page.
        scripts: whether the page may contain inline scripts: only a page that is served, never one
            that users send to each other.
    """
    reader = Reader(text)
    for drawing in re.findall(r"<svg\b.*?</svg>", text, re.DOTALL):
        ET.fromstring(drawing)
    keys = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(keys) == len(set(keys)), (
        f"ids twice: {sorted({k for k in keys if keys.count(k) > 1})}"
    )
    assert len(text.encode()) < MOST_BYTES, f"{len(text.encode())} bytes"
    _check_alone(reader, set(keys), scripts=scripts)
    _check_told(reader)
    _check_legible(reader)
    return reader


def _check_alone(reader: Reader, keys: set[str], *, scripts: bool) -> None:
    forbidden = {"iframe", "object", "embed", "link", "base"} | (set() if scripts else {"script"})
    found = forbidden & {tag for tag, _ in reader.tags}
    assert not found, f"elements that fetch or run: {sorted(found)}"
    for tag, attributes in reader.tags:
        runs = [name for name in attributes if name.startswith("on")]
        assert scripts or not runs, f"<{tag}> has {runs}"
        for name in ADDRESSES:
            address = attributes.get(name, "#")
            assert address.startswith(("#", "data:image/png;base64,")), (
                f"<{tag}> {name}={address!r}"
            )
            assert address in ("", "#") or address[0] != "#" or address[1:] in keys, address
        _check_style(attributes.get("style", ""))
    for style in reader.styles:
        _check_style(style)
    if not scripts:
        policies = [meta["content"] for meta in reader.all("meta") if meta.get("http-equiv")]
        assert len(policies) == 1, "a policy that forbids what is not in the page"
        assert policies[0].startswith("default-src 'none'"), policies[0]


def _check_style(style: str) -> None:
    assert "@import" not in style, style
    assert re.search(r"url\((?!#)", style) is None, style


def _check_told(reader: Reader) -> None:
    assert "lang" in reader.tags[0][1], "the language of the page"
    assert len(reader.all("h1")) == len(reader.all("main")) == 1, (
        "one heading of all, one main part"
    )
    for image in reader.all("img"):
        assert image.get("alt", "").strip(), f"no text for {image}"
    for drawing in reader.all("svg"):
        hidden = drawing.get("aria-hidden") == "true"
        named = drawing.get("role") == "img" and drawing.get("aria-label", "").strip()
        assert hidden or named, f"no text for {drawing}"


# Contrast


def luminance(channels: Color) -> float:
    """Return the relative luminance of channels 0 to 255; an independent copy of WCAG 2's formula."""
    shares = [channel / 255 for channel in channels]
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def rgb(color: str) -> Color:
    """Return the channels of #rrggbb or #rgb."""
    digits = color.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    red, green, blue = bytes.fromhex(digits)
    return red, green, blue


class Scheme(NamedTuple):
    """The styles of a page in the light or in the dark scheme."""

    name: str
    rules: Mapping[str, Mapping[str, str]]  # selector -> property -> value

    def value(self, selector: str, name: str) -> Color | None:
        """Return a color, with variables resolved, or None if there is none."""
        text = self.rules.get(selector, {}).get(name, "")
        if found := re.fullmatch(r"var\((--[\w-]+)\)", text):
            text = self.rules.get(":root", {}).get(found[1], "")
        return rgb(text) if re.fullmatch("#(?:[0-9a-f]{3}|[0-9a-f]{6})", text) else None

    def of_class(self, name: str) -> Color | None:
        """Return the color of a class of drawings, from fill or from stroke."""
        selector = f".foveal .{name}"
        fill = self.value(selector, "fill")
        return self.value(selector, "stroke") if fill is None else fill


def schemes(styles: list[str]) -> tuple[Scheme, Scheme]:
    """Return the light and the dark scheme; the dark one inherits missing values."""
    light, dark = dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    for style in styles:
        outside, inside = _parted(re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL))
        for rules, part in ((light, outside), (dark, inside)):
            for selector, values in _rules(part):
                rules.setdefault(selector, {}).update(values)
    both = {
        selector: light.get(selector, {}) | dark.get(selector, {}) for selector in {**light, **dark}
    }
    return Scheme("light", light), Scheme("dark", both)


def _parted(style: str) -> tuple[str, str]:
    """Split a style into general rules and dark rules; drop other conditions."""
    outside, inside = list[str](), list[str]()
    while (found := re.search(r"@media[^{]*\{", style)) is not None:
        depth, end = 1, found.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(style[end], 0)
            end += 1
        outside.append(style[: found.start()])
        if DARK.match(found[0]):
            inside.append(style[found.end() : end - 1])
        style = style[end:]
    return "".join([*outside, style]), "".join(inside)


def _rules(style: str) -> Iterator[tuple[str, dict[str, str]]]:
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", style):
        pairs = (part.split(":", 1) for part in body.split(";") if ":" in part)
        values = {name.strip(): content.strip() for name, content in pairs}
        for selector in selectors.split(","):
            yield selector.strip(), values


def _check_legible(reader: Reader) -> None:
    for scheme in schemes(reader.styles):
        paper = scheme.value("body", "background")
        assert paper is not None, "the page has a color behind it"
        for selector in scheme.rules:
            if (color := scheme.value(selector, "color")) is not None:
                behind = scheme.value(selector, "background") or paper
                ratio = contrast(color, behind)
                assert ratio >= READABLE, f"{scheme.name}: {selector} {ratio:.2f}"
        _check_drawings(reader, scheme)


def _check_drawings(reader: Reader, scheme: Scheme) -> None:
    """Check every text of a drawing, and every mark that must be seen."""
    paper, ink = scheme.of_class("paper"), scheme.of_class("ink")
    behind, seen = paper, set[str]()
    for tag, attributes in reader.tags:
        classes = attributes.get("class", "").split()
        if paper is None or ink is None:
            assert tag != "svg", "a drawing without the colors of drawings"
            continue
        if "ink" in classes and "fill-opacity" in attributes:
            share = float(attributes["fill-opacity"])
            red, green, blue = (
                (1 - share) * low + share * high for low, high in zip(paper, ink, strict=True)
            )
            behind = red, green, blue
        for name in classes:
            text = tag == "text" and (name in TONES or name in ("text", "muted"))
            if not text and name not in MARKS:
                continue
            color = scheme.of_class(name)
            assert color is not None, name
            ground = behind if name in TONES else paper
            assert ground is not None
            ratio, least = contrast(color, ground), READABLE if text else VISIBLE
            assert ratio >= least, f"{scheme.name}: {tag} .{name} {ratio:.2f} {attributes}"
            seen.add(name)
    assert seen or not reader.all("svg"), "drawings in which nothing can be seen"
