"""The two forms of a source that is a text: one row of tokens, or sentences of tokens.

    text        tokens (B, S),     positions  S
    document    tokens (B, n, w),  positions  n w, sentence by sentence, each padded to the longest sentence

A document can be read in both forms: as a text, its sentences are in a row. A dialog is a document of turns.

Axes: B examples, S positions, n sentences, w words of the longest.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from ..attention import Layout
from ..data import END, Document, Encoded, Example, Seq2SeqBatch, TokenizerSpec, collate_seq2seq
from ..data._batches import collate_document_pairs
from ..data.vocabularies._vocabulary import UNKNOWN
from .base._size_classes import Settled, settled, settled_rows, size_class
from .explaining._erasing import with_each_unknown


@dataclass(frozen=True, slots=True)
class AbstractSourceForm(ABC):
    """The tokens, ids and positions of sources."""

    tokenizer: TokenizerSpec

    @abstractmethod
    def sentences(self, example: Example) -> list[list[str]]:
        """Return the tokens of each sentence; a text is one sentence."""

    @abstractmethod
    def text(self, example: Example) -> str:
        """Return the source on one line or, for a document, with one sentence on each line."""

    @abstractmethod
    def joined(self, sentences: Sequence[list[int]]) -> list[int]:
        """Return the ids of all sentences in a row, as `collate` reads them."""

    @abstractmethod
    def collate(self, examples: Sequence[Encoded]) -> Seq2SeqBatch:
        """Collate encoded examples."""

    @abstractmethod
    def settled(self, tokens: Tensor, mask: Tensor) -> Settled:
        """Pad the sources of examples of one shape class to the size of the class."""

    @abstractmethod
    def shape_class(self, example: Example) -> tuple[int, ...]:
        """Return the size classes of all axes but the first, beyond the size class of the whole source."""

    @abstractmethod
    def positions(self, examples: Sequence[Example], mask: Bool[Tensor, "B *places"]) -> Tensor:
        """Return the positions of the memory that belong to each example, (B, S), in the order of `places`."""

    @abstractmethod
    def places(self, example: Example) -> tuple[str, ...]:
        """Return a label for each position of an example; the padding of a sentence has none."""

    @abstractmethod
    def layout(self, example: Example) -> Layout:
        """Return the layout of the positions of an example."""

    @abstractmethod
    def erased(
        self, tokens: Int[Tensor, "1 *places"], mask: Bool[Tensor, "1 *places"]
    ) -> Int[Tensor, "R *places"]:
        """Return the source, followed by one copy for each position, in which its token is unknown."""

    def symbols(self, example: Example) -> list[str]:
        """Return all tokens of the source."""
        return [symbol for sentence in self.sentences(example) for symbol in sentence]


@final
@dataclass(frozen=True, slots=True)
class TextForm(AbstractSourceForm):
    """One row of tokens."""

    @override
    def sentences(self, example: Example) -> list[list[str]]:
        return [self.tokenizer.encode(self.text(example))]

    @override
    def symbols(self, example: Example) -> list[str]:
        return self.tokenizer.encode(self.text(example))

    @override
    def text(self, example: Example) -> str:
        if isinstance(example.source, str):
            return example.source
        return " ".join(example.input_as(Document).sentences)

    @override
    def joined(self, sentences: Sequence[list[int]]) -> list[int]:
        # Attention needs at least one position, so an empty text becomes one unknown token.
        return sentences[0] or [UNKNOWN]

    @override
    def collate(self, examples: Sequence[Encoded]) -> Seq2SeqBatch:
        return collate_seq2seq(examples)

    @override
    def settled(self, tokens: Tensor, mask: Tensor) -> Settled:
        return settled(tokens, mask)

    @override
    def shape_class(self, example: Example) -> tuple[int, ...]:
        return ()

    @override
    def positions(self, examples: Sequence[Example], mask: Tensor) -> Tensor:
        return mask

    @override
    def places(self, example: Example) -> tuple[str, ...]:
        return tuple(self.symbols(example) or [""])

    @override
    def layout(self, example: Example) -> Layout:
        return Layout()

    @override
    def erased(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return with_each_unknown(tokens)


@final
@dataclass(frozen=True, slots=True)
class DocumentForm(AbstractSourceForm):
    """Sentences of tokens; empty sentences are left out."""

    @override
    def sentences(self, example: Example) -> list[list[str]]:
        found = map(self.tokenizer.encode, example.input_as(Document).sentences)
        return [symbols for symbols in found if symbols] or [[]]

    @override
    def text(self, example: Example) -> str:
        return str(example.input_as(Document))

    @override
    def joined(self, sentences: Sequence[list[int]]) -> list[int]:
        return [number for ids in sentences for number in (*(ids or [UNKNOWN]), END)]

    @override
    def collate(self, examples: Sequence[Encoded]) -> Seq2SeqBatch:
        return collate_document_pairs(examples)

    @override
    def settled(self, tokens: Tensor, mask: Tensor) -> Settled:
        return settled_rows(tokens, mask)

    @override
    def shape_class(self, example: Example) -> tuple[int, ...]:
        return tuple(map(size_class, self._shape(example)))

    @override
    def positions(self, examples: Sequence[Example], mask: Tensor) -> Tensor:
        places = torch.zeros_like(mask)
        for row, example in zip(places, examples, strict=True):
            num_sentences, num_words = self._shape(example)
            row[:num_sentences, :num_words] = True
        return places.flatten(1)

    @override
    def places(self, example: Example) -> tuple[str, ...]:
        _, longest = self._shape(example)
        sentences = self.sentences(example)
        return tuple(word for words in sentences for word in words + [""] * (longest - len(words)))

    @override
    def layout(self, example: Example) -> Layout:
        return Layout("sentences", *self._shape(example))

    @override
    def erased(self, tokens: Tensor, mask: Tensor) -> Tensor:
        real = mask.flatten().nonzero().squeeze(-1)
        rows = tokens.flatten().repeat(len(real) + 1, 1)
        rows[torch.arange(1, len(rows), device=rows.device), real] = UNKNOWN
        return rows.view(-1, *tokens.shape[1:])

    def _shape(self, example: Example) -> tuple[int, int]:
        sentences = self.sentences(example)
        return len(sentences), max(1, *map(len, sentences))
