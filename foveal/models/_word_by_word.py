"""Word-by-word attention: the second text is read word by word, and each word attends to the first text.

    a = first network(first text),   h = second network(second text), which starts from the last state of the first
    c_t = attention( [h_t; r_{t-1}] ) over a
    r_t = c_t + tanh( T r_{t-1} ),   r_0 = 0
    p = softmax( W tanh( P r_R + X h_R ) + b )

With additive attention, the query [h_t; r_{t-1}] gives the scores of the paper, w . tanh( Y a_s + H h_t + R r_{t-1} ).
The vector r_t carries the result of earlier readings to the next word.

    every_word      as above
    last_word       one reading, by the last state h_R: r = attention( h_R ) over a
    nothing         p = softmax( W h_R + b ); only the state connects the texts (conditional encoding)

Reference: Rocktäschel et al. 2016, sections 2.2 to 2.4.

Axes: B items of a batch, S words of the first text, R of the second, C classes, H width of a state.
"""

from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ..attention import Attended, Attention, Memory
from ..batch_invariant import Linear
from ..networks import RecurrentStack
from ..networks._dropout import Dropout
from ..networks.encoders._encoder import without_padding
from ..specs import check, setting
from ._checks import check_batch, check_sizes, checked_tokens
from ._matcher import AbstractMatcher, AbstractMatcherSpec, Querying, Reading
from .parts._attention_specs import PerQueryAttentionSpec, SoftmaxSpec
from .parts._recurrent_spec import AbstractRecurrentSpec

Readers = Literal["every_word", "last_word", "nothing"]


@final
class WordByWordAttention(AbstractMatcher):
    """Computes log-probabilities of the classes from two texts, with an attention from the second to the first.

    Args:
        embedding: Table of the word vectors of both texts.
        first: Recurrent network over the first text.
        second: Recurrent network over the second text, with the state of the first.
        attention: Attention to the outputs of the first network. Its queries are [h; r] of width 2 H if every word
            reads, or h of width H if the last word reads; None if nothing reads.
        num_classes: Number of classes.
        every_word: Every word of the second text reads; otherwise only the last.
        dropout: Dropout probability of word vectors and of the outputs of both networks.

    Examples:
        >>> matcher = WordByWordSpec(hidden_size=8).build(vocabulary=30, num_classes=3)
        >>> read = matcher(torch.randint(30, (2, 7)), None, torch.randint(30, (2, 5)), None)
        >>> read.log_probs.shape, read.weights.shape
        (torch.Size([2, 3]), torch.Size([2, 5, 7]))
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        first: RecurrentStack,
        second: RecurrentStack,
        attention: Attention | None,
        *,
        num_classes: int,
        every_word: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        size = second.output_size
        self.embedding, self.first, self.second, self.attention = (
            embedding,
            first,
            second,
            attention,
        )
        self.dropout = Dropout(dropout)
        self.carry = Linear(size, size, bias=False) if attention and every_word else None
        self.join = None if attention is None else Linear(2 * size, size, bias=False)  # [P, X]
        self.output = Linear(size, num_classes)

    @override
    def forward(
        self,
        first: Int[Tensor, "B S"],
        first_mask: Bool[Tensor, "B S"] | None,
        second: Int[Tensor, "B R"],
        second_mask: Bool[Tensor, "B R"] | None,
    ) -> Reading:
        check_batch("WordByWordAttention", first=first.shape[:-1], second=second.shape[:-1])
        premise = self.first(self._words("first", first, first_mask), first_mask)
        words = self._words("second", second, second_mask)
        hypothesis = self.second(words, second_mask, premise.state)
        last = self.dropout(hypothesis.state[-1].hidden)
        if self.attention is None or self.join is None:
            return Reading(self.output(last).log_softmax(-1))
        memory = self.attention.remember(Memory(self.dropout(premise.outputs), first_mask))
        if self.carry is None:
            reading = self.attention(last.unsqueeze(-2), memory)
            attended, read = (reading,), reading.context.squeeze(-2)
        else:
            attended, read = self._read(self.dropout(hypothesis.outputs), second_mask, memory)
        joined = torch.tanh(self.join(torch.cat([read, last], -1)))
        return Reading(self.output(joined).log_softmax(-1), attended)

    def _words(self, name: str, tokens: Tensor, mask: Tensor | None) -> Tensor:
        size = self.embedding.num_embeddings
        with checked_tokens("WordByWordAttention", size, mask, **{name: tokens}):
            return self.dropout(self.embedding(without_padding(tokens, mask)))

    def _read(
        self, states: Float[Tensor, "B R H"], mask: Bool[Tensor, "B R"] | None, memory: Memory
    ) -> tuple[tuple[Attended, ...], Float[Tensor, "B H"]]:
        """Return the attention of each word, and the vector r after the last real word."""
        assert self.attention is not None
        assert self.carry is not None
        read, attended = torch.zeros_like(states[..., 0, :]), list[Attended]()
        for t in range(states.shape[-2]):
            query = torch.cat([states[..., t, :], read], -1)
            reading = self.attention(query.unsqueeze(-2), memory)
            after = reading.context.squeeze(-2) + torch.tanh(self.carry(read))
            read = after if mask is None else torch.where(mask[..., t, None], after, read)
            attended.append(reading)
        return tuple(attended), read


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class WordByWordSpec(AbstractRecurrentSpec, AbstractMatcherSpec):
    """A recurrent network over the second text whose words attend to the first text."""

    kind: Literal["word_by_word"] = "word_by_word"
    embedding_size: int = setting(128, "width of a token's vector", at_least=1)
    readers: Readers = setting("every_word", "the words of the second text that read the first")
    attention: PerQueryAttentionSpec = setting(SoftmaxSpec(), "how they read it")

    @property
    @override
    def attention_kind(self) -> str | None:
        return None if self.readers == "nothing" else self.attention.kind

    @property
    @override
    def querying(self) -> Querying:
        return "second" if self.readers == "every_word" else "label"

    @override
    def build(self, *, vocabulary: int, num_classes: int) -> WordByWordAttention:
        """Build the model with new weights for this vocabulary size and number of classes."""
        check(self)
        check_sizes("WordByWordAttention", vocabulary=vocabulary, num_classes=num_classes)
        first, second = (self.stack(self.embedding_size) for _ in range(2))
        every, size = self.readers == "every_word", second.output_size
        attention = None
        if self.readers != "nothing":
            attention = self.attention.build(2 * size if every else size, size)
        return WordByWordAttention(
            nn.Embedding(vocabulary, self.embedding_size),
            first,
            second,
            attention,
            num_classes=num_classes,
            every_word=every,
            dropout=self.dropout,
        )
