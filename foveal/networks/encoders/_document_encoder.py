"""Document encoder: words form sentences, sentences form the document.

    h1_ij = RNN1( h1_ij-1, w_ij ),   s_i = h1_i at the last word, or attention over the words
    h2_i  = RNN2( h2_i-1, s_i ),     summary = h2 at the last sentence

For a decoder, the value of each word is [h1_ij; h2_i], so attention to words also sees the sentence and its context.

References: CS7015 Lecture 16, section 5; Yang et al. 2016, eq. 1 to 7; Sordoni et al. 2015 (hierarchical recurrent
encoder-decoder); Nallapati et al. 2016, section 2.3 (words and sentences for a decoder).

Axes: *batch any leading shape, n sentences, w words of the longest, S = n w positions, V width of a value.
"""

from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from typing_extensions import override

from ...attention import Attended, AttentionPooling, Memory, sentences_memory
from ...errors import ShapeError
from .._bridges import summarized
from ..recurrent._stacks import RecurrentStack
from ._encoder import AbstractEncoder


class Document(NamedTuple):
    """A document at both levels.

    A decoder attends to `sentences`, or to `words` with `HierarchicalAttention`.
    """

    sentences: Memory  # values (*batch, n, V), summary of the document
    words: Memory  # values (*batch, S, V), sentence by sentence, and the same summary
    attended: Attended | None  # attention of sentences to their words: weights (*batch, n, 1, w)


@final
class DocumentEncoder(nn.Module):
    """Encodes words with an encoder and sentences with a stack.

    The vector of a sentence is the summary of its words, or the result of `pooling` over its words.

    Args:
        words: Encodes the words of a sentence.
        sentences: Stack over the vectors of the sentences.
        pooling: Computes the vector of a sentence from its words; defaults to the summary of the encoder.

    Raises:
        ShapeError: If the input width of the stack is not the width of a word's value.

    Examples:
        >>> import torch
        >>> from foveal.networks import TextEncoder, recurrent_stack
        >>> words = TextEncoder(nn.Embedding(9, 4), recurrent_stack(4, 5))
        >>> encoder = DocumentEncoder(words, recurrent_stack(5, 6))
        >>> document = encoder(torch.zeros(2, 3, 7, dtype=torch.long))
        >>> document.sentences.values.shape, document.words.values.shape
        (torch.Size([2, 3, 6]), torch.Size([2, 21, 5]))
    """

    def __init__(
        self,
        words: AbstractEncoder,
        sentences: RecurrentStack,
        pooling: AttentionPooling | None = None,
    ) -> None:
        super().__init__()
        if words.value_size != sentences.input_size:
            raise ShapeError(
                f"DocumentEncoder: the stack over sentences must have input_size "
                f"{words.value_size}, the width of a word's value, got {sentences.input_size}. "
                f"Make them equal."
            )
        self.words, self.sentences, self.pooling = words, sentences, pooling
        self.value_size = self.summary_size = sentences.output_size

    def forward(
        self, inputs: Int[Tensor, "*batch n w"], mask: Bool[Tensor, "*batch n w"] | None = None
    ) -> Document:
        """Encode words, then sentences; a sentence without a real word is padding.

        Args:
            inputs: Token ids, sentence by sentence.
            mask: True on real words; None if all words are real.

        Returns:
            The memories of sentences and words, and the attention of sentences to their words.
        """
        words = summarized(self.words(inputs, mask))
        attended = None if self.pooling is None else self.pooling(words)
        vectors = words.summary if attended is None else attended.context.squeeze(-2)
        real = None if mask is None else mask.any(-1)
        outputs, state = self.sentences(vectors, real)
        summary = state[-1].hidden
        return Document(
            Memory(outputs, real, summary),
            sentences_memory(words.values, mask)._replace(summary=summary),
            attended,
        )


@final
class DocumentWordsEncoder(AbstractEncoder):
    """Encodes documents for a decoder: each position is a word, with the state of its sentence.

    Args:
        document: Encodes words and sentences.

    Examples:
        >>> from foveal.networks import TextEncoder, recurrent_stack
        >>> words = TextEncoder(nn.Embedding(9, 4), recurrent_stack(4, 5))
        >>> encoder = DocumentWordsEncoder(DocumentEncoder(words, recurrent_stack(5, 6)))
        >>> memory = encoder(torch.zeros(2, 3, 7, dtype=torch.long))
        >>> memory.values.shape, memory.summary.shape
        (torch.Size([2, 21, 11]), torch.Size([2, 6]))
    """

    def __init__(self, document: DocumentEncoder) -> None:
        super().__init__()
        self.document = document
        self.value_size = document.words.value_size + document.value_size
        self.summary_size = document.summary_size

    @override
    def forward(
        self, inputs: Int[Tensor, "*batch n w"], mask: Bool[Tensor, "*batch n w"] | None = None
    ) -> Memory:
        sentences, words, _ = self.document(inputs, mask)
        states = sentences.values.repeat_interleave(inputs.shape[-1], -2)  # (*batch, S, V)
        if words.mask is not None:
            states = states.masked_fill(~words.mask.unsqueeze(-1), 0.0)
        return words._replace(values=torch.cat([words.values, states], -1))
