"""Fill pages of the documentation from the repository when the site is built.

    <!-- results: structures -->             the table of results/structures.json
    <!-- results: serving, capacity -->      its rows whose names begin so
    <!-- audit -->                           what the server pulls in, by scripts/audit.py
    <!-- licenses -->                        licenses of all packages, by scripts/licenses.py
    <!-- exports: foveal.bundles -->         the reference of all names the package exports
    <!-- exports: foveal.data; tsv, csv -->  of some names; the groups of a page must have all names
    <!-- record: g2p_low -->                 scores and costs of a recipe, by scripts/docs_records.py
    <!-- record: scan; length; jump -->      of its cases whose names begin so
    <!-- slices: g2p_low -->                 where it errs
    <!-- mistakes: g2p_low -->               and its surest mistakes, with heat maps
    <!-- exporting: speed -->               tables of exports, by scripts/docs_exporting.py
    <!-- gpu: compiled -->                  tables of kernels for GPUs, by scripts/docs_gpu.py
    <!-- chapters -->                       the chapters of the course, whose pages are added to the site
    <!-- shown: entailment sick_tree -->     attention of a case, drawn by scripts/docs_shown.py
    <!-- predictions: execute; LSTM -->      outputs of the cases of a model, by scripts/docs_predictions.py
    <!-- picture: linear_chain -->           a drawing of scripts/docs_pictures.py or docs_views.py
    <!-- picture: copy_and_reverse -->       curves of figures in results/, by scripts/docs_curves.py
    <!-- scored: self_attention_lm -->       the part of a page up to <!-- end scored -->, if results/ has this file
    <!-- scored: dialog; sgd -->            the same, if it has rows whose names begin so
    <!-- texts: self_attention_lm -->        sampled text by temperature, from results/texts
    pictures/views.html                      a page of scripts/docs_views.py, to link to

Every picture has a caption; the figures in captions of the gallery are read from results/gallery.

The search ranks guides before the reference and before decisions, and ignores the source of formulas.

A missing file is a warning, which `mkdocs build --strict` turns into a failure.
"""

import ast
import html
import json
import logging
import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
RESULTS_MARKER = re.compile(
    r"^<!-- results: ([a-z0-9_-]+)(?:, ([a-z0-9 (),]+))? -->$", re.MULTILINE
)
CHAPTERS_MARKER = re.compile(r"^<!-- chapters -->$", re.MULTILINE)
AUDIT_MARKER = re.compile(r"^<!-- audit -->$", re.MULTILINE)
LICENSES_MARKER = re.compile(r"^<!-- licenses -->$", re.MULTILINE)
PICTURE_MARKER = re.compile(r"^<!-- picture: ([a-z0-9_]+) -->$", re.MULTILINE)
RECORD_MARKER = re.compile(
    r"^<!-- (record|slices|mistakes): ([a-z0-9_]+)((?:; [^;>]+)*) -->$", re.MULTILINE
)
SHOWN_MARKER = re.compile(r"^<!-- shown: ([a-z0-9_]+) ([a-z0-9_]+) -->$", re.MULTILINE)
PREDICTIONS_MARKER = re.compile(
    r"^<!-- predictions: ([a-z0-9_]+); ([A-Za-z0-9 ]+) -->$", re.MULTILINE
)
TEXTS_MARKER = re.compile(r"^<!-- texts: ([a-z0-9_]+) -->$", re.MULTILINE)
FORMULA = re.compile(r'<(?:div|span) class="arithmatex"')
EXPORTS_MARKER = re.compile(
    r"^<!-- exports: ([a-z0-9_.]+)(?:;([a-zA-Z0-9_,\s]+))? -->$", re.MULTILINE
)
# A reader who searches for a topic wants its guide; a name of the API is a heading of the reference in any case.
SEARCH_BOOSTS = {"decisions": 0.2, "reference": 0.4, "records": 0.6}

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT)]  # mkdocs loads only this file
from audit import audit, table as audit_table  # noqa: E402
from docs_captions import DRAWN  # noqa: E402
from docs_curves import CURVES  # noqa: E402
from docs_dynamics import DYNAMICS  # noqa: E402
from docs_exporting import MARKER as EXPORTING_MARKER, exporting_table  # noqa: E402
from docs_gpu import MARKER as GPU_MARKER, gpu_table  # noqa: E402
from docs_pictures import PICTURES  # noqa: E402
from docs_predictions import predictions  # noqa: E402
from docs_records import drawings, mistakes, origin, record, slices  # noqa: E402
from docs_scored import scored_only  # noqa: E402
from docs_shown import shown, shown_drawings  # noqa: E402
from docs_units import UNITS, unit_captions  # noqa: E402
from docs_views import CAPTIONS, GALLERY_VIEWS, PAGES  # noqa: E402
from licenses import licenses, table as licenses_table  # noqa: E402

from course._pages import overview, site_files  # noqa: E402

log = logging.getLogger("mkdocs.hooks.results")


def number(value: float | None) -> str:
    """Three significant digits; whole numbers from a hundred on."""
    if value is None:  # a measurement that gave NaN: JSON has no name for it
        return "not a number"
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def verdict(row: dict[str, Any]) -> str:
    """The target of a row and whether the value reaches it; empty without a target."""
    target, sense = row.get("target"), row.get("sense")
    if target is None or sense is None:
        return ""
    value = row["value"]
    met = value is not None and (value <= target if sense == "<=" else value >= target)
    sign = {"<=": "≤", ">=": "≥"}[sense]
    return f"{sign} {number(target)}, {'met' if met else 'missed'}"


def spread_text(spread: list[float | None] | None) -> str:
    """The lowest and the highest value over rounds or seeds."""
    return "" if spread is None else " to ".join(number(end) for end in spread)


def table(results: dict[str, Any]) -> str:
    """One results file as a Markdown table with a line about where it comes from."""
    lines = [
        "| measured | value | unit | spread | target |",
        "|---|---:|---|---:|---|",
    ]
    for row in results["rows"]:
        cells = (
            row["name"],
            number(row["value"]),
            row.get("unit") or "",
            spread_text(row.get("spread")),
            verdict(row),
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    made = origin(results)
    for label in ("data", "spec"):
        if content := results.get(label):
            entries = "; ".join(f"`{name}` `{_short(value)}`" for name, value in content.items())
            made += f"\n{label.capitalize()}: {entries}."
    return "\n".join([*lines, "", made])


def _short(value: Any) -> str:
    """A sha256 by its first twelve digits, anything else as it is."""
    text = str(value)
    return f"sha256 {text[:12]}" if re.fullmatch("[0-9a-f]{64}", text) else text


def results_table(name: str, beginning: str | None, page: str) -> str:
    """The table for one marker, or a warning and a sentence in its place."""
    path = ROOT / "results" / f"{name}.json"
    if not path.is_file():
        log.warning(
            "%s asks for results/%s.json, which does not exist. "
            "Run the benchmark that writes it, or take the marker out of the page.",
            page,
            name,
        )
        return f"*results/{name}.json has not been made.*"
    results = json.loads(path.read_text(encoding="utf-8"))
    if beginning is not None:
        results["rows"] = [row for row in results["rows"] if row["name"].startswith(beginning)]
        results.pop("spec", None)  # the settings of all cases would be longer than the rows of some
    return table(results)


def exports(package: str) -> list[str]:
    """Return the names Y of `from ._x import Y as Y` in a package, in the order of the file. The root package imports
    its names for type checkers.
    """
    source = ROOT.joinpath(*package.split("."), "__init__.py").read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = [alias.asname or "_" for node in imports for alias in node.names]
    return [name for name in names if not name.startswith("_")]


def reference(package: str, names: str | None) -> str:
    """The mkdocstrings directives that show a package and the names it exports, or only some of the names."""
    if names is None:
        return f"::: {package}\n    options:\n      members: [{', '.join(exports(package))}]"
    shown = "\n      ".join(
        ("heading_level: 3", "show_root_heading: true", "show_root_toc_entry: true")
    )
    return "\n\n".join(
        f"::: {package}.{name}\n    options:\n      {shown}\n"
        f"      inherited_members: [{', '.join(inherited(package, name))}]"
        for name in names.replace(",", " ").split()
    )


def inherited(package: str, name: str) -> list[str]:
    """The public members that a class inherits from bases in Foveal, except those of bases that the package exports: these
    have their own entries.
    """
    module = import_module(package)
    bases = [
        base
        for base in getattr(getattr(module, name), "__mro__", ())[1:]
        if base.__module__.startswith("foveal")
    ]
    exported = [getattr(module, one) for one in exports(package)]
    shown = {member for base in bases if base in exported for member in dir(base)}
    members = dict.fromkeys(member for base in bases for member in vars(base))
    return [member for member in members if member not in shown and not member.startswith("_")]


def check_groups(markdown: str, page: str) -> None:
    """Warn if the groups of a page are not all names of a package, each once."""
    groups = dict[str, list[str]]()
    for package, names in EXPORTS_MARKER.findall(markdown):
        if names:
            groups.setdefault(package, []).extend(names.replace(",", " ").split())
    for package, names in groups.items():
        if wrong := Counter(names) - Counter(exports(package)):
            log.warning("%s: not exported by %s, or twice: %s", page, package, ", ".join(wrong))
        if missing := Counter(exports(package)) - Counter(names):
            log.warning("%s: no group has %s of %s", page, ", ".join(missing), package)


def on_files(files: Any, *, config: Any) -> Any:
    """Called by mkdocs when it has found the pages: add the pictures and the sample pages, drawn now."""
    for name, draw in (
        PICTURES | CURVES | DYNAMICS | UNITS | drawings() | shown_drawings()
    ).items():
        files.append(File.generated(config, f"pictures/{name}.svg", content=draw()))
    for name, draw in PAGES.items():
        files.append(File.generated(config, f"pictures/{name}.html", content=draw()))
    try:
        for name, content in site_files():
            files.append(File.generated(config, name, content=content))
    except FileNotFoundError as error:
        log.warning("%s", error)
    return files


def picture(name: str, page: str) -> str:
    """The image for one marker with its caption, or a warning if it has none."""
    if name in GALLERY_VIEWS:
        caption, alt = CAPTIONS[name](), GALLERY_VIEWS[name].alt
    elif name in UNITS:
        caption, alt = unit_captions()[name]
    elif name in DRAWN:
        caption, alt = DRAWN[name]
    else:
        log.warning("%s: the picture %s needs a caption in scripts/docs_captions.py", page, name)
        return ""
    image = f"![{alt}]({'../' * page.count('/')}pictures/{name}.svg)"
    # As HTML: a formula has asterisks, which Markdown would take for its own.
    return f'<figure markdown="1">\n{image}\n\n<figcaption>{html.escape(caption)}</figcaption>\n</figure>'


def record_part(part: str, recipe: str, beginnings: str, page: str) -> str:
    """Return the part of a records page for one recipe, or a sentence and a warning."""
    try:
        if part == "mistakes":
            errors = mistakes(recipe, f"{'../' * page.count('/')}pictures")
            return folded("The most confident errors, with their attention", errors)
        if part == "slices":
            return folded("Error rates by slice", slices(recipe))
        return record(recipe, *beginnings.split("; ")[1:])
    except FileNotFoundError as error:
        log.warning("%s asks for %s, which does not exist. Score the recipe.", page, error.filename)
        return f"*{recipe} has not been scored.*"
    except ValueError as error:
        log.warning("%s: %s", page, error)
        return f"*{error}*"


def folded(summary: str, text: str) -> str:
    """A part of a page that opens on a click, for tables and pictures that few readers need."""
    return f'<details markdown="1">\n<summary>{summary}</summary>\n\n{text}\n\n</details>'


def shown_part(experiment: str, case: str, page: str) -> str:
    """The pictures of one case, or a warning and a sentence in their place."""
    try:
        return shown(experiment, case, f"{'../' * page.count('/')}pictures")
    except (FileNotFoundError, KeyError):
        log.warning("%s asks for %s of %s, which was not scored.", page, case, experiment)
        return f"*{experiment}, {case} has not been scored.*"


def predictions_part(experiment: str, model: str, page: str) -> str:
    """Return the table of the outputs of a model, or a sentence and a warning."""
    try:
        return predictions(experiment, model)
    except (FileNotFoundError, ValueError) as error:
        log.warning("%s: %s. Score %s.", page, error, experiment)
        return f"*{model} has not been scored.*"


def texts(name: str, page: str) -> str:
    """Sampled texts of every case, each under its temperature; a warning and a sentence if there are none."""
    path = ROOT / "results/texts" / f"{name}.json"
    if not path.exists():
        log.warning("%s asks for results/texts/%s.json, which does not exist.", page, name)
        return f"*No text of {name} has been sampled.*"
    parts = list[str]()
    for case, sampled in json.loads(path.read_text(encoding="utf-8")).items():
        for one in sampled:
            parts.append(f"{case.replace('_', ', ')}, temperature {one['temperature']:g}:")
            parts.append(f"```text\n{one['text']}\n```")
    return "\n\n".join(parts)


def audited_packages() -> str:
    """Return the dependencies of the server, with a warning for every problem."""
    audited = audit()
    for fault in (fault for one in audited for fault in one.faults):
        log.warning("%s", fault)
    return audit_table(audited)


def locked_licenses() -> str:
    """Return the licenses of all locked packages, with a warning for every problem."""
    found = licenses()
    for fault in (fault for one in found for fault in one.faults):
        log.warning("%s", fault)
    return licenses_table(found)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page: replace each marker."""
    source = page.file.src_uri
    if (folder := source.partition("/")[0]) in SEARCH_BOOSTS:
        page.meta.setdefault("search", {"boost": SEARCH_BOOSTS[folder]})
    markdown = scored_only(markdown, ROOT / "results")
    markdown = TEXTS_MARKER.sub(lambda match: texts(match[1], source), markdown)
    markdown = RESULTS_MARKER.sub(lambda match: results_table(match[1], match[2], source), markdown)
    markdown = EXPORTING_MARKER.sub(
        lambda match: exporting_table(match[1], ROOT / "results"), markdown
    )
    markdown = GPU_MARKER.sub(lambda match: gpu_table(match[1], ROOT / "results"), markdown)
    markdown = CHAPTERS_MARKER.sub(lambda _: overview(), markdown)
    markdown = AUDIT_MARKER.sub(lambda _: audited_packages(), markdown)
    markdown = LICENSES_MARKER.sub(lambda _: locked_licenses(), markdown)
    markdown = PICTURE_MARKER.sub(lambda match: picture(match[1], source), markdown)
    markdown = SHOWN_MARKER.sub(lambda match: shown_part(match[1], match[2], source), markdown)
    markdown = PREDICTIONS_MARKER.sub(
        lambda match: predictions_part(match[1], match[2], source), markdown
    )
    markdown = RECORD_MARKER.sub(
        lambda match: record_part(match[1], match[2], match[3], source), markdown
    )
    check_groups(markdown, source)
    return EXPORTS_MARKER.sub(lambda match: reference(match[1], match[2]), markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Called by mkdocs with the HTML of every page: keep the source of formulas out of the search."""
    return FORMULA.sub(r"\g<0> data-search-exclude", content)
