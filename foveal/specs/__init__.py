"""Specs: frozen dataclasses that describe an object to build, as JSON and as single settings.

    @dataclass(frozen=True, kw_only=True, slots=True)
    class SegmentSpec:
        kind: Literal["segment"] = "segment"
        hidden_size: int = setting(128, "width of the score's hidden layer", at_least=1)

A field is an int, float, str, bool, Literal, tuple of these, another spec, or a union of them with or without
None. In a union of specs, `kind` selects the member. A union that names an abstract base class, such as
`AbstractScorerSpec`, accepts every spec that derives from it, including your own. There is no registry: the functions
read only the annotations, and reading JSON imports nothing. Pass your own classes explicitly:
`from_json(TaskSpec, text, also=(MySpec,))`.
"""

from ._checking import check as check
from ._fields import AbstractSpec as AbstractSpec, setting as setting
from ._reading import from_json as from_json, to_data as to_data, to_json as to_json
from ._settings import settings as settings, with_setting as with_setting
