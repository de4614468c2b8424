"""The shared part of tasks that predict one label for a picture or a clip.

    loss = - log p(label | picture)  (smoothed)

Axes: B examples, F frames of a clip, C channels, h and w height and width in pixels.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import UInt8
from torch import Tensor
from typing_extensions import override

from ...attention import AttentionTrace
from ...data import Encoded, Example, collate_labelled, collate_pictures
from ...data._batches import LabeledBatch, PictureBatch, move
from ...models._classifier import Pooling
from ...models._picture_classifier import PictureClassifier
from ..base._labeling import AbstractLabeling, Labeled, LabelingSpec, no_trace
from ..base._prediction import Loss
from ._pictures import AbstractView, in_ink, shown


@runtime_checkable
class PicturePoolingSpec(Protocol):
    """The setting of a model that the trace of a prediction needs."""

    @property
    def pooling(self) -> Pooling:
        """How one vector is made of all positions."""
        ...


@runtime_checkable
class PictureLabelingSpec(LabelingSpec, Protocol):
    """The shared settings of tasks that label pictures."""

    @property
    def model(self) -> PicturePoolingSpec:
        """The model that scores the labels."""
        ...

    @property
    def label_smoothing(self) -> float:
        """The probability that the targets spread over all labels."""
        ...


Spec = TypeVar("Spec", bound=PictureLabelingSpec)


class AbstractPictureLabeling(AbstractLabeling[PictureClassifier, Spec]):
    """A task with one label per picture; its view reads and pads the pictures."""

    @cached_property
    def view(self) -> AbstractView:
        """The view that reads and pads pictures."""
        return self._build_view()

    @abstractmethod
    def _build_view(self) -> AbstractView:
        """Return a view for the images and the encoder of the spec."""

    @override
    def encode(self, example: Example) -> Encoded:
        return Encoded([], target=[self._label(example)], picture=self.picture(example))

    @override
    def collate(self, examples: Sequence[Encoded]) -> PictureBatch:
        return collate_pictures(examples, collate_labelled)

    @override
    def loss(self, batch: PictureBatch, state: Any = None) -> Loss:
        """Compute the loss, summed over pictures."""
        batch = move(batch, self.device)
        assert isinstance(batch.text, LabeledBatch)
        found = self.model(*in_ink(*batch.for_each()))
        return self._loss(found.log_probs, batch.text.labels, self.spec.label_smoothing)

    @override
    def symbols(self, example: Example) -> list[str]:
        """Return no tokens: a picture has none."""
        return []

    @override
    def size(self, example: Example) -> int:
        """Return the number of positions in the size class of the picture."""
        return self.view.num_places(self.picture(example))

    def picture(self, example: Example) -> UInt8[Tensor, "*F C h w"]:
        """Return the picture of an example as model input.

        Args:
            example: Example whose source is a picture, or a clip.

        Returns:
            Pixels with values from 0 to 255.
        """
        return self.view.read(self.view.input(example))

    @override
    def picture_seen(self, example: Example) -> UInt8[np.ndarray, "h w c"]:
        return shown(self.picture(example))

    @override
    def named(self, example: Example) -> str:
        return self.view.input(example).name

    @override
    def _shape(self, example: Example) -> tuple[int, ...]:
        return (self.size(example),)

    @override
    def _class(self, example: Example) -> tuple[int, ...]:
        return self.view.padded(self.picture(example))

    @override
    def _labeled(self, examples: Sequence[Example]) -> Labeled:
        pictures = [self.picture(example) for example in examples]
        seen = self.view.settled(pictures)
        found = self.model(*(part.to(self.device) for part in seen))
        weights, pooling = found.weights, self.spec.model.pooling
        if weights is None or isinstance(pooling, str):
            return Labeled(found.log_probs, no_trace)
        places = self.view.places(seen.mask)

        def trace(number: int, label: str) -> AttentionTrace:
            """Return the attention weight of each position."""
            return AttentionTrace(
                kind=pooling.kind,
                sources=self.view.names(pictures[number]),
                targets=(label,),
                weights=(tuple(weights[number][places[number]].tolist()),),
                layout=self.view.layout(pictures[number]),
            )

        return Labeled(found.log_probs, trace)
