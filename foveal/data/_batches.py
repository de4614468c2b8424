"""Batches: encoded examples as padded tensors.

    target            x y z
    tokens      begin x y z         what the decoder reads
    targets           x y z end     what it should say

Axes: B examples, S source places, R places of a second text, T target places (the end symbol too), F
features, P pictures, C channels, h and w height and width, n sentences or facts of w words, N places of a text in a row, K spelling features of a
symbol.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from ..errors import ShapeError
from .images._pictures import collate_frames, collate_images
from .streams._packed import Encoded, Packed, Ragged
from .vocabularies._vocabulary import BEGIN, END

AnyBatch = TypeVar(
    "AnyBatch",
    "Seq2SeqBatch",
    "LabeledBatch",
    "PairBatch",
    "TaggedBatch",
    "TextBatch",
    "QuestionBatch",
    "PictureBatch",
)


@final
@dataclass(frozen=True, eq=False, slots=True)
class Seq2SeqBatch:
    """Sequences and the sequences to make of them."""

    source: Int[Tensor, "B S"]
    source_mask: Bool[Tensor, "B S"]
    tokens: Int[Tensor, "B T"]  # begin first
    targets: Int[Tensor, "B T"]  # end last
    mask: Bool[Tensor, "B T"]  # of tokens and of targets
    indices: Int[Tensor, " B"]  # which examples these are
    features: Int[Tensor, "B F"] | None = None
    features_mask: Bool[Tensor, "B F"] | None = None
    alignment: Bool[Tensor, "B T S"] | None = None  # True where target place t comes from s

    @property
    def num_inputs(self) -> int:
        """Tokens of the batch, without padding."""
        return int(self.source_mask.sum() + self.mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class LabeledBatch:
    """Sequences, or documents of n sentences of w words, and a label for each."""

    tokens: Int[Tensor, "B *places"]  # (B, S), or (B, n, w)
    mask: Bool[Tensor, "B *places"]
    labels: Int[Tensor, " B"]
    indices: Int[Tensor, " B"]

    @property
    def num_inputs(self) -> int:
        """Tokens of the batch, without padding."""
        return int(self.mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class PairBatch:
    """Pairs of texts and a label for each pair."""

    first: Int[Tensor, "B S"]
    first_mask: Bool[Tensor, "B S"]
    second: Int[Tensor, "B R"]
    second_mask: Bool[Tensor, "B R"]
    labels: Int[Tensor, " B"]
    indices: Int[Tensor, " B"]

    @property
    def num_inputs(self) -> int:
        """Tokens of the batch, without padding."""
        return int(self.first_mask.sum() + self.second_mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class TaggedBatch:
    """Sequences and a tag for each symbol, with the spelling features of each symbol if it has some."""

    tokens: Int[Tensor, "B S"]
    mask: Bool[Tensor, "B S"]
    tags: Int[Tensor, "B S"]
    indices: Int[Tensor, " B"]
    spelling: Int[Tensor, "B S K"] | None = None

    @property
    def num_inputs(self) -> int:
        """Tokens of the batch, without padding."""
        return int(self.mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class TextBatch:
    """The next stretch of B long texts; each row goes on where it ended in the batch before."""

    tokens: Int[Tensor, "B N"]
    targets: Int[Tensor, "B N"]
    mask: Bool[Tensor, "B N"]
    fresh: bool  # the rows begin here: forget the state carried so far

    @property
    def num_inputs(self) -> int:
        """Tokens of the batch, without padding."""
        return int(self.mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class QuestionBatch:
    """Facts, a question about them, and its answer."""

    facts: Int[Tensor, "B n w"]
    facts_mask: Bool[Tensor, "B n w"]
    question: Int[Tensor, "B w"]
    mask: Bool[Tensor, "B w"]  # of the question
    answers: Int[Tensor, " B"]
    indices: Int[Tensor, " B"]

    @property
    def num_inputs(self) -> int:
        """Tokens of the batch, without padding."""
        return int(self.facts_mask.sum() + self.mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class PictureBatch:
    """Pictures, and what is written or asked about each: texts to write, with or without texts to
    read, or labels. A picture that several examples have is there once.
    """

    pictures: Float[Tensor, "P *frames C h w"]  # from 0 to 1
    pictures_mask: Bool[Tensor, "P *frames h w"]  # True on pixels
    text: Seq2SeqBatch | LabeledBatch
    shown: Int[Tensor, " B"] | None = None  # which picture each has; None: the first the first, ...

    @property
    def num_inputs(self) -> int:
        """Tokens of the batch, without padding."""
        return self.text.num_inputs

    def for_each(
        self,
    ) -> tuple[Float[Tensor, "B *frames C h w"], Bool[Tensor, "B *frames h w"]]:
        """The picture of each example, and its mask."""
        if self.shown is None:
            return self.pictures, self.pictures_mask
        return self.pictures[self.shown], self.pictures_mask[self.shown]

    @property
    def indices(self) -> Int[Tensor, " B"]:
        """Which examples these are."""
        return self.text.indices


def collate_seq2seq(examples: Sequence[Encoded]) -> Seq2SeqBatch:
    """Sequences to sequences, as transduction takes them."""
    packed = Packed.pack(examples)
    inner, mask = packed.target.padded(extra=1), packed.target.mask(extra=1)
    rows, lengths = np.arange(len(packed)), packed.target.lengths
    tokens = np.empty_like(inner)
    tokens[:, 0], tokens[:, 1:] = BEGIN, inner[:, :-1]
    inner[rows, lengths] = END
    features, alignment = packed.column("features"), packed.column("alignment")
    has_features = bool(features.lengths.any())
    return Seq2SeqBatch(
        source=torch.from_numpy(packed.source.padded()),
        source_mask=torch.from_numpy(packed.source.mask()),
        tokens=torch.from_numpy(tokens),
        targets=torch.from_numpy(inner),
        mask=torch.from_numpy(mask),
        indices=torch.from_numpy(packed.indices.copy()),
        features=torch.from_numpy(features.padded()) if has_features else None,
        features_mask=torch.from_numpy(features.mask()) if has_features else None,
        alignment=_alignment(packed) if alignment.lengths.any() else None,
    )


def collate_labelled(examples: Sequence[Encoded]) -> LabeledBatch:
    """Sequences and labels: the target of each example is one number."""
    packed = Packed.pack(examples)
    if (packed.target.lengths != 1).any():
        number = int((packed.target.lengths != 1).argmax())
        raise ShapeError(
            f"collate_labelled: the target must be one label, got {packed.target.lengths[number]} "
            f"for example {packed.indices[number]}. Encode the target as one number."
        )
    return LabeledBatch(
        tokens=torch.from_numpy(packed.source.padded()),
        mask=torch.from_numpy(packed.source.mask()),
        labels=torch.from_numpy(packed.target.padded()[:, 0].copy()),
        indices=torch.from_numpy(packed.indices.copy()),
    )


def collate_documents(examples: Sequence[Encoded]) -> LabeledBatch:
    """Documents and labels: the source of each example is its sentences one after another, each with
    an end symbol behind it; the target is one number.
    """
    flat = collate_labelled(examples)
    words, mask = _sentences(flat, _num_ends(flat).max())
    return replace(flat, tokens=words, mask=mask)


def collate_questions(examples: Sequence[Encoded]) -> QuestionBatch:
    """Facts, questions and answers: the source of each example has the words of its facts, with the end symbol
    after each, `question` those of the question, and the target is one number.
    """
    packed = Packed.pack(examples)
    flat, asked = collate_labelled(packed), packed.column("question")
    width = int(asked.lengths.max(initial=0))
    facts, facts_mask = _sentences(flat, _num_ends(flat).max(), num_words=width)
    more = facts.shape[-1] - width
    return QuestionBatch(
        facts=facts,
        facts_mask=facts_mask,
        question=pad(torch.from_numpy(asked.padded()), (0, more)),
        mask=pad(torch.from_numpy(asked.mask()), (0, more)),
        answers=flat.labels,
        indices=flat.indices,
    )


def _num_ends(flat: LabeledBatch) -> Int[Tensor, " B"]:
    return ((flat.tokens == END) & flat.mask).sum(1)


def _sentences(
    flat: LabeledBatch, num_rows: int | Tensor, *, num_words: int = 1
) -> tuple[Int[Tensor, "B n w"], Bool[Tensor, "B n w"]]:
    """A row for each sentence, the words before an end symbol, of at least `num_words` positions."""
    ids, real = flat.tokens.numpy(), flat.mask.numpy()
    ends = (ids == END) & real
    at = np.arange(ids.shape[1])
    # Where the last end before each place is: -1 in the first sentence.
    before = np.maximum.accumulate(np.where(ends, at, -1), axis=1)
    before = np.concatenate([np.full_like(before[:, :1], -1), before[:, :-1]], axis=1)
    sentence, word = np.cumsum(ends, axis=1) - ends, at - before - 1
    rows, columns = np.nonzero(real & ~ends)
    places = rows, sentence[rows, columns], word[rows, columns]
    shape = (len(ids), int(num_rows), max(num_words, int(places[2].max(initial=0)) + 1))
    words, mask = np.zeros(shape, dtype=ids.dtype), np.zeros(shape, bool)
    words[places], mask[places] = ids[rows, columns], True
    return torch.from_numpy(words), torch.from_numpy(mask)


def collate_text_pairs(examples: Sequence[Encoded]) -> PairBatch:
    """Pairs of texts and labels: the source of each example is the first text, `second` the other, and the target
    is one number.
    """
    packed = Packed.pack(examples)
    first, second = collate_labelled(packed), packed.column("second")
    return PairBatch(
        first=first.tokens,
        first_mask=first.mask,
        second=torch.from_numpy(second.padded()),
        second_mask=torch.from_numpy(second.mask()),
        labels=first.labels,
        indices=first.indices,
    )


def collate_pictures(
    examples: Sequence[Encoded],
    collate_text: Callable[[Packed], Seq2SeqBatch] | Callable[[Packed], LabeledBatch],
) -> PictureBatch:
    """Images, or clips, and their texts: each example has a picture, and `collate_text`, such as
    `collate_seq2seq` or `collate_labelled`, makes a batch of the rest.
    """
    packed = Packed.pack(examples)
    if packed.pictures is None:
        raise ShapeError(
            "collate_pictures: expected examples with pictures, got none. Give Encoded a picture."
        )
    once, which = packed.pictures.once()
    shown = None
    if len(once) == len(packed):  # each has its own: in the order of examples
        once = [packed.pictures[row] for row in range(len(packed))]
    else:
        shown = torch.from_numpy(which)
    pictures, mask = collate_frames(once) if once[0].ndim == 4 else collate_images(once)
    return PictureBatch(pictures, mask, collate_text(packed), shown)


def collate_tagged(examples: Sequence[Encoded]) -> TaggedBatch:
    """Sequences and tags: the target of each example is as long as its source. `spelling`, if there is any, has the
    spelling features of one symbol after another, equally many for each.
    """
    packed = Packed.pack(examples)
    unequal = packed.target.lengths != packed.source.lengths
    if unequal.any():
        number = int(unequal.argmax())
        raise ShapeError(
            f"collate_tagged: each symbol needs one tag, got {packed.target.lengths[number]} tags "
            f"for {packed.source.lengths[number]} symbols in example {packed.indices[number]}. "
            f"Make them equally many."
        )
    return TaggedBatch(
        tokens=torch.from_numpy(packed.source.padded()),
        mask=torch.from_numpy(packed.source.mask()),
        tags=torch.from_numpy(packed.target.padded()),
        indices=torch.from_numpy(packed.indices.copy()),
        spelling=_spelling(packed),
    )


def _spelling(packed: Packed) -> Int[Tensor, "B S K"] | None:
    """The features of each symbol."""
    spelling = packed.column("spelling")
    number, symbols = int(spelling.lengths.sum()), int(packed.source.lengths.sum())
    if not number:
        return None
    each = number // max(1, symbols)
    unequal = spelling.lengths != each * packed.source.lengths
    if unequal.any():
        row = int(unequal.argmax())
        raise ShapeError(
            f"collate_tagged: every symbol needs equally many spelling features, got "
            f"{spelling.lengths[row]} for {packed.source.lengths[row]} symbols in example "
            f"{packed.indices[row]}. Encode the features with one SpellingSpec."
        )
    return torch.from_numpy(spelling.padded()).unflatten(1, (-1, each))


def move(batch: AnyBatch, device: torch.device | str) -> AnyBatch:
    """The batch with its tensors on a device."""
    values: dict[str, Any] = {field.name: getattr(batch, field.name) for field in fields(batch)}
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    moved: dict[str, Any] = {
        name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()
    }
    if isinstance(batch, PictureBatch):
        moved["text"] = move(batch.text, device)
    return replace(batch, **moved)


def _alignment(packed: Packed) -> Bool[Tensor, "B T S"]:
    sizes = (_width(packed.target) + 1, _width(packed.source))
    table = torch.zeros(len(packed), *sizes, dtype=torch.bool)
    for number, example in enumerate(packed):
        alignment = example["alignment"]
        source, target = (torch.tensor(alignment[first::2]) for first in (0, 1))
        inside = (source < len(example.source)) & (target < len(example.target))
        if not inside.all():
            raise ShapeError(
                f"collate_seq2seq: an alignment must stay within {len(example.source)} source and "
                f"{len(example.target)} target symbols, got {max(alignment[::2])} and "
                f"{max(alignment[1::2])} in example {example.index}. Count from 0, in the "
                f"symbols that the tokenizers make."
            )
        if len(source):
            table[number, target, source] = True
    return table


def _width(rows: Ragged) -> int:
    return int(rows.lengths.max(initial=0))
