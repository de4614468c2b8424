"""Networks: recurrent cells and stacks, encoders that build a `Memory`, decoders that read it.

Each is an `nn.Module` that keeps no state between calls; calls pass state as small named values.
"""

from ._bridges import (
    AbstractBridge as AbstractBridge,
    EveryStepBridge as EveryStepBridge,
    InitialStateAndEveryStepBridge as InitialStateAndEveryStepBridge,
    InitialStateBridge as InitialStateBridge,
    LearnedStateBridge as LearnedStateBridge,
    NoBridge as NoBridge,
)
from ._chain_crf import ChainCRF as ChainCRF
from ._dropout import SharedDropout as SharedDropout
from .decoders._bahdanau import BahdanauDecoder as BahdanauDecoder
from .decoders._decoder import (
    AbstractDecoder as AbstractDecoder,
    AttentionDecoder as AttentionDecoder,
    PlainDecoder as PlainDecoder,
)
from .decoders._input_feeding import InputFeedingDecoder as InputFeedingDecoder
from .decoders._steps import DecoderState as DecoderState
from .decoders.latent._decoder import LatentDecoder as LatentDecoder
from .decoders.transformer._causal_transformer import CausalTransformer as CausalTransformer
from .decoders.transformer._decoder import TransformerDecoder as TransformerDecoder
from .decoders.transformer._layer import TransformerDecoderLayer as TransformerDecoderLayer
from .encoders._convolutional import ConvolutionalEncoder as ConvolutionalEncoder
from .encoders._document_encoder import DocumentEncoder as DocumentEncoder
from .encoders._encoder import AbstractEncoder as AbstractEncoder
from .encoders._facts_encoder import FactsEncoder as FactsEncoder
from .encoders._frames_encoder import FramesEncoder as FramesEncoder
from .encoders._hugging_face import (
    HuggingFaceImageEncoder as HuggingFaceImageEncoder,
    HuggingFaceTextEncoder as HuggingFaceTextEncoder,
)
from .encoders._image_encoder import ImageEncoder as ImageEncoder
from .encoders._pyramidal import PyramidalEncoder as PyramidalEncoder
from .encoders._self_attentive import (
    GivenHeadsEncoder as GivenHeadsEncoder,
    SelfAttentiveEncoder as SelfAttentiveEncoder,
)
from .encoders._text_encoder import TextEncoder as TextEncoder
from .encoders._word_encoder import WordEncoder as WordEncoder
from .encoders.transformer._encoder import TransformerEncoder as TransformerEncoder
from .encoders.transformer._layer import TransformerLayer as TransformerLayer
from .encoders.trees._recursive import RecursiveEncoder as RecursiveEncoder
from .recurrent._cells import (
    AbstractCell as AbstractCell,
    ElmanCell as ElmanCell,
    GRUCell as GRUCell,
    LSTMCell as LSTMCell,
)
from .recurrent._initialization import (
    init_forget_bias as init_forget_bias,
    initialize_embeddings as initialize_embeddings,
    initialize_orthogonal as initialize_orthogonal,
    initialize_uniform as initialize_uniform,
)
from .recurrent._layers import CellState as CellState
from .recurrent._lie_access import LieAccessCell as LieAccessCell
from .recurrent._stacks import (
    RecurrentStack as RecurrentStack,
    StackState as StackState,
    recurrent_stack as recurrent_stack,
)
from .recurrent._tree import TreeEncoder as TreeEncoder
from .recurrent._turing import NTMCell as NTMCell
from .recurrent._window import WindowCell as WindowCell
from .search._stepping import DecoderStepper as DecoderStepper
from .search._stepping_state import SearchStep as SearchStep
