"""One small task of every kind, and transduction with every decoder and attention, each with its examples."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch

from foveal.data import Example, FeaturesSpec, SpellingSpec, WhitespaceSpec
from foveal.data.formats._treebank import treebank
from foveal.models import (
    AttentiveReaderSpec,
    CaptionerSpec,
    ClassifierSpec,
    ConvolutionalEncoderSpec,
    DecoderSpec,
    DecomposableAttentionSpec,
    FramesEncoderSpec,
    HardSpec,
    ImageClassifierSpec,
    ImageEncoderSpec,
    LanguageModelSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    LocalSpec,
    MemoryNetworkSpec,
    MultiHeadSpec,
    ParserSpec,
    PathSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SigmoidSpec,
    SoftmaxSpec,
    SparsemaxSpec,
    TaggerSpec,
    TextEncoderSpec,
    TransformerDecoderSpec,
    TransformerEncoderSpec,
    TransformerLanguageModelSpec,
    VideoClassifierSpec,
    VQAModelSpec,
    WordByWordSpec,
)
from foveal.tasks import (
    AbstractTask,
    ClassificationSpec,
    ImageClassificationSpec,
    LanguageModelingSpec,
    PairClassificationSpec,
    ParsingSpec,
    PredictionSpec,
    QuestionAnsweringSpec,
    TaggingSpec,
    TransductionSpec,
    VideoClassificationSpec,
    VisualQuestionAnsweringSpec,
)
from tests.tasks import tiny
from tests.tasks.pictures import BARS, IMAGE, bars
from tests.tasks.test_visual_tasks import clips, questions
from tests.tasks.tones import TONES, tones
from tests.tasks.treebanks import write_treebank


class Made(NamedTuple):
    task: AbstractTask[Any]
    examples: Sequence[Example]


Maker: TypeAlias = Callable[[Path], Made]

BEAM = PredictionSpec(beam_size=2, trace=True)
TEXT = TextEncoderSpec(embedding_size=8, hidden_size=8, dropout=0.0)
TRANSFORMER = TransformerEncoderSpec(
    model_size=8, num_layers=1, num_heads=2, feed_forward_size=16, dropout=0.0
)
PARSER = ParserSpec(
    embedding_size=8,
    hidden_size=8,
    num_layers=1,
    arc_size=8,
    label_size=8,
    dropout=0.0,
    feature_dropout=0.0,
)
FRAMES = FramesEncoderSpec(
    frame=ImageEncoderSpec(sizes=(4, 4), positions=True), hidden_size=8, dropout=0.0
)


def writing(decoder: Any = None, encoder: Any = TEXT, **changes: Any) -> Maker:
    """Return the maker of a task that maps letters to capitals."""

    def make(folder: Path) -> Made:
        del folder
        model = Seq2SeqSpec(encoder=encoder, decoder=decoder or recurrent())
        spec = TransductionSpec(model=model, prediction=BEAM, **changes)
        examples = tiny.upper_cased(24)
        return Made(spec.build_from(examples), examples)

    return make


def recurrent(attention: Any = SoftmaxSpec(), **changes: Any) -> DecoderSpec:  # noqa: B008 - frozen
    return DecoderSpec(
        embedding_size=8, hidden_size=16, dropout=0.0, attention=attention, **changes
    )


def reading(spec: Any, examples: Sequence[Example]) -> Maker:
    """Return the maker of a task that reads texts."""
    return lambda folder: Made(spec.build_from(examples), examples)


def copying(folder: Path) -> Made:
    del folder
    examples = [Example("w1 w2 w3", "w3 w2"), Example("w4 w5", "w5 w0 w4"), Example("w2 w2", "w2")]
    spec = TransductionSpec(
        source=WhitespaceSpec(),
        target=WhitespaceSpec(),
        outputs="texts",
        unseen_slots=3,
        model=Seq2SeqSpec(encoder=TEXT, decoder=recurrent(copy=True)),
        prediction=BEAM,
    )
    return Made(spec.build_from(examples * 4), examples * 4)


def inflecting(folder: Path) -> Made:
    del folder
    examples = [
        Example(one.text, one.target, features=("A", "A;B")[number % 2])
        for number, one in enumerate(tiny.upper_cased(24))
    ]
    model = Seq2SeqSpec(encoder=TEXT, decoder=recurrent())
    spec = TransductionSpec(model=model, features=FeaturesSpec(), prediction=BEAM)
    return Made(spec.build_from(examples), examples)


def aligned(folder: Path) -> Made:
    del folder
    examples = [
        replace(one, alignment=" ".join(f"{n}-{n}" for n in range(len(one.text))))
        for one in tiny.upper_cased(24)
    ]
    model = Seq2SeqSpec(encoder=TEXT, decoder=recurrent(coverage=True))
    spec = TransductionSpec(
        model=model, alignment_weight=0.5, doubly_stochastic=0.1, coverage=0.1, prediction=BEAM
    )
    return Made(spec.build_from(examples), examples)


def parsing(**changes: Any) -> Maker:
    def make(folder: Path) -> Made:
        examples = list(treebank(write_treebank(folder / "tiny.conllu")))[4:]
        spec = ParsingSpec(
            min_count=1,
            model=replace(PARSER, **changes),
            word_dropout=0.0,
            spelling=SpellingSpec(num_buckets=50),
            num_characters=6,
        )
        return Made(spec.build_from(examples), examples)

    return make


def captioning(folder: Path) -> Made:
    examples = bars(folder, 12)
    return Made(replace(BARS, prediction=BEAM).build_from(examples), examples)


def telling(folder: Path) -> Made:
    examples = clips(folder, 8)
    model = CaptionerSpec(encoder=FRAMES, decoder=recurrent())
    spec = replace(BARS, image=IMAGE, model=model, max_frames=5, prediction=BEAM)
    return Made(spec.build_from(examples), examples)


def labeling_images(folder: Path) -> Made:
    examples = bars(folder, 12, most=1)
    model = ImageClassifierSpec(
        encoder=ImageEncoderSpec(sizes=(4, 8), blocks=1), pooling=SoftmaxSpec()
    )
    return Made(ImageClassificationSpec(image=IMAGE, model=model).build_from(examples), examples)


def labeling_clips(folder: Path) -> Made:
    examples = clips(folder, 8)
    model = VideoClassifierSpec(encoder=FRAMES, pooling=SoftmaxSpec())
    return Made(VideoClassificationSpec(image=IMAGE, model=model).build_from(examples), examples)


def answering(folder: Path) -> Made:
    examples = questions(folder)[:12]
    model = VQAModelSpec(encoder=ImageEncoderSpec(sizes=(4, 8)), question=TEXT, hidden_size=8)
    return Made(
        VisualQuestionAnsweringSpec(image=IMAGE, model=model).build_from(examples), examples
    )


def transcribing(folder: Path) -> Made:
    examples = [example for example, _ in tones(folder, 12)]
    return Made(replace(TONES, prediction=BEAM).build_from(examples), examples)


def with_seed(make: Maker, folder: Path) -> Made:
    """Make a task with weights from a fixed seed."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    return make(folder)


LANGUAGE = TransformerLanguageModelSpec(
    model_size=8, num_layers=1, num_heads=2, feed_forward_size=16, dropout=0.0
)
TRANSDUCTIONS: dict[str, Maker] = {
    "softmax": writing(),
    "sigmoid": writing(recurrent(SigmoidSpec())),
    "segment": writing(recurrent(SegmentSpec())),
    "path": writing(recurrent(PathSpec())),
    "local": writing(recurrent(LocalSpec())),
    "sparsemax": writing(recurrent(SparsemaxSpec())),
    "multi_head": writing(recurrent(MultiHeadSpec(num_heads=2))),
    "hard": writing(recurrent(HardSpec())),
    "latent_hard": writing(recurrent(LatentHardSpec())),
    "latent_monotone": writing(recurrent(LatentMonotoneSpec())),
    "no attention": writing(recurrent(None)),
    "input feeding": writing(recurrent(input_feeding=True)),
    "before": writing(recurrent(attend="before")),
    "GRU, tied, deep": writing(
        recurrent(cell="gru", attend="before", deep_output=True, bridge="both")
    ),
    "shift": writing(recurrent(shift=1)),
    "convolutional": writing(
        encoder=ConvolutionalEncoderSpec(embedding_size=8, size=8, num_layers=2, dropout=0.0)
    ),
    "transformer": writing(
        TransformerDecoderSpec(
            model_size=8, num_layers=1, num_heads=2, feed_forward_size=16, dropout=0.0
        ),
        TRANSFORMER,
    ),
    "label smoothing": writing(label_smoothing=0.1),
    "copy": copying,
    "features": inflecting,
    "alignment": aligned,
}
OTHERS: dict[str, Maker] = {
    "classification": reading(
        ClassificationSpec(model=ClassifierSpec(encoder=TEXT)), tiny.opinions(24)
    ),
    "documents": reading(
        ClassificationSpec(model=ClassifierSpec(encoder=tiny.DOCUMENTS)), tiny.documents(24)
    ),
    "segment classification": reading(
        ClassificationSpec(model=ClassifierSpec(encoder=TEXT, pooling=SegmentSpec())),
        tiny.opinions(24),
    ),
    "pairs": reading(
        PairClassificationSpec(model=DecomposableAttentionSpec(encoder=tiny.HEADED, hidden_size=8)),
        tiny.pairs(24),
    ),
    "word by word": reading(
        PairClassificationSpec(model=WordByWordSpec(embedding_size=8, hidden_size=8, dropout=0.0)),
        tiny.pairs(24),
    ),
    "attentive reader": reading(
        PairClassificationSpec(model=AttentiveReaderSpec(encoder=TEXT)), tiny.pairs(24)
    ),
    "tagging": reading(TaggingSpec(model=TaggerSpec(encoder=TEXT)), tiny.sentences(24)),
    "tagging without a chain": reading(
        TaggingSpec(model=TaggerSpec(encoder=TEXT, crf=False)), tiny.sentences(24)
    ),
    "language modeling": reading(
        LanguageModelingSpec(
            model=LanguageModelSpec(embedding_size=8, hidden_size=16, dropout=0.0),
            bptt_length=10,
            max_length=8,
        ),
        tiny.upper_cased(24),
    ),
    "transformer language modeling": reading(
        LanguageModelingSpec(model=LANGUAGE, bptt_length=10, max_length=8), tiny.upper_cased(24)
    ),
    "question answering": reading(
        QuestionAnsweringSpec(model=MemoryNetworkSpec(embedding_size=8, num_steps=1, max_facts=6)),
        tiny.stories(24),
    ),
    "parsing": parsing(),
    "projective parsing": parsing(tree="projective"),
    "captioning": captioning,
    "captioning of clips": telling,
    "image classification": labeling_images,
    "video classification": labeling_clips,
    "visual question answering": answering,
    "transcription": transcribing,
}
EVERY = {**TRANSDUCTIONS, **OTHERS}
