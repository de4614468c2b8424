"""Small models of every kind that has a graph, with random weights that are large enough to decide."""

from dataclasses import dataclass

import torch

from foveal.data import Vocabulary
from foveal.data.vocabularies._vocabularies import Vocabularies
from foveal.models import (
    BilinearSpec,
    ConvolutionalEncoderSpec,
    DecoderSpec,
    DotSpec,
    HardSpec,
    HeadsSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    LinearSpec,
    LocalSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SigmoidSpec,
    SoftmaxSpec,
    SparsemaxSpec,
    TextEncoderSpec,
    TransformerDecoderSpec,
    TransformerEncoderSpec,
    WordEncoderSpec,
)
from foveal.tasks import PredictionSpec, Transduction, TransductionSpec

LETTERS = "abcdefghijklmnop"
WORDS = ("a", "bad", "cafe", "pijl", "mnopabc", "xab", "zyxw", "ax", "hgfedc", "o", "kk", "abcabc")
_TEXT = TextEncoderSpec(embedding_size=8, hidden_size=8)
_SIZES = {"embedding_size": 8, "hidden_size": 16}


@dataclass(frozen=True)
class Variant:
    """A model and the settings of its search."""

    model: Seq2SeqSpec
    beam_size: int = 3
    length_penalty: float = 0.0


def seq2seq(
    encoder: object = _TEXT, *, beam_size: int = 3, length_penalty: float = 0.0, **decoder: object
) -> Variant:
    """Return a variant with a recurrent decoder."""
    model = Seq2SeqSpec(encoder=encoder, decoder=DecoderSpec(**{**_SIZES, **decoder}))  # pyright: ignore[reportArgumentType]
    return Variant(model, beam_size, length_penalty)


def transformer(positions: str, decoder: dict[str, object], encoder: dict[str, object]) -> Variant:
    """Return a variant with a Transformer as encoder and decoder."""
    sizes = {"model_size": 16, "num_heads": 2, "positions": positions}
    return Variant(
        Seq2SeqSpec(
            encoder=TransformerEncoderSpec(**{**sizes, **encoder}),
            decoder=TransformerDecoderSpec(**{**sizes, **decoder}),
        )
    )


def text(**settings: object) -> TextEncoderSpec:
    """Return a small recurrent encoder."""
    return TextEncoderSpec(**{"embedding_size": 8, "hidden_size": 8, **settings})


_SEGMENT_HEAD = (HeadsSpec(attention=SegmentSpec()),)
VARIANTS: dict[str, Variant] = {
    "softmax": seq2seq(),
    "softmax, greedy": seq2seq(beam_size=1),
    "softmax, wide": seq2seq(beam_size=12, length_penalty=0.7),
    "softmax, dot": seq2seq(attention=SoftmaxSpec(scorer=DotSpec())),
    "softmax, bilinear": seq2seq(attention=SoftmaxSpec(scorer=BilinearSpec(scaled=True))),
    "sigmoid, linear": seq2seq(attention=SigmoidSpec(scorer=LinearSpec())),
    "segment": seq2seq(attention=SegmentSpec()),
    "segment, scaled": seq2seq(attention=SegmentSpec(total=2.0)),
    "hard": seq2seq(attention=HardSpec()),
    "sparsemax": seq2seq(attention=SparsemaxSpec()),
    "local": seq2seq(attention=LocalSpec(window=3.0)),
    "latent hard": seq2seq(attention=LatentHardSpec()),
    "latent monotone": seq2seq(attention=LatentMonotoneSpec()),
    "latent monotone, wide": seq2seq(attention=LatentMonotoneSpec(), beam_size=8),
    "no attention": seq2seq(attention=None, bridge="both"),
    "every step": seq2seq(attention=None, bridge="every_step"),
    "input feeding": seq2seq(input_feeding=True, num_layers=2),
    "before": seq2seq(attend="before", bridge="every_step"),
    "before, deep": seq2seq(attend="before", deep_output=True, bridge="both"),
    "copy": seq2seq(copy=True),
    "copy, coverage": seq2seq(copy=True, coverage=True, input_feeding=True),
    "point": seq2seq(point=True),
    "shift": seq2seq(shift=1),
    "learned state": seq2seq(bridge="learned"),
    "no bridge, tied": seq2seq(bridge="none", tie_embeddings=True),
    "gru": seq2seq(text(cell="gru", num_layers=2), cell="gru", num_layers=2, input_feeding=True),
    "elman, skip": seq2seq(
        text(cell="elman", num_layers=2, skip=True, bidirectional=False),
        cell="elman",
        num_layers=2,
        skip=True,
    ),
    "residual": seq2seq(
        text(embedding_size=16, num_layers=3, residual=True, learned_state=True),
        embedding_size=16,
        num_layers=3,
        residual=True,
        bridge="both",
        input_feeding=True,
    ),
    "convolutions": seq2seq(
        ConvolutionalEncoderSpec(embedding_size=8, size=16, num_layers=3, dilated=True)
    ),
    "convolutions, plain": seq2seq(
        ConvolutionalEncoderSpec(
            embedding_size=8, size=16, num_layers=2, gated=False, residual=False
        )
    ),
    "words": seq2seq(WordEncoderSpec(embedding_size=8)),
    "transformer": transformer("rotary", {}, {}),
    "transformer, copy": transformer(
        "sinusoidal", {"copy": True, "num_heads": 4, "tie_embeddings": True}, {}
    ),
    "transformer, segments": transformer(
        "learned",
        {"special_heads": (HeadsSpec(attention=SegmentSpec(), layers=(2,)),)},
        {"special_heads": _SEGMENT_HEAD},
    ),
}


def task_of(variant: Variant, seed: int = 0) -> Transduction:
    """Build a task with random weights; large ones, so that outputs differ between inputs."""
    torch.manual_seed(seed)
    spec = TransductionSpec(
        model=variant.model,
        prediction=PredictionSpec(
            beam_size=variant.beam_size,
            nbest=variant.beam_size,
            length_penalty=variant.length_penalty,
        ),
        unseen_slots=3,
    )
    vocabulary = Vocabulary(tuple(LETTERS))
    task = spec.build(Vocabularies(source=vocabulary, target=vocabulary))
    with torch.no_grad():
        for weights in task.model.parameters():
            if weights.ndim > 1:
                weights.mul_(3.0)
            elif weights.ndim == 0:
                weights.fill_(-1.0)
    task.model.eval()
    return task
