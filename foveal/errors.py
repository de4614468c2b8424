"""Exceptions for errors that a user can cause. Each message names the problem, the value, the expected value and a fix.

    FovealError
    ├── ShapeError            sizes that do not fit together
    ├── ValueRangeError       a value outside the range that the structure allows
    ├── ImpossibleError       no structure has positive probability
    ├── DerivativeError       a derivative of a higher order than the algorithm supports
    ├── TransformError        a transform of torch.func that a function does not support
    ├── MissingPackageError   an optional package that is not installed
    ├── DeviceError           a device that this machine does not have
    ├── SpecError             a spec, or text for one, that does not fit its annotations
    ├── DataError             a file, or a line of one, that cannot be used
    │   ├── AudioError        a recording that cannot be used
    │   └── ImageError        an image, or a clip, that cannot be used
    ├── CheckpointError       a checkpoint that is incomplete, changed or from another run
    ├── BundleError           a bundle that is incomplete, changed or from another version
    ├── ExportError           a model without an export, or an export that answers differently
    └── NonFiniteError        a score, a loss or a gradient that is not a finite number

Each exception also derives from the closest built-in exception, so `except ValueError` works too.

`MissingKernelsWarning` is a warning that is issued once and never raised.
"""


class FovealError(Exception):
    """The base class of all exceptions that this library raises on purpose."""


class ShapeError(FovealError, ValueError):
    """Sizes that do not fit together."""


class ValueRangeError(FovealError, ValueError):
    """A value outside the range that the structure allows."""


class ImpossibleError(FovealError, ValueError):
    """No structure has positive probability, so there is none to return."""


class DerivativeError(FovealError, RuntimeError):
    """A derivative of a higher order than the algorithm supports."""


class TransformError(FovealError, RuntimeError):
    """A transform of `torch.func` that a function does not support."""


class MissingKernelsWarning(UserWarning):
    """Inference on the CPU runs without the C++ kernels, because they are not installed."""


class MissingPackageError(FovealError, ImportError):
    """An optional package that is not installed."""


class DeviceError(FovealError, ValueError):
    """A device that this machine does not have, or a name that is no device."""


class SpecError(FovealError, ValueError):
    """A spec, or text for one, that does not fit its annotations."""


class DataError(FovealError, ValueError):
    """A file, or a line of one, that cannot be used."""


class AudioError(DataError):
    """A recording that cannot be used. Training skips its example and reports it."""


class ImageError(DataError):
    """An image, or a clip, that cannot be used. Training skips its example and reports it."""


class CheckpointError(FovealError, ValueError):
    """A checkpoint that is incomplete, changed or from another run."""


class BundleError(FovealError, ValueError):
    """A bundle that is incomplete, changed or from another version."""


class ExportError(FovealError, ValueError):
    """A model that cannot be exported, or an export that does not answer like its model."""


class NonFiniteError(FovealError, FloatingPointError):
    """A score, a loss or a gradient that is not a finite number."""


_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def size_text(number: int) -> str:
    """Format a number of bytes for display.

    Args:
        number: Number of bytes.

    Returns:
        The size in decimal units, with three significant digits.

    Examples:
        >>> size_text(999), size_text(160_000_000_000)
        ('999 bytes', '160 GB')
    """
    size, unit = float(number), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"
