"""Networks: recurrent cells and stacks, encoders that make a `Memory`, decoders that read it.

Each is an `nn.Module` without state of its own between calls: what one call hands to the next is
a small named value.
"""

from ._bidirectional import Bidirectional as Bidirectional
from ._bridges import (
    AbstractBridge as AbstractBridge,
    BothWays as BothWays,
    EveryStep as EveryStep,
    InitialState as InitialState,
    Unconditioned as Unconditioned,
    no_memory as no_memory,
    summary_of as summary_of,
)
from ._cells import (
    AbstractCell as AbstractCell,
    ElmanCell as ElmanCell,
    GRUCell as GRUCell,
    LSTMCell as LSTMCell,
)
from ._decoders import (
    AbstractAttentionDecoder as AbstractAttentionDecoder,
    AbstractDecoder as AbstractDecoder,
    AbstractRecurrentDecoder as AbstractRecurrentDecoder,
    AttentionDecoder as AttentionDecoder,
    DecoderState as DecoderState,
    PlainDecoder as PlainDecoder,
    Scored as Scored,
    Step as Step,
    Taught as Taught,
    Unrolled as Unrolled,
)
from ._document_encoder import Document as Document, DocumentEncoder as DocumentEncoder
from ._encoders import AbstractEncoder as AbstractEncoder
from ._facts_encoder import FactsEncoder as FactsEncoder
from ._frames_encoder import FramesEncoder as FramesEncoder
from ._hugging_face import (
    HuggingFaceImageEncoder as HuggingFaceImageEncoder,
    HuggingFaceTextEncoder as HuggingFaceTextEncoder,
    backbone as backbone,
    backbone_config as backbone_config,
)
from ._image_encoder import ImageEncoder as ImageEncoder
from ._initialisation import (
    initialise_orthogonal as initialise_orthogonal,
    initialise_uniform as initialise_uniform,
    open_forget_gates as open_forget_gates,
)
from ._input_feeding import InputFeedingDecoder as InputFeedingDecoder
from ._layers import AbstractLayer as AbstractLayer, CellState as CellState, Ran as Ran
from ._marginal_decoder import MarginalDecoder as MarginalDecoder
from ._marginal_reading import Posterior as Posterior
from ._marginal_stepping import MarginalStepper as MarginalStepper
from ._marginal_walks import (
    AbstractWalk as AbstractWalk,
    ForwardWalk as ForwardWalk,
    FreeWalk as FreeWalk,
)
from ._output import TokenOutput as TokenOutput
from ._prepared_encoder import PreparedEncoder as PreparedEncoder
from ._self_attentive import SelfAttentiveEncoder as SelfAttentiveEncoder
from ._spelled_embedding import SpelledEmbedding as SpelledEmbedding
from ._stacks import (
    RecurrentStack as RecurrentStack,
    StackRan as StackRan,
    StackState as StackState,
    StackStep as StackStep,
    recurrent_stack as recurrent_stack,
)
from ._stepping import DecoderStepper as DecoderStepper
from ._stepping_state import Stepped as Stepped, SteppingState as SteppingState
from ._text_encoder import TextEncoder as TextEncoder
from ._tree import TreeEncoder as TreeEncoder
from ._word_encoder import WordEncoder as WordEncoder
