"""Tasks: model, data, loss, metrics and prediction in one object, one task in each file."""

from ._classification import (
    Classification as Classification,
    ClassificationSpec as ClassificationSpec,
)
from ._ensemble import TransductionEnsemble as TransductionEnsemble
from ._language_modeling import (
    LanguageModeling as LanguageModeling,
    LanguageModelingSpec as LanguageModelingSpec,
)
from ._pair_classification import (
    PairClassification as PairClassification,
    PairClassificationSpec as PairClassificationSpec,
)
from ._parsing import Parsing as Parsing, ParsingSpec as ParsingSpec
from ._question_answering import (
    QuestionAnswering as QuestionAnswering,
    QuestionAnsweringSpec as QuestionAnsweringSpec,
    supporting_facts as supporting_facts,
)
from ._specs import TaskSpec as TaskSpec
from ._tagging import Tagging as Tagging, TaggingSpec as TaggingSpec
from ._transduction import Transduction as Transduction, TransductionSpec as TransductionSpec
from .base._answering import (
    AbstractAnsweringTask as AbstractAnsweringTask,
    Answers as Answers,
)
from .base._evaluation import Evaluation as Evaluation, MainMetric as MainMetric
from .base._losses import word_dropout as word_dropout
from .base._prediction import (
    Loss as Loss,
    Prediction as Prediction,
    PredictionSpec as PredictionSpec,
)
from .base._size_classes import size_class as size_class
from .base._task import AbstractTask as AbstractTask
from .base._task_spec import AbstractTaskSpec as AbstractTaskSpec
from .base._text_spec import AbstractTextSpec as AbstractTextSpec
from .explaining._explanation import (
    Alternative as Alternative,
    ExplainedStep as ExplainedStep,
)
from .pictures._captioning import Captioning as Captioning, CaptioningSpec as CaptioningSpec
from .pictures._distortion import DistortionSpec as DistortionSpec
from .pictures._image_classification import (
    ImageClassification as ImageClassification,
    ImageClassificationSpec as ImageClassificationSpec,
)
from .pictures._video_classification import (
    VideoClassification as VideoClassification,
    VideoClassificationSpec as VideoClassificationSpec,
)
from .pictures._visual_question_answering import (
    VisualQuestionAnswering as VisualQuestionAnswering,
    VisualQuestionAnsweringSpec as VisualQuestionAnsweringSpec,
)
from .speech._masking import SpecAugmentSpec as SpecAugmentSpec
from .speech._transcription import (
    Transcription as Transcription,
    TranscriptionSpec as TranscriptionSpec,
)
