"""The search steps of each form of decoder."""

from ..decoders._bahdanau import BahdanauDecoder
from ..decoders._decoder import AbstractDecoder
from ..decoders.transformer._causal_transformer import CausalTransformer
from ..decoders.transformer._decoder import TransformerDecoder
from ._cached_steps import CachedSteps
from ._step_order import AbstractSteps, AttendAfter, AttendBefore
from ._window_steps import WindowSteps

# Any decoder that predicts a token from one vector.
Steppable = AbstractDecoder | BahdanauDecoder | TransformerDecoder | CausalTransformer


def prepare_steps(decoder: Steppable, *, half: bool) -> AbstractSteps:
    """Return the steps of a decoder, prepared from its current weights."""
    match decoder:
        case TransformerDecoder():
            return CachedSteps(decoder, half=half)
        case CausalTransformer():
            return WindowSteps(decoder, half=half)
        case BahdanauDecoder():
            return AttendBefore(decoder, half=half)
        case _:
            return AttendAfter(decoder, half=half)
