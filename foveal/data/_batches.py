"""Batches: encoded examples as padded tensors.

    target            x y z
    tokens      begin x y z         the input of the decoder
    targets           x y z end     the expected output

Axes: B examples, S source positions, R positions of a second text, T target positions (including the end token), F
features, P images, C channels, h and w height and width, n sentences or facts of w words, N positions of a text in a
row, K spelling features of a token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar, final, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from ..errors import ShapeError
from .images._pictures import collate_frames, collate_images
from .streams._packed import Encoded, Packed, Ragged
from .vocabularies._vocabulary import BEGIN, END


@runtime_checkable
class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


AnyBatch = TypeVar("AnyBatch", bound=_Dataclass)


@final
@dataclass(frozen=True, eq=False, slots=True)
class Seq2SeqBatch:
    """Source sequences, or documents of n sentences of w words, and target sequences."""

    source: Int[Tensor, "B *places"]  # (B, S), or (B, n, w)
    source_mask: Bool[Tensor, "B *places"]
    tokens: Int[Tensor, "B T"]  # begin first
    targets: Int[Tensor, "B T"]  # end last
    mask: Bool[Tensor, "B T"]  # shared by tokens and targets
    indices: Int[Tensor, " B"]  # the indices of the examples
    features: Int[Tensor, "B F"] | None = None
    features_mask: Bool[Tensor, "B F"] | None = None
    alignment: Bool[Tensor, "B T S"] | None = None  # True if target position t is aligned with s

    @property
    def num_inputs(self) -> int:
        """Number of tokens in the batch, without padding."""
        return int(self.source_mask.sum() + self.mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class LabeledBatch:
    """Sequences, or documents of n sentences of w words, with one label for each."""

    tokens: Int[Tensor, "B *places"]  # (B, S), or (B, n, w)
    mask: Bool[Tensor, "B *places"]
    labels: Int[Tensor, " B"]
    indices: Int[Tensor, " B"]

    @property
    def num_inputs(self) -> int:
        """Number of tokens in the batch, without padding."""
        return int(self.mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class PairBatch:
    """Pairs of texts with one label for each pair."""

    first: Int[Tensor, "B S"]
    first_mask: Bool[Tensor, "B S"]
    second: Int[Tensor, "B R"]
    second_mask: Bool[Tensor, "B R"]
    labels: Int[Tensor, " B"]
    indices: Int[Tensor, " B"]
    first_heads: Int[Tensor, "B S"] | None = None  # position of each word's head, from 1
    second_heads: Int[Tensor, "B R"] | None = None

    @property
    def num_inputs(self) -> int:
        """Number of tokens in the batch, without padding."""
        return int(self.first_mask.sum() + self.second_mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class TaggedBatch:
    """Sequences with a tag for each token, and optionally the spelling features of each token."""

    tokens: Int[Tensor, "B S"]
    mask: Bool[Tensor, "B S"]
    tags: Int[Tensor, "B S"]
    indices: Int[Tensor, " B"]
    spelling: Int[Tensor, "B S K"] | None = None

    @property
    def num_inputs(self) -> int:
        """Number of tokens in the batch, without padding."""
        return int(self.mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class TextBatch:
    """The next segment of B long texts; each row continues the row of the previous batch."""

    tokens: Int[Tensor, "B N"]
    targets: Int[Tensor, "B N"]
    mask: Bool[Tensor, "B N"]
    fresh: bool  # True if the rows start here and the model must reset its state

    @property
    def num_inputs(self) -> int:
        """Number of tokens in the batch, without padding."""
        return int(self.mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class QuestionBatch:
    """Facts, a question about them, and its answer."""

    facts: Int[Tensor, "B n w"]
    facts_mask: Bool[Tensor, "B n w"]
    question: Int[Tensor, "B w"]
    mask: Bool[Tensor, "B w"]  # mask of the question
    answers: Int[Tensor, " B"]
    indices: Int[Tensor, " B"]

    @property
    def num_inputs(self) -> int:
        """Number of tokens in the batch, without padding."""
        return int(self.facts_mask.sum() + self.mask.sum())


@final
@dataclass(frozen=True, eq=False, slots=True)
class PictureBatch:
    """Images, with a target text for each, with or without a source text, or with a label. An image that several
    examples share is stored once.
    """

    pictures: Float[Tensor, "P *frames C h w"]  # from 0 to 1
    pictures_mask: Bool[Tensor, "P *frames h w"]  # True on pixels
    text: Seq2SeqBatch | LabeledBatch
    shown: Int[Tensor, " B"] | None = None  # index of each example's image; None for one each

    @property
    def num_inputs(self) -> int:
        """Number of tokens in the batch, without padding."""
        return self.text.num_inputs

    def for_each(
        self,
    ) -> tuple[Float[Tensor, "B *frames C h w"], Bool[Tensor, "B *frames h w"]]:
        """Return the image of each example, and its mask."""
        if self.shown is None:
            return self.pictures, self.pictures_mask
        return self.pictures[self.shown], self.pictures_mask[self.shown]

    @property
    def indices(self) -> Int[Tensor, " B"]:
        """The indices of the examples."""
        return self.text.indices


def collate_seq2seq(examples: Sequence[Encoded]) -> Seq2SeqBatch:
    """Collate source and target sequences, for transduction.

    Args:
        examples: Encoded examples, with ids of the source and of the target.

    Returns:
        Padded tensors with one row per example. `tokens` begins with the begin token and is the input of the decoder;
        `targets` is the same sequence shifted by one, with the end token. Features and alignment are None if no example
        has any.
    """
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


def collate_document_pairs(examples: Sequence[Encoded]) -> Seq2SeqBatch:
    """Collate documents and target sequences. The source of each example contains its sentences in a row, each followed
    by an end token.
    """
    flat = collate_seq2seq(examples)
    words, mask = _sentences(flat.source, flat.source_mask)
    return replace(flat, source=words, source_mask=mask)


def collate_labelled(examples: Sequence[Encoded]) -> LabeledBatch:
    """Collate sequences and labels; the target of each example is one id.

    Args:
        examples: Encoded examples, each with exactly one target id.

    Returns:
        Padded sequences with one row per example, and one label per row.

    Raises:
        ShapeError: A target does not have exactly one id.
    """
    packed = Packed.pack(examples)
    if (packed.target.lengths != 1).any():
        number = int((packed.target.lengths != 1).argmax())
        raise ShapeError(
            f"collate_labelled: the target must be one label, got {packed.target.lengths[number]} "
            f"labels for example {packed.indices[number]}. Encode the target as one number."
        )
    return LabeledBatch(
        tokens=torch.from_numpy(packed.source.padded()),
        mask=torch.from_numpy(packed.source.mask()),
        labels=torch.from_numpy(packed.target.padded()[:, 0].copy()),
        indices=torch.from_numpy(packed.indices.copy()),
    )


def collate_documents(examples: Sequence[Encoded]) -> LabeledBatch:
    """Collate documents and labels. The source of each example contains its sentences in a row, each followed by an
    end token; the target is one id.
    """
    flat = collate_labelled(examples)
    words, mask = _sentences(flat.tokens, flat.mask)
    return replace(flat, tokens=words, mask=mask)


def collate_questions(examples: Sequence[Encoded]) -> QuestionBatch:
    """Collate facts, questions and answers. The source of each example contains the words of its facts, each fact
    followed by an end token; `question` contains the words of the question; the target is one id.
    """
    packed = Packed.pack(examples)
    flat, asked = collate_labelled(packed), packed.column("question")
    width = int(asked.lengths.max(initial=0))
    facts, facts_mask = _sentences(flat.tokens, flat.mask, num_words=width)
    more = facts.shape[-1] - width
    return QuestionBatch(
        facts=facts,
        facts_mask=facts_mask,
        question=pad(torch.from_numpy(asked.padded()), (0, more)),
        mask=pad(torch.from_numpy(asked.mask()), (0, more)),
        answers=flat.labels,
        indices=flat.indices,
    )


def _sentences(
    tokens: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"], *, num_words: int = 1
) -> tuple[Int[Tensor, "B n w"], Bool[Tensor, "B n w"]]:
    """Return one row for each sentence, without its end token and with at least `num_words` positions."""
    ids, real = tokens.numpy(), mask.numpy()
    ends = (ids == END) & real
    at = np.arange(ids.shape[1])
    # Position of the last end token before each position; -1 in the first sentence.
    before = np.maximum.accumulate(np.where(ends, at, -1), axis=1)
    before = np.concatenate([np.full_like(before[:, :1], -1), before[:, :-1]], axis=1)
    sentence, word = np.cumsum(ends, axis=1) - ends, at - before - 1
    rows, columns = np.nonzero(real & ~ends)
    places = rows, sentence[rows, columns], word[rows, columns]
    num_rows = int(ends.sum(1).max(initial=0))
    shape = (len(ids), num_rows, max(num_words, int(places[2].max(initial=0)) + 1))
    words, is_word = np.zeros(shape, dtype=ids.dtype), np.zeros(shape, bool)
    words[places], is_word[places] = ids[rows, columns], True
    return torch.from_numpy(words), torch.from_numpy(is_word)


def collate_text_pairs(examples: Sequence[Encoded]) -> PairBatch:
    """Collate pairs of texts and labels. The source of each example is the first text, `second` is the second text,
    and the target is one id.
    """
    packed = Packed.pack(examples)
    first, second = collate_labelled(packed), packed.column("second")
    heads = packed.column("heads"), packed.column("second_heads")
    first_heads, second_heads = (
        torch.from_numpy(each.padded()) if each.lengths.any() else None for each in heads
    )
    return PairBatch(
        first=first.tokens,
        first_mask=first.mask,
        second=torch.from_numpy(second.padded()),
        second_mask=torch.from_numpy(second.mask()),
        labels=first.labels,
        indices=first.indices,
        first_heads=first_heads,
        second_heads=second_heads,
    )


def collate_pictures(
    examples: Sequence[Encoded],
    collate_text: Callable[[Packed], Seq2SeqBatch] | Callable[[Packed], LabeledBatch],
) -> PictureBatch:
    """Collate images, or clips, and their texts.

    Args:
        examples: Encoded examples, each with a picture.
        collate_text: Collates everything except the images, for example `collate_seq2seq` or `collate_labelled`.

    Returns:
        Padded images or clips, their masks and the collated texts. An image that several examples share appears once.

    Raises:
        ShapeError: The examples have no pictures.
    """
    packed = Packed.pack(examples)
    if packed.pictures is None:
        raise ShapeError(
            "collate_pictures: expected examples with images, got none. Set the picture of Encoded."
        )
    once, which = packed.pictures.once()
    shown = None
    if len(once) == len(packed):  # no image is shared: keep the order of the examples
        once = [packed.pictures[row] for row in range(len(packed))]
    else:
        shown = torch.from_numpy(which)
    pictures, mask = collate_frames(once) if once[0].ndim == 4 else collate_images(once)
    return PictureBatch(pictures, mask, collate_text(packed), shown)


def collate_tagged(examples: Sequence[Encoded]) -> TaggedBatch:
    """Collate sequences and tags. The target of each example has the length of its source. The optional column
    `spelling` contains the spelling features of all tokens in a row, with the same number for each token.
    """
    packed = Packed.pack(examples)
    unequal = packed.target.lengths != packed.source.lengths
    if unequal.any():
        number = int(unequal.argmax())
        raise ShapeError(
            f"collate_tagged: each token needs one tag, got {packed.target.lengths[number]} tags for "
            f"{packed.source.lengths[number]} tokens in example {packed.indices[number]}. Give one "
            f"tag per token."
        )
    return TaggedBatch(
        tokens=torch.from_numpy(packed.source.padded()),
        mask=torch.from_numpy(packed.source.mask()),
        tags=torch.from_numpy(packed.target.padded()),
        indices=torch.from_numpy(packed.indices.copy()),
        spelling=_spelling(packed),
    )


def _spelling(packed: Packed) -> Int[Tensor, "B S K"] | None:
    """Return the spelling features of each token."""
    spelling = packed.column("spelling")
    number, symbols = int(spelling.lengths.sum()), int(packed.source.lengths.sum())
    if not number:
        return None
    each = number // max(1, symbols)
    unequal = spelling.lengths != each * packed.source.lengths
    if unequal.any():
        row = int(unequal.argmax())
        raise ShapeError(
            f"collate_tagged: every token needs the same number of spelling features, got "
            f"{spelling.lengths[row]} for {packed.source.lengths[row]} tokens in example "
            f"{packed.indices[row]}. Encode the features with one SpellingSpec."
        )
    return torch.from_numpy(spelling.padded()).unflatten(1, (-1, each))


def move(batch: AnyBatch, device: torch.device | str) -> AnyBatch:
    """Return the batch with its tensors on a device. The copy to a GPU is queued: the host does not wait for it."""
    values: dict[str, Any] = {field.name: getattr(batch, field.name) for field in fields(batch)}
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    moved: dict[str, Any] = {name: _copied(tensor, device) for name, tensor in tensors.items()}
    if isinstance(batch, PictureBatch):
        moved["text"] = move(batch.text, device)
    return replace(batch, **moved)


def _copied(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Return a tensor on a device. A GPU reads only pinned memory while the host continues."""
    is_to_gpu = torch.device(device).type == "cuda" and tensor.is_cpu
    return (tensor.pin_memory() if is_to_gpu else tensor).to(device, non_blocking=True)


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
                f"{len(example.target)} target tokens, got {max(alignment[::2])} and "
                f"{max(alignment[1::2])} in example {example.index}. Count tokens from 0, after "
                f"tokenization."
            )
        if len(source):
            table[number, target, source] = True
    return table


def _width(rows: Ragged) -> int:
    return int(rows.lengths.max(initial=0))
