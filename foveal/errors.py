"""The errors a user can cause; each says what, got, expected and what to do.

    FovealError
    ├── ShapeError            sizes that do not fit together
    ├── ValueRangeError       a value outside what the structure allows
    ├── ImpossibleError       no structure has positive probability
    ├── DerivativeError       a derivative of higher order than the passes give
    ├── TransformError        a transform of torch.func that a function does not support
    ├── MissingPackageError   an optional package that is not installed
    ├── SpecError             a spec, or text for one, that does not fit its annotations
    ├── DataError             a file, or a line of one, that cannot be used
    │   └── ImageError        an image, or a clip, that cannot be used
    ├── CheckpointError       a checkpoint that is torn, changed or of another run
    ├── BundleError           a bundle that is torn, changed or of another version
    └── NonFiniteError        a score, a loss or a gradient that is not a finite number

Each is also the built-in that it is closest to, so `except ValueError` works too.

`MissingKernelsWarning` is a warning, given once, and never raised.
"""


class FovealError(Exception):
    """The root: `except FovealError` catches what this library raises on purpose."""


class ShapeError(FovealError, ValueError):
    """Sizes that do not fit together."""


class ValueRangeError(FovealError, ValueError):
    """A value outside what the structure allows."""


class ImpossibleError(FovealError, ValueError):
    """No structure has positive probability, so there is none to return."""


class DerivativeError(FovealError, RuntimeError):
    """A derivative of higher order than the passes give."""


class TransformError(FovealError, RuntimeError):
    """A transform of `torch.func` that a function does not support."""


class MissingKernelsWarning(UserWarning):
    """Inference on the CPU runs without the C++ kernels, because they are not installed."""


class MissingPackageError(FovealError, ImportError):
    """An optional package that is not installed."""


class SpecError(FovealError, ValueError):
    """A spec, or text for one, that does not fit its annotations."""


class DataError(FovealError, ValueError):
    """A file, or a line of one, that cannot be used."""


class ImageError(DataError):
    """An image, or a clip, that cannot be used. Training leaves its example out and says so."""


class CheckpointError(FovealError, ValueError):
    """A checkpoint that is torn, changed or of another run."""


class BundleError(FovealError, ValueError):
    """A bundle that is torn, changed or of another version."""


class NonFiniteError(FovealError, FloatingPointError):
    """A score, a loss or a gradient that is not a finite number."""


_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def size_text(number: int) -> str:
    """A number of bytes for a reader.

    >>> size_text(999), size_text(160_000_000_000)
    ('999 bytes', '160 GB')
    """
    size, unit = float(number), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"
