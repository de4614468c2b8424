"""Every task that there is; `foveal.specs.from_json(TaskSpec, text)` picks by kind."""

from ._classification import ClassificationSpec
from ._language_modeling import LanguageModelingSpec
from ._pair_classification import PairClassificationSpec
from ._question_answering import QuestionAnsweringSpec
from ._tagging import TaggingSpec
from ._transduction import TransductionSpec
from .pictures._captioning import CaptioningSpec
from .pictures._video_classification import VideoClassificationSpec
from .pictures._visual_question_answering import VisualQuestionAnsweringSpec

TextTaskSpec = (
    TransductionSpec
    | ClassificationSpec
    | PairClassificationSpec
    | TaggingSpec
    | LanguageModelingSpec
    | QuestionAnsweringSpec
)
# Those whose sources are paths of images, or of clips.
PictureTaskSpec = CaptioningSpec | VisualQuestionAnsweringSpec | VideoClassificationSpec
TaskSpec = TextTaskSpec | PictureTaskSpec
