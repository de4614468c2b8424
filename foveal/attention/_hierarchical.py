"""Attention at two levels: over the words of each sentence, then over the sentences.

    s_i     = sum_w b_iw value_iw,    b_i ~ word attention within sentence i
    context = sum_i a_i s_i,          a   ~ sentence attention over s_1 .. s_n

Word w of sentence i therefore has the total weight a_i b_iw. A document encoder (`between`) can process
the sentence vectors between the two levels.

Reference: Yang et al. 2016, eq. 5 to 10.

Axes: *batch any leading shape, n sentences, w words of the longest, S = n w positions of the memory, Q queries, D width
of a query, V of a value.
"""

from collections.abc import Callable
from typing import NamedTuple, final

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..errors import ShapeError
from ._attention import Attended, Attention
from ._memory import Layout, Memory


class HierarchicalAttended(NamedTuple):
    """The context, and the attention at both levels."""

    context: Float[Tensor, "*batch Q V"]
    weights: Float[Tensor, "*batch Q S"]  # the total weight of each word, sentence by sentence
    words: Attended  # within each sentence: weights (*batch, n, Q, w)
    sentences: Attended  # over the sentences, given each query's reading of them


def sentences_memory(
    values: Float[Tensor, "*batch n w V"], mask: Bool[Tensor, "*batch n w"] | None = None
) -> Memory:
    """Build a memory of words in sentences, with S = n * w positions, sentence by sentence.

    A sentence without a real word is padding. Any attention can read the memory; `HierarchicalAttention` follows its
    sentences.

    Args:
        values: Vectors of the words of each sentence.
        mask: True on real words; by default, all are real.

    Returns:
        A memory with the layout "sentences".

    Examples:
        >>> import torch
        >>> sentences_memory(torch.zeros(1, 3, 7, 5)).values.shape
        torch.Size([1, 21, 5])
    """
    sentences, words = values.shape[-3:-1]
    flat = None if mask is None else mask.flatten(-2)
    return Memory(values.flatten(-3, -2), flat, layout=Layout("sentences", sentences, words))


def _by_sentence(memory: Memory) -> Memory:
    """Return a memory of w words for each sentence, with the keys of the words; raise an error without sentences."""
    kind, num_sentences, num_words, _ = memory.layout
    if kind != "sentences" or num_sentences is None or num_words is None:
        raise ShapeError(
            f"HierarchicalAttention: the memory must hold words in sentences, got the layout {kind}. Build it with "
            f"sentences_memory, or encode with DocumentEncoder (encoder=document in a spec)."
        )
    rows = num_sentences, num_words
    mask = None if memory.mask is None else memory.mask.unflatten(-1, rows)
    return Memory(memory.values.unflatten(-2, rows), mask, keys=memory.keys)


@final
class HierarchicalAttention(nn.Module):
    """Applies word attention inside each sentence, then sentence attention.

    Args:
        words: Attention over the words of a sentence.
        sentences: Attention over the sentence vectors.
        between: Document encoder: maps the sentence vectors `(*batch, n, V)` and their mask to n vectors.
            By default, sentence attention reads the sentence vectors themselves.
    """

    def __init__(
        self,
        words: Attention,
        sentences: Attention,
        between: Callable[[Tensor, Tensor | None], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.words, self.sentences, self.between = words, sentences, between

    def remember(self, memory: Memory) -> Memory:
        """Compute the keys of the words once.

        Args:
            memory: Words in sentences, see `sentences_memory`.

        Returns:
            The memory with the keys of the words.
        """
        memory = memory.cleared("HierarchicalAttention")
        return memory._replace(keys=self.words.remember(_by_sentence(memory)).keys)

    def forward(self, query: Float[Tensor, "*batch Q D"], memory: Memory) -> HierarchicalAttended:
        """Attend to the words of every sentence for every query, then to the sentences.

        Args:
            query: Queries, which attend at both levels.
            memory: Words in sentences, see `sentences_memory`.

        Returns:
            The context, the total weight of each word, and the attention at both levels.
        """
        memory = self.remember(memory) if memory.keys is None else memory
        folded = _by_sentence(memory)
        num_sentences = folded.values.shape[-3]
        per_sentence = query.unsqueeze(-3).expand(*query.shape[:-2], num_sentences, -1, -1)
        words = self.words(per_sentence, folded)  # context (*batch, n, Q, V)
        mask = None if folded.mask is None else folded.mask.any(-1)  # (*batch, n)
        read = words.context.transpose(-2, -3)  # (*batch, Q, n, V): a memory for each query
        if mask is not None:
            mask = mask.unsqueeze(-2).expand(read.shape[:-1])
        if self.between is not None:
            read = self.between(read, mask)
        sentences = self.sentences(query.unsqueeze(-2), Memory(read, mask))  # one query per memory
        over_words = words.weights.transpose(-2, -3)  # (*batch, Q, n, w)
        over_sentences = sentences.weights.squeeze(-2)  # (*batch, Q, n)
        return HierarchicalAttended(
            sentences.context.squeeze(-2),
            (over_sentences.unsqueeze(-1) * over_words).flatten(-2),
            words,
            sentences,
        )
