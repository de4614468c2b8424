"""The error for a part that has a graph, but no form in a plain model file."""

from ...errors import ExportError
from ..graphs._refusal import Named


def plain_refusal(part: str, spec: object) -> ExportError:
    """Return the error for a spec of a part, for example an attention, that plain model files do not have."""
    name = spec.kind if isinstance(spec, Named) else type(spec).__name__
    return ExportError(
        f"the {part} {name} has no form in a plain model file, so the model was not exported. Export it without --plain, "
        f"or train it with another {part}."
    )


def setting_refusal(name: str, expected: str) -> ExportError:
    """Return the error for a setting that plain model files do not have; the message names the expected value."""
    return ExportError(
        f"{name} has no form in a plain model file, expected {expected}, so the model was not exported. Export it without "
        f"--plain, or train it with --set {name}={expected}."
    )
