"""A page that answers without a network: one HTML file with the plain model file and the engine that reads it.

The scripts are the modules of `foveal/export/javascript`, put into one script: a page from a disk cannot import files. The
content security policy of the page allows this script and these styles only, by their checksums, and no connection.
"""

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path, PurePosixPath

from markupsafe import Markup

from ..errors import ExportError
from ..views._render import render_text
from .plain import PLAIN

_FOLDER = "export/javascript"
_ENTRY = f"{_FOLDER}/page/page.mjs"
_COLORS = ("paper", "text", "muted", "rule", "edge", "ink", "accent")
_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_BLOCK_COMMENT = re.compile(r"^[ \t]*/\*\*.*?\*/\n", re.MULTILINE | re.DOTALL)
_ENDS_SCRIPT = re.compile(r"</script|<!--", re.IGNORECASE)


def write_page(folder: str | Path, file: str | Path, title: str) -> int:
    """Write the page of an exported model.

    Args:
        folder: The folder that `export_bundle` wrote, with a plain model file.
        file: The page to write.
        title: Title of the page.

    Returns:
        The size of the page in bytes.

    Raises:
        ExportError: The folder has no plain model file.

    Examples:
        >>> write_page("ice.export", "ice.html", "Icelandic pronunciation")            # doctest: +SKIP
    """
    plain = Path(folder) / PLAIN
    if not plain.is_file():
        raise ExportError(
            f"{folder}: a page needs {PLAIN}, which the folder does not have. Export the model with --plain."
        )
    content = page_of(plain.read_bytes(), title).encode()
    Path(file).write_bytes(content)
    return len(content)


def page_of(model: bytes, title: str) -> str:
    """Return the HTML of the page of a model.

    Args:
        model: Content of the plain model file.
        title: Title of the page.

    Returns:
        The page.
    """
    script, styles = page_script(), render_text(_source(f"{_FOLDER}/page/page.css"), names=_COLORS)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(styles)}; img-src data:; base-uri 'none'; "
        f"form-action 'none'"
    )
    return render_text(
        _source(f"{_FOLDER}/page/page.html"),
        title=title,
        policy=policy,
        styles=Markup(styles),
        script=Markup(script),
        model=b64encode(model).decode(),
    )


def page_script() -> str:
    """Return all modules of the page as one script: each is a function that returns its exports."""
    names = dict[str, str]()
    modules = list[str]()
    _add_module(_ENTRY, names, modules)
    script = '"use strict";\n' + "\n".join(modules)
    assert not _ENDS_SCRIPT.search(script), "a module contains the end of a script"
    return script


def _add_module(path: str, names: dict[str, str], modules: list[str]) -> None:
    """Add a module after the modules that it imports, each only once."""
    source = _BLOCK_COMMENT.sub("", _source(path))
    for _, target in _IMPORT.findall(source):
        imported = _joined(path, target)
        if imported not in names:
            _add_module(imported, names, modules)
    names[path] = f"module{len(names)}"
    exports = ", ".join(name for _, name in _EXPORT.findall(source))

    def constants(found: re.Match[str]) -> str:
        listed = " ".join(found[1].replace(" as ", ": ").split())
        return f"const {{{listed}}} = {names[_joined(path, found[2])]};\n"

    body = _EXPORT.sub(r"\1", _IMPORT.sub(constants, source)).strip()
    modules.append(f"const {names[path]} = (() => {{\n{body}\nreturn {{{exports}}};\n}})();")


def _joined(path: str, target: str) -> str:
    """Return the path of an imported module."""
    parts = list(PurePosixPath(path).parent.parts)
    for part in PurePosixPath(target).parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _source(path: str) -> str:
    """Return a file of the package."""
    return (files("foveal") / path).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return a source of a content security policy that allows this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
