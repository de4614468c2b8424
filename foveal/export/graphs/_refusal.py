"""The error for a part without a graph."""

from typing import Protocol, runtime_checkable

from ...errors import ExportError


@runtime_checkable
class Named(Protocol):
    """A spec with the name of its kind."""

    @property
    def kind(self) -> str:
        """The name of the kind."""
        ...


def refusal(part: str, spec: object) -> ExportError:
    """Return the error for a spec of a part, for example an attention, that has no graph."""
    name = spec.kind if isinstance(spec, Named) else type(spec).__name__
    return ExportError(
        f"the {part} {name} has no export yet. Train the model with another {part}; if the {part} is your "
        f"own, register a graph for {type(spec).__name__} with foveal.export."
    )
