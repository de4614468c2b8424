"""Which small models have a plain model file, and what the error for the others names."""

from tests.export.variants import VARIANTS

REFUSED = {
    "sparsemax": "attention sparsemax",
    "local": "attention local",
    "copy, coverage": "decoder.coverage",
    "point": "decoder.point",
    "shift": "decoder.shift",
    "convolutions": "encoder convolutional",
    "convolutions, plain": "encoder convolutional",
    "words": "encoder words",
    "transformer": "encoder transformer",
    "transformer, copy": "encoder transformer",
    "transformer, segments": "encoder transformer",
}
PLAIN = [name for name in VARIANTS if name not in REFUSED]
