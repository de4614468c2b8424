"""Show specs in the reference as tables of settings: name, type, default and description.

A griffe extension, named in mkdocs.yml. Fields of a spec are declared with `setting(default, "description")`; without
it, the reference would show the call in place of the default, and no description.
"""

import dataclasses
from importlib import import_module
from typing import Any, final

from griffe import Attribute, Class, Extension
from typing_extensions import override

from foveal.specs._fields import Bounds


@final
class Settings(Extension):
    """Replaces calls of `setting` by defaults, and adds the descriptions to the docstring of the class."""

    @override
    def on_class_members(self, *, cls: Class, **kwargs: Any) -> None:
        """Rewrite the settings of one class, after griffe has read its members."""
        declared = {
            name: member
            for name, member in cls.members.items()
            if isinstance(member, Attribute) and str(member.value).startswith("setting(")
        }
        if not declared:
            return
        owner: Any = import_module(cls.module.path)
        for part in cls.path.removeprefix(f"{cls.module.path}.").split("."):
            owner = getattr(owner, part)
        lines = []
        for field in dataclasses.fields(owner):
            if field.name not in declared:
                continue
            has_default = field.default is not dataclasses.MISSING
            declared[field.name].value = _default(field.default) if has_default else None
            lines.append(f"    {field.name}: {_description(field)}")
        if lines and cls.docstring is not None and "Args:" not in cls.docstring.value:
            # The same object, which knows how docstrings are parsed.
            cls.docstring.value = "\n".join([f"{cls.docstring.value}\n\nArgs:", *lines])


def _default(value: Any) -> str:
    """Write a default: a spec by the name of its class, since its own table has its settings."""
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__}()"
    return repr(value)


def _description(field: dataclasses.Field[Any]) -> str:
    """Join the description of a setting and its limits."""
    about = str(field.metadata.get("about", ""))
    bounds: Bounds = field.metadata.get("bounds") or Bounds(None, None, None)
    limits = {"at least": bounds.at_least, "above": bounds.above, "at most": bounds.at_most}
    shown = ", ".join(f"{name} {limit}" for name, limit in limits.items() if limit is not None)
    text = f"{about[:1].upper()}{about[1:]}" if about else "See the type."
    return f"{text}; {shown}." if shown else f"{text}."
