"""All task specs of the package; `foveal.specs.from_json(TaskSpec, text)` picks one by `kind`."""

from ._classification import ClassificationSpec
from ._language_modeling import LanguageModelingSpec
from ._pair_classification import PairClassificationSpec
from ._parsing import ParsingSpec
from ._question_answering import QuestionAnsweringSpec
from ._tagging import TaggingSpec
from ._transduction import TransductionSpec
from .base._task_spec import AbstractTaskSpec
from .pictures._captioning import CaptioningSpec
from .pictures._image_classification import ImageClassificationSpec
from .pictures._video_classification import VideoClassificationSpec
from .pictures._visual_question_answering import VisualQuestionAnsweringSpec
from .speech._transcription import TranscriptionSpec

TaskSpec = (
    TransductionSpec
    | ClassificationSpec
    | PairClassificationSpec
    | TaggingSpec
    | ParsingSpec
    | LanguageModelingSpec
    | QuestionAnsweringSpec
    | CaptioningSpec
    | VisualQuestionAnsweringSpec
    | ImageClassificationSpec
    | VideoClassificationSpec
    | TranscriptionSpec
    | AbstractTaskSpec
)
