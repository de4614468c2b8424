"""Models: whole networks wired for one shape of problem; tensors in, tensors out.

Each has a spec, a frozen dataclass that holds its free choices and builds it; `foveal.specs`
writes a spec as JSON and reads it back.
"""

from ._attention_specs import (
    AttentionSpec as AttentionSpec,
    ExactHardSpec as ExactHardSpec,
    HardSpec as HardSpec,
    HeadSelectionSpec as HeadSelectionSpec,
    LocalSpec as LocalSpec,
    MonotoneSpec as MonotoneSpec,
    MultiHeadSpec as MultiHeadSpec,
    PathSpec as PathSpec,
    PlaceAttentionSpec as PlaceAttentionSpec,
    SegmentSpec as SegmentSpec,
    SelfAttentionSpec as SelfAttentionSpec,
    SigmoidSpec as SigmoidSpec,
    SoftmaxSpec as SoftmaxSpec,
    SparsemaxSpec as SparsemaxSpec,
    SyntacticSpec as SyntacticSpec,
    is_exclusive as is_exclusive,
)
from ._backbone_spec import BackboneSpec as BackboneSpec, backbone_spec as backbone_spec
from ._captioner import Captioner as Captioner, CaptionerSpec as CaptionerSpec
from ._classifier import (
    Classified as Classified,
    Classifier as Classifier,
    ClassifierSpec as ClassifierSpec,
    Pooling as Pooling,
)
from ._clip_classifier import (
    ClipClassifier as ClipClassifier,
    ClipClassifierSpec as ClipClassifierSpec,
)
from ._decoder_spec import DecoderSpec as DecoderSpec
from ._document_spec import DocumentEncoderSpec as DocumentEncoderSpec
from ._encoder_decoder import (
    AbstractEncoderDecoder as AbstractEncoderDecoder,
    Encode as Encode,
    Prepared as Prepared,
)
from ._encoder_specs import (
    EncoderSpec as EncoderSpec,
    TextEncoderSpec as TextEncoderSpec,
    WordEncoderSpec as WordEncoderSpec,
)
from ._language_model import (
    LanguageModel as LanguageModel,
    LanguageModelSpec as LanguageModelSpec,
    detached as detached,
)
from ._memory_reader import (
    Answered as Answered,
    MemoryReader as MemoryReader,
    MemoryReaderSpec as MemoryReaderSpec,
)
from ._pair_matcher import (
    Matched as Matched,
    PairMatcher as PairMatcher,
    PairMatcherSpec as PairMatcherSpec,
)
from ._reading_steps import (
    AbstractSteps as AbstractSteps,
    ChainSteps as ChainSteps,
    ChainStepsSpec as ChainStepsSpec,
    SoftSteps as SoftSteps,
    SoftStepsSpec as SoftStepsSpec,
    StepsSpec as StepsSpec,
    Stepwise as Stepwise,
)
from ._recurrent_spec import (
    AbstractRecurrentSpec as AbstractRecurrentSpec,
    RecurrentSpec as RecurrentSpec,
)
from ._scorer_specs import (
    AdditiveSpec as AdditiveSpec,
    BilinearSpec as BilinearSpec,
    DotSpec as DotSpec,
    LinearSpec as LinearSpec,
    ScorerSpec as ScorerSpec,
)
from ._seq2seq import Seq2Seq as Seq2Seq, Seq2SeqSpec as Seq2SeqSpec, Source as Source
from ._tagger import SpelledSpec as SpelledSpec, Tagger as Tagger, TaggerSpec as TaggerSpec
from ._vision_specs import (
    FramesEncoderSpec as FramesEncoderSpec,
    ImageEncoderSpec as ImageEncoderSpec,
    VectorFrameSpec as VectorFrameSpec,
)
from ._visual_reader import (
    LookedUp as LookedUp,
    VisualReader as VisualReader,
    VisualReaderSpec as VisualReaderSpec,
)
