"""Predictions are batch-invariant: the other examples of a batch do not change an answer by a single bit.

The tests cover every way to sum, score and read in a model, with single examples and with small and
large random batches.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from foveal.data import Example, FeaturesSpec
from foveal.models import (
    AttentionSpec,
    BilinearSpec,
    BracketedEncoderSpec,
    ClassifierSpec,
    ConvolutionalEncoderSpec,
    DecoderSpec,
    DecomposableAttentionSpec,
    DotSpec,
    HeadsSpec,
    LanguageModelSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    LinearSpec,
    LocalSpec,
    MemoryNetworkSpec,
    MultiHeadSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SigmoidSpec,
    SoftmaxSpec,
    SparsemaxSpec,
    SyntacticSpec,
    TaggerSpec,
    TextEncoderSpec,
    TransformerEncoderSpec,
)
from foveal.tasks import (
    ClassificationSpec,
    LanguageModelingSpec,
    PairClassificationSpec,
    PredictionSpec,
    QuestionAnsweringSpec,
    TaggingSpec,
    TransductionEnsemble,
    TransductionSpec,
)
from foveal.tasks.base._size_classes import size_class
from tests.tasks.tiny import (
    DOCUMENTS,
    HEADED,
    WORDS,
    Task,
    documents,
    opinions,
    pairs,
    sentences,
    stories,
    upper_cased,
)

pytestmark = pytest.mark.slow

# Sizes of real models, and sizes that are no multiple of a vector register.
EVEN: tuple[TextEncoderSpec, DecoderSpec] = (
    TextEncoderSpec(embedding_size=64, hidden_size=128),
    DecoderSpec(hidden_size=256),
)
ODD: tuple[TextEncoderSpec, DecoderSpec] = (
    TextEncoderSpec(embedding_size=30, hidden_size=50),
    DecoderSpec(hidden_size=37),
)
ATTENTIONS: tuple[AttentionSpec | None, ...] = (
    SoftmaxSpec(),
    SoftmaxSpec(scorer=DotSpec()),
    SoftmaxSpec(scorer=BilinearSpec()),
    SoftmaxSpec(scorer=LinearSpec()),
    SigmoidSpec(),
    SegmentSpec(),
    LocalSpec(),
    SparsemaxSpec(),
    MultiHeadSpec(num_heads=2),
    LatentHardSpec(),
    LatentMonotoneSpec(),
    None,
)
SPOKEN = [
    Example("".join(random.Random(n).choices("abcdefg", k=size)))
    for n, size in enumerate([0, 1, 2, 3, 5, 7, 8, 8, 9, 11, 12, 14, 20, 23, 24, 40])
]
WRITTEN = [
    Example(" ".join(random.Random(n).choices([*WORDS, "unseen"], k=size)))
    for n, size in enumerate([0, 1, 2, 4, 7, 7, 8, 10, 12, 13, 19, 30])
]
SIZES = (1, 2, 3, 5, 9, 40)


def check(
    predict: Callable[..., Any], examples: Sequence[Example], *, beam_size: int, trace: bool = True
) -> None:
    """Compare random batches, twice, with the prediction for each single example."""
    settings = PredictionSpec(beam_size=beam_size, nbest=beam_size, trace=trace)
    alone = [predict([example], settings)[0] for example in examples]
    generator = random.Random(beam_size)
    for _ in range(2):
        rest = generator.choices(range(len(examples)), k=2 * len(examples))
        while rest:
            size = generator.choice(SIZES)
            some, rest = rest[:size], rest[size:]
            found = predict([examples[n] for n in some], settings)
            assert found == [alone[n] for n in some]


def built(spec: TransductionSpec, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    task = spec.build_from(upper_cased(100, letters="abcdefg", longest=30))
    task.model.eval()
    return task


@pytest.mark.parametrize("attention", ATTENTIONS, ids=repr)
def test_of_every_attention(attention: AttentionSpec | None) -> None:
    encoder, decoder = EVEN
    task = built(
        TransductionSpec(
            model=Seq2SeqSpec(encoder=encoder, decoder=replace(decoder, attention=attention))
        )
    )
    for beam_size in (1, 3):
        check(task.predict, SPOKEN, beam_size=beam_size)


@pytest.mark.parametrize("bridge", ["every_step", "both", "none"])
def test_of_every_bridge(bridge: Any) -> None:
    encoder, decoder = EVEN
    task = built(
        TransductionSpec(
            model=Seq2SeqSpec(encoder=encoder, decoder=replace(decoder, bridge=bridge))
        )
    )
    check(task.predict, SPOKEN, beam_size=1)


@pytest.mark.parametrize("cell", ["lstm", "gru", "elman"])
def test_of_every_cell_and_of_odd_sizes(cell: Any) -> None:
    encoder, decoder = replace(ODD[0], cell=cell), replace(ODD[1], cell=cell)
    task = built(TransductionSpec(model=Seq2SeqSpec(encoder=encoder, decoder=decoder)))
    for beam_size in (1, 3):
        check(task.predict, SPOKEN, beam_size=beam_size)


@pytest.mark.parametrize(
    "changes",
    [{"num_layers": 2}, {"num_layers": 2, "residual": True}, {"num_layers": 2, "skip": True}],
    ids=str,
)
def test_of_deep_stacks(changes: dict[str, Any]) -> None:
    encoder, decoder = replace(EVEN[0], **changes), replace(EVEN[1], **changes)
    task = built(
        TransductionSpec(
            model=Seq2SeqSpec(encoder=encoder, decoder=replace(decoder, input_feeding=True))
        )
    )
    check(task.predict, SPOKEN, beam_size=1)


def test_of_attention_to_oneself() -> None:
    encoder, decoder = replace(EVEN[0], self_attention=SyntacticSpec()), EVEN[1]
    check(
        built(TransductionSpec(model=Seq2SeqSpec(encoder=encoder, decoder=decoder))).predict,
        SPOKEN,
        beam_size=3,
    )


@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal"])
def test_of_a_transformer(positions: Any) -> None:
    encoder = TransformerEncoderSpec(
        model_size=64, positions=positions, special_heads=(HeadsSpec(layers=(1,)),)
    )
    task = built(TransductionSpec(model=Seq2SeqSpec(encoder=encoder, decoder=EVEN[1])))
    for beam_size in (1, 3):
        check(task.predict, SPOKEN, beam_size=beam_size)


def test_of_convolutions() -> None:
    encoder = ConvolutionalEncoderSpec(embedding_size=16, size=40, num_layers=2)
    task = built(TransductionSpec(model=Seq2SeqSpec(encoder=encoder, decoder=EVEN[1])))
    check(task.predict, SPOKEN, beam_size=3)


def test_of_trees() -> None:
    torch.manual_seed(0)
    encoder = BracketedEncoderSpec(embedding_size=16, hidden_size=40, composition="tensor")
    spec = ClassificationSpec(model=ClassifierSpec(encoder=encoder))
    words = [example.text.split() for example in WRITTEN]
    texts = [f"( ( {' '.join(part[:2])} ) {' '.join(part[2:])} )" for part in words]
    task = spec.build_from([Example(text, "ab"[n % 2]) for n, text in enumerate(texts)])
    task.model.eval()
    check(task.predict, [Example(text) for text in texts], beam_size=1)


def test_of_wide_states() -> None:
    """With rows of more than 768 entries, kernels use another summation order for many rows than
    for few.
    """
    encoder = TextEncoderSpec(embedding_size=16, hidden_size=512)
    task = built(
        TransductionSpec(model=Seq2SeqSpec(encoder=encoder, decoder=DecoderSpec(hidden_size=32)))
    )
    check(task.predict, [*SPOKEN, *SPOKEN[-3:] * 8], beam_size=1)


def test_of_features() -> None:
    spec = TransductionSpec(
        features=FeaturesSpec(), model=Seq2SeqSpec(encoder=EVEN[0], decoder=EVEN[1])
    )
    examples = [
        Example(example.text, example.text.upper(), features=["V;PST", "N", ""][n % 3])
        for n, example in enumerate([*upper_cased(30), *SPOKEN])
    ]
    torch.manual_seed(0)
    task = spec.build_from(examples)
    task.model.eval()
    check(task.predict, examples[-20:], beam_size=3)


def test_of_several_as_one() -> None:
    encoder, decoder = EVEN
    spec = TransductionSpec(model=Seq2SeqSpec(encoder=encoder, decoder=decoder))
    check(TransductionEnsemble([built(spec), built(spec, 1)]).predict, SPOKEN, beam_size=3)


def test_of_what_is_read_along_two_axes() -> None:
    """Documents, pairs, and questions over facts have a batch with one size class per axis."""
    torch.manual_seed(0)
    lines = [example.text for example in WRITTEN]
    texts = ["\n".join(random.Random(n).choices(lines, k=1 + n % 9)) for n in range(20)]
    matched = [f"{a}\t{b}" for a, b in zip(lines, [*lines[3:], *lines[:3]], strict=True)]
    tasks: list[tuple[Task, list[str]]] = [
        (
            ClassificationSpec(model=ClassifierSpec(encoder=DOCUMENTS)).build_from(documents(60)),
            texts,
        ),
        (
            PairClassificationSpec(model=DecomposableAttentionSpec(hidden_size=37)).build_from(
                pairs(60)
            ),
            matched,
        ),
        (
            PairClassificationSpec(
                model=DecomposableAttentionSpec(encoder=HEADED, hidden_size=8)
            ).build_from(pairs(60)),
            matched,
        ),
        (
            QuestionAnsweringSpec(model=MemoryNetworkSpec(max_facts=6)).build_from(stories(60)),
            texts,
        ),
    ]
    for task, sources in tasks:
        task.model.eval()
        check(task.predict, [Example(source) for source in sources], beam_size=2)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_of_other_tasks(cell: Any) -> None:
    encoder = replace(ODD[0], cell=cell)
    torch.manual_seed(0)
    tasks: list[Task] = [
        ClassificationSpec(model=ClassifierSpec(encoder=encoder)).build_from(opinions(60)),
        ClassificationSpec(model=ClassifierSpec(encoder=encoder, pooling="mean")).build_from(
            opinions(60)
        ),
        TaggingSpec(model=TaggerSpec(encoder=encoder)).build_from(sentences(60)),
    ]
    for task in tasks:
        task.model.eval()
        check(task.predict, WRITTEN, beam_size=2)
    model = LanguageModelingSpec(
        model=LanguageModelSpec(cell=cell, embedding_size=30, hidden_size=37), max_length=12
    )
    continuing = model.build_from(upper_cased(60))
    continuing.model.eval()
    check(continuing.predict, SPOKEN, beam_size=2, trace=False)


def test_a_list_of_candidates_is_calibrated_by_what_was_looked_for() -> None:
    """An example with few possible answers shares a batch with one with many, which uses another
    scaling.
    """
    torch.manual_seed(0)
    task = TaggingSpec(model=TaggerSpec(encoder=ODD[0])).build_from(sentences(60))
    task.calibrate(sentences(60), PredictionSpec(beam_size=5))
    settings = PredictionSpec(beam_size=5, nbest=5)
    short, long = Example("a"), Example("the good old ship a cat")
    (alone,) = task.predict([short], settings)
    assert len(alone.nbest) == 3 < len(task.predict([long], settings)[0].nbest)
    assert task.predict([short, long], settings)[0] == alone


def test_sizes_leave_room_and_waste_little() -> None:
    for size in range(2000):
        places = size_class(size)
        assert places > size
        assert places % 4 == 0
        assert places <= max(8, 3 * size // 2 + 1)
