"""Recommend a whole spec for a corpus, with a reason for every setting that is not a default.

The recommendations come from measured runs (see the documentation). They depend on the kind of task, on the
tokenization, and on the number of examples:

    epochs   100 * (800 / n) ** 0.6     100 for 800 words, 25 for 8,000, 8 for 50,000
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import mean
from typing import Any, NamedTuple

from ..data import (
    CharacterSpec,
    Example,
    SentencePieceSpec,
    SpellingSpec,
    TokenizerSpec,
    WhitespaceSpec,
)
from ..errors import DataError
from ..models import (
    AttentionSpec,
    ChainStepsSpec,
    ClassifierSpec,
    DecoderSpec,
    DocumentEncoderSpec,
    LanguageModelSpec,
    LatentHardSpec,
    MemoryNetworkSpec,
    RecurrentSpec,
    Seq2SeqSpec,
    SoftmaxSpec,
    TaggerSpec,
    TextEncoderSpec,
)
from ..tasks._classification import ClassificationSpec
from ..tasks._language_modeling import LanguageModelingSpec
from ..tasks._pair_classification import PairClassificationSpec
from ..tasks._question_answering import QuestionAnsweringSpec
from ..tasks._specs import TaskSpec
from ..tasks._tagging import TaggingSpec, has_spans
from ..tasks._transduction import TransductionSpec
from ..tasks.base._prediction import PredictionSpec
from ._counting import count_examples
from ._inferring import InferredTask, infer_task
from ._inflecting import with_copied_letters
from ._shared_tokens import copy_changes, copy_reason

_MOST_SAMPLED = 10_000  # examples that are read
_MOST_MEASURED = 1_000  # examples whose lengths determine the size of a batch
_FEW, _MANY = 3_000, 30_000  # examples: small networks below, wide ones above
_ENOUGH_TAGGED = 10_000  # tagged sentences: less dropout and larger batches from here on
_LONG_SYMBOL = 2.5  # characters, on average: words rather than phones
_LONG_WORD = 30  # characters, on average: texts rather than words
_LONG_TEXT = 100  # words, on average: documents rather than sentences


class Reason(NamedTuple):
    """The reason for the value of a setting. `path` is as in `foveal.specs.settings`; settings of training are
    below `training`.
    """

    path: str
    sentence: str


class Recommendation(NamedTuple):
    """A recommended task and its training settings."""

    task: TaskSpec
    training: dict[str, Any]  # fields of a TrainingSpec
    reasons: tuple[Reason, ...]


@dataclass
class _Choices:
    """Collects settings with their reasons."""

    num_examples: int
    reasons: list[Reason] = field(default_factory=list)

    def because(self, value: Any, sentence: str, *paths: str) -> Any:
        """Return the value, and remember the sentence as the reason for every path."""
        self.reasons += [Reason(path, sentence) for path in paths]
        return value

    def by_size(self, few: Any, some: Any, many: Any, sentence: str, *paths: str) -> Any:
        """Return one of three values, for few examples, some, or many."""
        n = self.num_examples
        value = few if n < _FEW else some if n < _MANY else many
        return self.because(value, f"{n} training examples: {sentence}", *paths)


def recommend(examples: Iterable[Example]) -> Recommendation:
    """Recommend a spec for training examples, which are read more than once.

    Args:
        examples: Training examples; an iterable that can be read several times.

    Returns:
        The task, the training settings, and the reason for each choice.

    Raises:
        DataError: There are no examples.

    Examples:
        >>> words = [Example("ab" * n, "x y " * n) for n in range(1, 9)]
        >>> found = recommend(words)
        >>> found.task.kind, found.task.outputs, found.training["epochs"]
        ('transduction', 'words', 100.0)
    """
    inferred = infer_task(examples)
    sample = list(islice(examples, _MOST_SAMPLED))
    choices = _Choices(count_examples(examples))
    choices.reasons += [Reason("kind", inferred.reasons[0])]
    for reason in inferred.reasons[1:]:
        side, _, why = reason.partition(": ")
        choices.reasons.append(Reason("source" if side == "text" else side, why))
    some = sample[:_MOST_MEASURED]
    match inferred.task:
        case "transduction":
            spec = _transduction(inferred, sample, choices)
            task, changed = with_copied_letters(spec, sample, choices.num_examples)
            kept = [reason for reason in choices.reasons if reason.path not in changed]
            choices.reasons = kept + [Reason(*each) for each in changed.items()]
            targets = [len(task.target.encode(example.target or "")) + 1 for example in some]
            widths = [sum(pair) for pair in zip(_widths(task.source, some), targets, strict=True)]
        case "classification":
            task = _classification(inferred, sample, choices)
            widths = _widths(task.source, some)
        case "pair_classification":
            task = _pair_classification(inferred, choices)
            widths = _widths(task.source, some)
        case "question_answering":
            task = _question_answering(choices)
            widths = _widths(task.source, some)
        case "tagging":
            task = _tagging(sample, choices)
            widths = [2 * width for width in _widths(task.source, some)]
        case "language_modeling":
            task = _language_modeling(inferred, choices)
            widths = [task.bptt_length]
    training = _training(inferred.task, widths, choices)
    return Recommendation(task, training, tuple(choices.reasons))


def _transduction(
    inferred: InferredTask, sample: Sequence[Example], choices: _Choices
) -> TransductionSpec:
    target = inferred.target
    if target is None:
        raise DataError("recommend: transduction needs a target, got none. Add a second column.")
    is_text, why = _is_text(target, [example.target or "" for example in sample])
    embedding = choices.by_size(
        *(64, 128, 256),
        "the best embedding size on 800 words, on 8,000 words and on 50,000 sentences",
        *("model.encoder.embedding_size", "model.decoder.embedding_size"),
    )
    hidden = choices.by_size(
        *(128, 256, 256),
        "scaled to the amount of data; it determines the speed",
        *("model.encoder.hidden_size", "model.decoder.hidden_size"),
    )
    dropout = choices.by_size(
        *(0.4, 0.3, 0.3),
        "smaller data sets need more regularization",
        *("model.encoder.dropout", "model.decoder.dropout"),
    )
    attention = SoftmaxSpec() if is_text else _attention(choices)
    min_count = _min_count(choices, inferred.source, target) if is_text else 1
    changes = copy_changes(attention, trains_slots=min_count > 1 or not is_text)
    if could_copy := copy_reason(inferred.source, target, sample, changes):
        choices.because(False, could_copy, "model.decoder.copy")
    return TransductionSpec(
        source=inferred.source,
        target=target,
        features=choices.because(inferred.features, "the file has a column of features", "features")
        if inferred.features
        else None,
        outputs=choices.because("texts" if is_text else "words", why, "outputs"),
        min_count=min_count,
        model=Seq2SeqSpec(
            encoder=TextEncoderSpec(embedding_size=embedding, hidden_size=hidden, dropout=dropout),
            decoder=DecoderSpec(
                embedding_size=embedding,
                hidden_size=hidden,
                dropout=dropout,
                attention=attention,
            ),
        ),
        label_smoothing=choices.because(
            0.1, "label smoothing improves generalization", "label_smoothing"
        ),
        prediction=PredictionSpec(
            length_penalty=choices.because(
                1.0,
                "without it, beam search prefers short texts, because every token lowers the probability",
                "prediction.length_penalty",
            )
        )
        if is_text
        else PredictionSpec(),
    )


def _attention(choices: _Choices) -> AttentionSpec:
    """Recommend an attention for words, where each target token depends on about one source position."""
    if choices.num_examples >= _FEW:
        return SoftmaxSpec()
    return choices.because(
        LatentHardSpec(),
        f"{choices.num_examples} training examples: marginalized hard attention made no more errors "
        f"than softmax in four languages, and fewer in three",
        "model.decoder.attention",
    )


def _pair_classification(inferred: InferredTask, choices: _Choices) -> PairClassificationSpec:
    source = _words(inferred.source, choices)
    return PairClassificationSpec(
        source=source, min_count=_min_count(choices, source), word_dropout=_word_dropout(choices)
    )


def _words(source: TokenizerSpec, choices: _Choices) -> TokenizerSpec:
    """Recommend a tokenizer for texts with one label: words rather than subwords, unless there are many examples."""
    if not isinstance(source, SentencePieceSpec) or choices.num_examples >= _MANY:
        return source
    choices.reasons = [reason for reason in choices.reasons if reason.path != "source"]
    return choices.because(
        WhitespaceSpec(),
        "whitespace-separated words: with few examples, whole words work better than subwords",
        "source",
    )


def _classification(
    inferred: InferredTask, sample: Sequence[Example], choices: _Choices
) -> ClassificationSpec:
    source = _words(inferred.source, choices)
    return ClassificationSpec(
        source=source,
        min_count=_min_count(choices, source),
        model=ClassifierSpec(
            encoder=_document_reader(sample, choices),
            dropout=choices.because(0.5, "few texts need more regularization", "model.dropout"),
        ),
        word_dropout=_word_dropout(choices),
    )


def _question_answering(choices: _Choices) -> QuestionAnsweringSpec:
    return QuestionAnsweringSpec(
        model=MemoryNetworkSpec(
            embedding_size=20,
            steps=choices.because(
                ChainStepsSpec(),
                "a chain of facts answered at least as many questions as separate softmaxes on 10 of 12 bAbI tasks",
                "model.steps",
            ),
            random_noise=0.2,
            init_std=choices.because(
                0.1,
                "small initial vectors generalized better from 1,000 questions",
                "model.init_std",
            ),
        )
    )


def _tagging(sample: Sequence[Example], choices: _Choices) -> TaggingSpec:
    spans = has_spans({tag for example in sample for tag in (example.target or "").split()})
    return TaggingSpec(
        tune_recall=choices.because(
            True,
            "tags mark spans: after training, the score of O is set for the best span F1 on the validation "
            "set",
            "tune_recall",
        )
        if spans
        else False,
        model=TaggerSpec(
            encoder=TextEncoderSpec(
                embedding_size=choices.by_size(
                    64,
                    64,
                    128,
                    "rare words need only small embeddings",
                    "model.encoder.embedding_size",
                ),
                hidden_size=choices.by_size(
                    128, 128, 256, "scaled to the amount of data", "model.encoder.hidden_size"
                ),
                dropout=choices.because(
                    0.5 if choices.num_examples < _ENOUGH_TAGGED else 0.3,
                    f"{choices.num_examples} training examples: with few examples, a model easily "
                    f"memorizes words together with their tags",
                    "model.encoder.dropout",
                ),
            )
        ),
        spelling=choices.because(
            SpellingSpec(),
            "the model reads prefixes, suffixes, lowercase form and capitalization of each word, "
            "because new texts have new words",
            "spelling",
        ),
        min_count=_min_count(choices, WhitespaceSpec()),
        word_dropout=_word_dropout(choices),
    )


def _language_modeling(inferred: InferredTask, choices: _Choices) -> LanguageModelingSpec:
    return LanguageModelingSpec(
        source=inferred.source,
        min_count=_min_count(choices, inferred.source),
        model=LanguageModelSpec(
            hidden_size=choices.by_size(
                128,
                256,
                512,
                "scaled to the amount of text; it determines the speed",
                "model.hidden_size",
            ),
            dropout=choices.by_size(
                0.4, 0.3, 0.2, "a model memorizes a small text more easily", "model.dropout"
            ),
        ),
    )


def _document_reader(
    sample: Sequence[Example], choices: _Choices
) -> TextEncoderSpec | DocumentEncoderSpec:
    """Recommend two levels for documents with a sentence on each line, one for other texts."""
    if mean("\n" in str(example.source).strip() for example in sample) > 0.5:
        words = _reader(choices, "model.encoder.words")
        return choices.because(
            DocumentEncoderSpec(
                words=words, sentences=RecurrentSpec(hidden_size=words.hidden_size)
            ),
            "most texts have several lines: the model reads each line as a sentence, and the "
            "sentences as a document",
            "model.encoder",
        )
    words = mean(len(example.text.split()) for example in sample)
    if words > _LONG_TEXT:
        choices.reasons.append(
            Reason(
                "model.encoder",
                f"{words:.0f} words per text on one line, read as one sequence. To read documents "
                f"sentence by sentence, write each sentence on a separate line of a JSON Lines file",
            )
        )
    return _reader(choices, "model.encoder")


def _reader(choices: _Choices, path: str) -> TextEncoderSpec:
    """Recommend an encoder for whole texts, whose words are sparse: narrow, with much dropout."""
    return TextEncoderSpec(
        embedding_size=choices.by_size(
            64, 64, 128, "rare words need only small embeddings", f"{path}.embedding_size"
        ),
        hidden_size=choices.by_size(
            64, 64, 128, "scaled to the amount of data", f"{path}.hidden_size"
        ),
        dropout=choices.because(
            0.5, "a model easily memorizes words together with their label", f"{path}.dropout"
        ),
    )


def _min_count(choices: _Choices, *sides: TokenizerSpec) -> int:
    has_words = any(isinstance(side, WhitespaceSpec) for side in sides)
    if not has_words or choices.num_examples < _FEW:
        return 1
    return choices.because(
        2,
        "words that occur once become the unknown token, which trains its embedding",
        "min_count",
    )


def _word_dropout(choices: _Choices) -> float:
    return choices.because(
        0.1,
        "new texts have new words, so training replaces some words by the unknown token",
        "word_dropout",
    )


def _is_text(target: TokenizerSpec, targets: Sequence[str]) -> tuple[bool, str]:
    """Return True if targets are texts, which can be partly correct, rather than single words."""
    symbols = [target.encode(text) for text in targets]
    if isinstance(target, CharacterSpec):
        spaced = mean([" " in text.strip() for text in targets])
        if spaced > 0.5 or mean(map(len, symbols)) > _LONG_WORD:
            return True, "targets are longer than words: scored as texts, by BLEU"
        return False, "targets are single words: scored as correct or wrong (WER)"
    lengths = [len(symbol) for text in symbols for symbol in text]
    size = mean(lengths) if lengths else 0.0
    if isinstance(target, WhitespaceSpec) and size < _LONG_SYMBOL:
        return False, (
            f"tokens of {size:.1f} characters are letters or phonemes, and a target is one word: "
            f"scored as correct or wrong (WER)"
        )
    return True, "targets consist of words: scored as texts, by BLEU"


def _training(kind: str, widths: Sequence[int], choices: _Choices) -> dict[str, Any]:
    """Recommend the length of training and the size of batches; `widths` are numbers of positions of some examples."""
    n = choices.num_examples
    match kind:
        case "transduction":
            epochs, size = 100 * (800 / n) ** 0.6, 32 if n < _FEW else 64
        case "language_modeling":
            epochs, size = 20 * (10_000 / n) ** 0.5, 32
        case "tagging":
            epochs, size = 20 * (1_000 / n) ** 0.5, 32 if n < _ENOUGH_TAGGED else 64
        case "question_answering":
            epochs, size = 60 * (1_000 / n) ** 0.5, 32
        case _:
            epochs, size = 15 * (1_000 / n) ** 0.5, 32
    rounded = max(1.0, min(100.0, float(f"{epochs:.2g}")))
    return {
        "epochs": choices.because(
            rounded,
            f"{n} training examples: this gives about the number of updates that measured runs needed",
            "training.epochs",
        ),
        "batch_tokens": choices.because(
            max(int(size * mean(widths)), 2 * max(widths)),
            f"about {size} examples per batch: smaller batches are noisy and slow, larger ones give "
            f"fewer updates",
            "training.batch_tokens",
        ),
        "learning_rate": choices.because(
            1e-2 if kind == "question_answering" else 2e-3,
            "the highest stable value for networks of this size",
            "training.learning_rate",
        ),
    }


def _widths(tokenizer: TokenizerSpec, examples: Sequence[Example]) -> list[int]:
    """Return the number of positions of each source in a batch, including the end token."""
    return [len(tokenizer.encode(str(example.source))) + 1 for example in examples]
