"""What a stranger adds to foveal with public names alone: a scorer, an attention, an encoder, a tokenizer, a
metric, a distribution, a source and a task.
"""

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
    SyllableSpec,
    PrefixMatchSpec,
    CardsSource,
    LengthSpec,
)
