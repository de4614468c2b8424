"""Captioning: generate a text for a picture or a clip, such as a description or the markup of a formula.

    loss = - sum over t of log p(y_t | y_<t, x)  (smoothed)
           + doubly_stochastic * sum over s of (1 - sum over t of w[t, s])^2       read every position once
           + coverage * sum over t, s of min(w[t, s], weight of s before t)   and not again

The source of an example is a `Picture`, or a `Clip` if the encoder reads frames.

References: Xu et al. 2015, section 4.2.1 (doubly stochastic); See et al. 2017 (coverage); Deng et al. 2017
(image to markup).

Axes: B images, h and w height and width in pixels, T target positions, S positions of the memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, final

import numpy as np
from jaxtyping import UInt8
from typing_extensions import override

from ...attention import coverage_loss
from ...data import (
    END,
    Example,
    ImageSpec,
    TokenizerSpec,
    WhitespaceSpec,
)
from ...data._batches import PictureBatch
from ...data._inputs import Input
from ...data.vocabularies._vocabularies import Vocabularies, required_target, trained
from ...decoding import Automaton, balanced
from ...errors import DataError, ValueRangeError
from ...metrics import AbstractMetricSpec
from ...metrics._cider import cider
from ...metrics._metrics import bleu, exact_match, word_error_rate
from ...metrics._statistics import Statistics
from ...models import (
    Captioner,
    CaptionerSpec,
)
from ...networks.decoders._steps import TokenLosses
from ...specs import setting
from ..base._evaluation import MainMetric
from ..base._losses import doubly_stochastic_loss
from ..base._prediction import PredictionSpec
from ..base._task_spec import AbstractTaskSpec, Inputs
from ..base._writing import Weighted
from ._distortion import DistortionSpec, distorted
from ._picture_writing import AbstractPictureWriting, target_vocabularies
from ._pictures import AbstractView, Seen, in_ink, shown, view_of

_DEEPEST = 32  # the maximum depth of nested braces


@final
class Captioning(AbstractPictureWriting[Captioner, "CaptioningSpec", AbstractView]):
    """Captioning of pictures with an encoder, a decoder and attention over the grid of the picture."""

    @property
    @override
    def main_metric(self) -> MainMetric:
        return MainMetric("exact_match" if self.spec.outputs == "exact" else "cider", True)

    @override
    def source_of(self, batch: PictureBatch) -> Seen:
        seen, bent = in_ink(*batch.for_each()), self.spec.distortion
        return seen if bent is None or not self.model.training else distorted(seen, bent)

    @override
    def _others(self, batch: PictureBatch, scored: TokenLosses) -> dict[str, Weighted]:
        spec, weights = self.spec, scored.weights
        if not (spec.doubly_stochastic or spec.coverage):
            return {}
        if weights is None:
            raise ValueRangeError(
                "Captioning: doubly_stochastic and coverage need a decoder with attention, got one "
                "without. Set decoder.attention to softmax, or both to 0."
            )
        attention = spec.model.decoder.attention
        if attention is not None and attention.has_heads:
            weights = weights.mean(-3)
        mask, places = self.text_of(batch).mask, self.view.places(batch.for_each()[1])
        others = dict[str, Weighted]()
        if spec.doubly_stochastic:
            loss = doubly_stochastic_loss(weights, mask, places)
            others["doubly_stochastic"] = Weighted(spec.doubly_stochastic, loss)
        if spec.coverage:
            others["coverage"] = Weighted(spec.coverage, coverage_loss(weights, mask).sum())
        return others

    @override
    def _build_view(self) -> AbstractView:
        spec = self.spec
        return view_of("CaptioningSpec", spec.image, spec.model.encoder, spec.max_frames)

    @override
    def picture_seen(self, example: Example) -> UInt8[np.ndarray, "h w c"]:
        return shown(self.picture(example))

    @property
    @override
    def has_one_answer(self) -> bool:
        return self.spec.outputs == "exact"

    @override
    def constraints(self, settings: PredictionSpec) -> tuple[Automaton, ...]:
        return (*super().constraints(settings), *self._balanced)

    @cached_property
    def _balanced(self) -> tuple[Automaton, ...]:
        if self.spec.balanced is None:
            return ()
        opening, closing = self._target.encode(self.spec.balanced)
        return (
            balanced(opening, closing, deepest=_DEEPEST, num_tokens=self.model.num_tokens, end=END),
        )

    @override
    def _groups(self, examples: Sequence[Example]) -> Sequence[Sequence[Example]]:
        """Group all captions of a picture, because each picture is predicted only once."""
        if self.spec.outputs == "exact":
            return super()._groups(examples)
        pictures = dict[Input, list[Example]]()
        for example in examples:
            pictures.setdefault(example.source, []).append(example)
        return list(pictures.values())

    @override
    def _scored(
        self, groups: Sequence[Sequence[Example]], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        if self.spec.outputs == "exact":
            return super()._scored(groups, outputs)
        references = [[self.reference(one) for one in captions] for captions in groups]
        return (
            cider(references, outputs),
            bleu(references, outputs, tokenize=self._tokenize),
            exact_match(references, outputs),
        )

    @override
    def statistics_of(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        return (
            exact_match(references, outputs),
            bleu(references, outputs, tokenize=self._tokenize),
            word_error_rate(references, outputs, name="token_error_rate"),
            cider(references, outputs),
        )

    @property
    def _tokenize(self) -> str:
        """The tokenizer of BLEU."""
        return "none" if isinstance(self.spec.target, WhitespaceSpec) else "13a"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class CaptioningSpec(AbstractTaskSpec[Captioning]):
    """Captioning: generate a text for a picture."""

    kind: Literal["captioning"] = "captioning"
    image: ImageSpec = setting(ImageSpec(), "size and channels of the images")
    target: TokenizerSpec = setting(WhitespaceSpec(), "tokenizer of the target")
    outputs: Literal["exact", "free"] = setting(
        "exact",
        "the kind of outputs: correct or wrong as a whole, or one of many good captions (CIDEr)",
    )
    min_count: int = setting(
        1, "tokens that are rarer in the training set become unknown", at_least=1
    )
    max_vocab_size: int | None = setting(
        None, "maximum vocabulary size, most frequent tokens first; none: no maximum", at_least=5
    )
    max_frames: int = setting(16, "maximum number of frames per clip", at_least=1)
    model: CaptionerSpec = setting(
        CaptionerSpec(), "the model that reads the image and writes the target"
    )
    distortion: DistortionSpec | None = setting(
        None, "random distortion of training images; none: off"
    )
    label_smoothing: float = setting(
        0.1,
        "label smoothing: probability that the targets spread over all tokens",
        at_least=0,
        at_most=1,
    )
    doubly_stochastic: float = setting(
        0.0,
        "weight of the loss for reading every position once (Xu et al. 2015); 0: off",
        at_least=0,
    )
    coverage: float = setting(
        0.0, "weight of the loss for reading a position again (See et al. 2017); 0: off", at_least=0
    )
    balanced: tuple[str, str] | None = setting(
        None, "an opening and a closing token, such as { and }, that must be balanced in an output"
    )
    metrics: tuple[AbstractMetricSpec, ...] = setting((), "additional metrics")
    prediction: PredictionSpec = setting(PredictionSpec(), "settings of prediction")

    @property
    @override
    def inputs(self) -> Inputs:
        return Inputs(text=False, picture=True)

    @override
    def build(self, vocabularies: Vocabularies) -> Captioning:
        """Build the task with fresh weights."""
        view_of("CaptioningSpec", self.image, self.model.encoder, self.max_frames)
        target = vocabularies.target_of("Captioning")
        for symbol in self.balanced or ():
            if symbol not in target:
                raise DataError(
                    f"CaptioningSpec: balanced contains {symbol!r}, which no target of the training "
                    f"data has. Set balanced to none, or to tokens of the targets."
                )
        model = self.model.build(vocabulary=len(target))
        kept = replace(self, model=replace(self.model, encoder=self.model.encoder.built()))
        return Captioning(kept, vocabularies, model)

    @override
    def build_from(self, examples: Iterable[Example]) -> Captioning:
        """Build the task with fresh weights. Its vocabulary, and subwords if configured, come from the targets of these
        training examples, which are read more than once; the pictures are not read.
        """
        texts = (required_target(example) for example in examples)
        spec = replace(self, target=trained(self.target, texts))
        vocabularies = target_vocabularies(
            spec.target, examples, min_count=spec.min_count, max_size=spec.max_vocab_size
        )
        return spec.build(vocabularies)
