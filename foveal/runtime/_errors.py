"""The errors of the runtime. Each message names the problem, the value, the expected value and a fix."""


class ExportedModelError(ValueError):
    """An exported model, or an input for it, that cannot be used."""
