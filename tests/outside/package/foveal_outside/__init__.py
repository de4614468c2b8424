"""Parts that a user adds to foveal through public names only: a scorer, an attention, encoders for texts
and images, a tokenizer, a metric, a distribution, a source, models and a task.
"""

from .image import PatchEncoderSpec as PatchEncoderSpec
from .models import BagSpec as BagSpec, LookupSpec as LookupSpec
from .parts import (
    CosineSpec as CosineSpec,
    MeanEncoderSpec as MeanEncoderSpec,
    PeaksSpec as PeaksSpec,
    PrefixMatchSpec as PrefixMatchSpec,
    SyllableSpec as SyllableSpec,
)
from .source import CardsSource as CardsSource
from .task import LengthSpec as LengthSpec

SPECS = (
    CosineSpec,
    PeaksSpec,
    MeanEncoderSpec,
    PatchEncoderSpec,
    SyllableSpec,
    PrefixMatchSpec,
    CardsSource,
    BagSpec,
    LookupSpec,
    LengthSpec,
)
