"""Models: complete networks for one kind of problem; tensors in, tensors out.

Each model has a spec, a frozen dataclass that holds its hyperparameters and builds it; `foveal.specs`
converts specs to and from JSON.
"""

from ._attentive_reader import (
    AttentiveReader as AttentiveReader,
    AttentiveReaderSpec as AttentiveReaderSpec,
)
from ._captioner import Captioner as Captioner, CaptionerSpec as CaptionerSpec
from ._checks import checked_tokens as checked_tokens
from ._classifier import (
    AbstractClassifierSpec as AbstractClassifierSpec,
    Classified as Classified,
    Classifier as Classifier,
    ClassifierSpec as ClassifierSpec,
)
from ._decomposable_attention import (
    DecomposableAttention as DecomposableAttention,
    DecomposableAttentionSpec as DecomposableAttentionSpec,
)
from ._language_model import (
    LanguageModel as LanguageModel,
    LanguageModelSpec as LanguageModelSpec,
    detached as detached,
)
from ._memory_network import MemoryNetwork as MemoryNetwork, MemoryNetworkSpec as MemoryNetworkSpec
from ._parser import (
    Parser as Parser,
    ParserSizes as ParserSizes,
    ParserSpec as ParserSpec,
    Parses as Parses,
)
from ._picture_classifier import (
    ImageClassifierSpec as ImageClassifierSpec,
    VideoClassifierSpec as VideoClassifierSpec,
)
from ._reading_steps import (
    ChainStepsSpec as ChainStepsSpec,
    SoftStepsSpec as SoftStepsSpec,
    StepsSpec as StepsSpec,
)
from ._seq2seq import Seq2Seq as Seq2Seq, Seq2SeqSpec as Seq2SeqSpec
from ._tagger import (
    AbstractTaggerSpec as AbstractTaggerSpec,
    Tagger as Tagger,
    TaggerSpec as TaggerSpec,
)
from ._transcriber import Transcriber as Transcriber, TranscriberSpec as TranscriberSpec
from ._transformer_language_model import (
    TransformerLanguageModelSpec as TransformerLanguageModelSpec,
)
from ._vqa_model import VQAModelSpec as VQAModelSpec
from ._word_by_word import (
    WordByWordAttention as WordByWordAttention,
    WordByWordSpec as WordByWordSpec,
)
from .parts._attention_specs import (
    AbstractAttentionSpec as AbstractAttentionSpec,
    AbstractSelfAttentionSpec as AbstractSelfAttentionSpec,
    AttentionSpec as AttentionSpec,
    HardSpec as HardSpec,
    HeadSelectionSpec as HeadSelectionSpec,
    HierarchicalSpec as HierarchicalSpec,
    LatentHardSpec as LatentHardSpec,
    LatentMonotoneSpec as LatentMonotoneSpec,
    LocalSpec as LocalSpec,
    MultiHeadSpec as MultiHeadSpec,
    PathSpec as PathSpec,
    PerQueryAttentionSpec as PerQueryAttentionSpec,
    SegmentSpec as SegmentSpec,
    SelfAttentionSpec as SelfAttentionSpec,
    SigmoidSpec as SigmoidSpec,
    SoftmaxSpec as SoftmaxSpec,
    SparsemaxSpec as SparsemaxSpec,
    SyntacticSpec as SyntacticSpec,
)
from .parts._backbone_spec import BackboneSpec as BackboneSpec, backbone_spec as backbone_spec
from .parts._convolutional_spec import ConvolutionalEncoderSpec as ConvolutionalEncoderSpec
from .parts._decoder_spec import (
    AbstractDecoderSpec as AbstractDecoderSpec,
    DecoderSpec as DecoderSpec,
)
from .parts._document_spec import DocumentEncoderSpec as DocumentEncoderSpec
from .parts._encoder_spec import AbstractEncoderSpec as AbstractEncoderSpec
from .parts._encoder_specs import (
    EncoderSpec as EncoderSpec,
    TextEncoderSpec as TextEncoderSpec,
    TransformerEncoderSpec as TransformerEncoderSpec,
    WordEncoderSpec as WordEncoderSpec,
)
from .parts._given_heads_spec import GivenHeadsSpec as GivenHeadsSpec
from .parts._heads_spec import HeadsSpec as HeadsSpec
from .parts._image_spec import AbstractImageEncoderSpec as AbstractImageEncoderSpec
from .parts._pyramidal_spec import PyramidalEncoderSpec as PyramidalEncoderSpec
from .parts._recurrent_spec import (
    AbstractCellSpec as AbstractCellSpec,
    DeepCellSpec as DeepCellSpec,
    LieAccessCellSpec as LieAccessCellSpec,
    NTMCellSpec as NTMCellSpec,
    RecurrentSpec as RecurrentSpec,
    WindowCellSpec as WindowCellSpec,
)
from .parts._recursive_specs import (
    BracketedEncoderSpec as BracketedEncoderSpec,
    RecursiveEncoderSpec as RecursiveEncoderSpec,
)
from .parts._scorer_specs import (
    AbstractScorerSpec as AbstractScorerSpec,
    AdditiveSpec as AdditiveSpec,
    BilinearSpec as BilinearSpec,
    DotSpec as DotSpec,
    LinearSpec as LinearSpec,
)
from .parts._transformer_decoder_spec import TransformerDecoderSpec as TransformerDecoderSpec
from .parts._vision_specs import (
    FramesEncoderSpec as FramesEncoderSpec,
    ImageEncoderSpec as ImageEncoderSpec,
)
