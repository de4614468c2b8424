"""Run exported models without torch.

    from foveal_runtime import load

    model = load("ice.export")
    model.predict("reykjavík").output

The distribution `foveal-runtime` contains this package under the name `foveal_runtime`. It needs numpy, and ONNX Runtime
to answer. The library itself takes tokens, vocabularies, size classes and calibration from here, so an exported model
and its original split, number and calibrate with the same code.
"""

from ._answers import (
    Answer as Answer,
    Attention as Attention,
    Candidate as Candidate,
    Source as Source,
)
from ._errors import ExportedModelError as ExportedModelError
from ._model import Model as Model, load as load
