"""The errors a user can cause; each says what, got, expected and what to do.

    SightlineError
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


class SightlineError(Exception):
    """The root: `except SightlineError` catches what this library raises on purpose."""


class ShapeError(SightlineError, ValueError):
    """Sizes that do not fit together."""


class ValueRangeError(SightlineError, ValueError):
    """A value outside what the structure allows."""


class ImpossibleError(SightlineError, ValueError):
    """No structure has positive probability, so there is none to return."""


class DerivativeError(SightlineError, RuntimeError):
    """A derivative of higher order than the passes give."""


class TransformError(SightlineError, RuntimeError):
    """A transform of `torch.func` that a function does not support."""


class MissingKernelsWarning(UserWarning):
    """Inference on the CPU runs without the C++ kernels, because they are not installed."""


class MissingPackageError(SightlineError, ImportError):
    """An optional package that is not installed."""


class SpecError(SightlineError, ValueError):
    """A spec, or text for one, that does not fit its annotations."""


class DataError(SightlineError, ValueError):
    """A file, or a line of one, that cannot be used."""


class ImageError(DataError):
    """An image, or a clip, that cannot be used. Training leaves its example out and says so."""


class CheckpointError(SightlineError, ValueError):
    """A checkpoint that is torn, changed or of another run."""


class BundleError(SightlineError, ValueError):
    """A bundle that is torn, changed or of another version."""


class NonFiniteError(SightlineError, FloatingPointError):
    """A score, a loss or a gradient that is not a finite number."""
