"""The shared part of tasks that generate a text from a picture, a clip, or the spectrogram of a recording.

A view reads the pictures, pads them by their size class, and labels the positions of the memory.

Axes: B examples, F frames of a clip, C channels, h and w height and width, S positions of the memory.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from jaxtyping import Bool, UInt8
from torch import Tensor
from typing_extensions import override

from ...attention import Layout
from ...data import (
    Audio,
    Clip,
    Encoded,
    Example,
    Picture,
    Seq2SeqBatch,
    TokenizerSpec,
    Vocabulary,
    collate_pictures,
    collate_seq2seq,
)
from ...data._batches import PictureBatch
from ...data.vocabularies._tally import Symbols, Tally, rare
from ...data.vocabularies._vocabularies import Lengths, Vocabularies, required_target
from ..base._answering import Answers, Search
from ..base._prediction import PredictionSpec
from ..base._searching import Reading, searcher
from ..base._size_classes import by_class
from ..base._writing import Spec, Writer
from ..explaining._written import AbstractExplainedWriting


@runtime_checkable
class View(Protocol):
    """Reads pictures for a task, pads them, and labels their positions."""

    def input(self, example: Example) -> Picture | Clip | Audio:
        """Return the source of an example."""
        ...

    def read(self, source: Any) -> UInt8[Tensor, "*F C h w"]:
        """Read a source; files are cached."""
        ...

    def seen(self, pictures: Sequence[UInt8[Tensor, "... _ _ _"]]) -> tuple[Tensor, Tensor]:
        """Collate pictures of any sizes into the encoder input and its mask."""
        ...

    def settled(self, pictures: Sequence[UInt8[Tensor, "... _ _ _"]]) -> tuple[Tensor, Tensor]:
        """Collate pictures of one size class, padded to its size."""
        ...

    def padded(self, picture: UInt8[Tensor, "*F C h w"]) -> tuple[int, ...]:
        """Return the padded size of a picture."""
        ...

    def places(self, mask: Tensor) -> Bool[Tensor, "B S"]:
        """Return a mask of the real positions of the memory."""
        ...

    def num_places(self, picture: UInt8[Tensor, "*F C h w"]) -> int:
        """Return the number of positions of a padded picture."""
        ...

    def layout(self, picture: UInt8[Tensor, "*F C h w"]) -> Layout:
        """Return the layout of the real positions of a picture."""
        ...

    def names(self, picture: UInt8[Tensor, "*F C h w"]) -> tuple[str, ...]:
        """Return a label for each real position of a picture."""
        ...


AnyView = TypeVar("AnyView", bound=View)


class AbstractPictureWriting(
    AbstractExplainedWriting[Writer, Spec], Generic[Writer, Spec, AnyView]
):
    """A task that generates a text from a picture; its view reads and pads the pictures."""

    @cached_property
    def view(self) -> AnyView:
        """The view that reads and pads pictures."""
        return self._build_view()

    @abstractmethod
    def _build_view(self) -> AnyView:
        """Return a view for the pictures and the encoder of the spec."""

    def picture(self, example: Example) -> UInt8[Tensor, "*F C h w"]:
        """Return the source of an example as model input.

        Args:
            example: Example whose source is a picture, a clip or a recording.

        Returns:
            Values from 0 to 255; a clip has one more axis, for its frames. A recording becomes its log-mel features,
            high frequencies first.
        """
        return self.view.read(self.view.input(example))

    @override
    def encode(self, example: Example) -> Encoded:
        target = self.spec.target.encode(required_target(example))
        return Encoded([], self._target.encode(target), picture=self.picture(example))

    @override
    def collate(self, examples: Sequence[Encoded]) -> PictureBatch:
        return collate_pictures(examples, collate_seq2seq)

    @override
    def text_of(self, batch: PictureBatch) -> Seq2SeqBatch:
        assert isinstance(batch.text, Seq2SeqBatch)
        return batch.text

    @override
    def with_text(self, batch: PictureBatch, text: Seq2SeqBatch) -> PictureBatch:
        return replace(batch, text=text)

    @override
    def symbols(self, example: Example) -> list[str]:
        """Return the tokens of the target, if it is known: a picture has no tokens."""
        return [] if example.target is None else self.spec.target.encode(example.target)

    @property
    @override
    def known(self) -> Vocabulary:
        return self._target

    @override
    def named(self, example: Example) -> str:
        return self.view.input(example).name

    @override
    def read(self, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        return self._moved(self.view.seen([self.picture(example) for example in examples]))

    @override
    def reading(self, examples: Sequence[Example], settings: PredictionSpec) -> Reading:
        source = self._settled(examples)
        limits = [self._limit(0, settings)] * len(examples)
        return Reading(source, limits, self.view.places(source[1]))

    def _settled(self, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        return self._moved(self.view.settled([self.picture(example) for example in examples]))

    def _moved(self, source: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        values, mask = source
        return values.to(self.device), mask.to(self.device)

    @override
    def size(self, example: Example) -> int:
        """Return the number of positions in the size class of the picture, or of the recording."""
        return self.view.num_places(self.picture(example))

    @override
    def searcher(self) -> Search:
        return partial(self._search, searcher([self]))

    def _search(
        self, search: Search, examples: Sequence[Example], settings: PredictionSpec
    ) -> list[Answers]:
        ask = partial(self._answers, search, settings)
        return by_class(
            ask, examples, lambda one: self.view.padded(self.picture(one)), self.least_rows
        )

    def _answers(
        self, search: Search, settings: PredictionSpec, examples: Sequence[Example]
    ) -> list[Answers]:
        """Answer examples of one size class."""
        return search(examples, settings)

    @override
    def layout(self, example: Example) -> Layout:
        return self.view.layout(self.picture(example))

    @override
    def places(self, example: Example) -> tuple[str, ...]:
        return self.view.names(self.picture(example))

    @override
    def limit(self, example: Example, settings: PredictionSpec | None = None) -> int:
        return self._limit(0, settings or self.prediction)


def target_vocabularies(
    target: TokenizerSpec,
    examples: Iterable[Example],
    *,
    min_count: int,
    max_size: int | None,
) -> Vocabularies:
    """Count the tokens of the targets; the pictures or recordings are not read.

    Args:
        target: Tokenizer of the targets.
        examples: Training examples.
        min_count: Rarer tokens become unknown.
        max_size: Maximum vocabulary size; None for no maximum.

    Returns:
        The vocabularies. Rare tokens come from the target instead of the source, which has no length in tokens.
    """
    tally = Tally.of(Symbols(target=target.encode(required_target(one))) for one in examples)
    counted = tally.vocabularies(min_count=min_count, max_size=max_size)
    lengths = Lengths(ratio=0.0, slack=float(max(tally.longest.values())))
    return replace(counted, rare=rare(tally.target or {}), lengths=lengths)
