"""Tasks: model, data, loss, metrics and prediction in one object, one task in each file."""

from ._answerer import AbstractAnswerer as AbstractAnswerer
from ._answering import (
    AbstractAnswering as AbstractAnswering,
    AbstractAnsweringTask as AbstractAnsweringTask,
    Answers as Answers,
)
from ._beginning import begin_from as begin_from
from ._bundle import (
    bundle_files as bundle_files,
    load_bundle as load_bundle,
    save_bundle as save_bundle,
)
from ._calibration import (
    Calibration as Calibration,
    Scaling as Scaling,
    fit_calibration as fit_calibration,
)
from ._captioning import Captioning as Captioning, CaptioningSpec as CaptioningSpec
from ._cider import cider as cider
from ._classification import (
    Classification as Classification,
    ClassificationSpec as ClassificationSpec,
)
from ._distortion import DistortionSpec as DistortionSpec
from ._ensemble import TransductionEnsemble as TransductionEnsemble
from ._evaluation import (
    Baseline as Baseline,
    Evaluation as Evaluation,
    MainMetric as MainMetric,
    Sample as Sample,
)
from ._intervals import (
    Comparison as Comparison,
    Metric as Metric,
    compare as compare,
    measure as measure,
)
from ._labelling import AbstractLabelling as AbstractLabelling
from ._language_modelling import (
    GenerationSpec as GenerationSpec,
    LanguageModelling as LanguageModelling,
    LanguageModellingSpec as LanguageModellingSpec,
)
from ._losses import (
    alignment_loss as alignment_loss,
    doubly_stochastic_loss as doubly_stochastic_loss,
)
from ._metrics import (
    accuracy as accuracy,
    bleu as bleu,
    character_error_rate as character_error_rate,
    chrf as chrf,
    exact_match as exact_match,
    f1 as f1,
    length_to_failure as length_to_failure,
    perplexity as perplexity,
    span_f1 as span_f1,
    spans as spans,
    word_error_rate as word_error_rate,
    wrong_words as wrong_words,
)
from ._outline import num_weights as num_weights
from ._pair_classification import (
    PairClassification as PairClassification,
    PairClassificationSpec as PairClassificationSpec,
)
from ._prediction import (
    Candidate as Candidate,
    Loss as Loss,
    Prediction as Prediction,
    PredictionSpec as PredictionSpec,
)
from ._prepared import build_on as build_on, corpus_data as corpus_data
from ._question_answering import (
    QuestionAnswering as QuestionAnswering,
    QuestionAnsweringSpec as QuestionAnsweringSpec,
    supporting_facts as supporting_facts,
)
from ._recommending import (
    Reason as Reason,
    Recommendation as Recommendation,
    recommend as recommend,
)
from ._recommending_pictures import recommend_pictures as recommend_pictures
from ._reliability import (
    Bin as Bin,
    Reliability as Reliability,
    RiskCoverage as RiskCoverage,
    reliability as reliability,
    risk_coverage as risk_coverage,
)
from ._searching import Reading as Reading
from ._size_classes import size_class as size_class
from ._slices import (
    Slice as Slice,
    length_parts as length_parts,
    length_slices as length_slices,
    rarity_slices as rarity_slices,
)
from ._speaking import Speaking as Speaking
from ._specs import (
    PictureTaskSpec as PictureTaskSpec,
    TaskSpec as TaskSpec,
    TextTaskSpec as TextTaskSpec,
)
from ._statistics import Statistics as Statistics
from ._tagging import Tagging as Tagging, TaggingSpec as TaggingSpec
from ._tally import Symbols as Symbols, Tally as Tally
from ._task import AbstractTask as AbstractTask
from ._transduction import Transduction as Transduction, TransductionSpec as TransductionSpec
from ._video_classification import (
    VideoClassification as VideoClassification,
    VideoClassificationSpec as VideoClassificationSpec,
)
from ._visual_question_answering import (
    VisualQuestionAnswering as VisualQuestionAnswering,
    VisualQuestionAnsweringSpec as VisualQuestionAnsweringSpec,
)
from ._vocabularies import Lengths as Lengths, Vocabularies as Vocabularies
from ._writing import AbstractWriting as AbstractWriting
