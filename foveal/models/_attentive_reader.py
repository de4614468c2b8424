"""Attentive reader: a question reads a document, with one attention for the whole question.

    y_s = values of the document,   u = summary of the question        the same encoder reads both texts
    r = attention( u ) over y
    p(answer) = softmax( W tanh( G [r; u] ) + b )

Without attention, r is the summary of the document, which must then hold every possible answer.

Reference: Hermann et al. 2015, section 3.2, whose two texts have separate encoders.

Axes: B items of a batch, S words of the document, R of the question, C answers, V width of a value.
"""

from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from ..attention import Attention, Memory
from ..batch_invariant import Linear
from ..networks import AbstractEncoder
from ..networks._bridges import summarized
from ..specs import check, setting
from ._checks import check_batch, check_sizes, checked_tokens
from ._matcher import AbstractMatcher, AbstractMatcherSpec, Querying, Reading
from .parts._attention_specs import PerQueryAttentionSpec, SoftmaxSpec
from .parts._encoder_specs import EncoderSpec, TextEncoderSpec


@final
class AttentiveReader(AbstractMatcher):
    """Computes log-probabilities of the answers from a document and a question.

    Args:
        encoder: Encodes the document and the question.
        attention: Attention to the document, whose query is the summary of the question; None for the summary of the
            document instead.
        hidden_size: Width of the layer before the answers.
        vocabulary: Number of tokens.
        num_classes: Number of answers.

    Examples:
        >>> reader = AttentiveReaderSpec().build(vocabulary=30, num_classes=4)
        >>> read = reader(torch.randint(30, (2, 7)), None, torch.randint(30, (2, 5)), None)
        >>> read.log_probs.shape, read.weights.shape
        (torch.Size([2, 4]), torch.Size([2, 1, 7]))
    """

    def __init__(
        self,
        encoder: AbstractEncoder,
        attention: Attention | None,
        *,
        hidden_size: int,
        vocabulary: int,
        num_classes: int,
    ) -> None:
        super().__init__()
        self.encoder, self.attention, self.vocabulary = encoder, attention, vocabulary
        read_size = encoder.summary_size if attention is None else encoder.value_size
        self.join = Linear(read_size + encoder.summary_size, hidden_size, bias=False)
        self.output = Linear(hidden_size, num_classes)

    @override
    def forward(
        self,
        first: Int[Tensor, "B S"],
        first_mask: Bool[Tensor, "B S"] | None,
        second: Int[Tensor, "B R"],
        second_mask: Bool[Tensor, "B R"] | None,
    ) -> Reading:
        check_batch("AttentiveReader", first=first.shape[:-1], second=second.shape[:-1])
        document = self._encoded("first", first, first_mask)
        question = self._encoded("second", second, second_mask).summary
        assert question is not None
        if self.attention is None:
            read, attended = document.summary, ()
            assert read is not None
        else:
            reading = self.attention(question.unsqueeze(-2), document)
            read, attended = reading.context.squeeze(-2), (reading,)
        joined = torch.tanh(self.join(torch.cat([read, question], -1)))
        return Reading(self.output(joined).log_softmax(-1), attended)

    def _encoded(self, name: str, tokens: Tensor, mask: Tensor | None) -> Memory:
        with checked_tokens("AttentiveReader", self.vocabulary, mask, **{name: tokens}):
            return summarized(self.encoder(tokens, mask))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class AttentiveReaderSpec(AbstractMatcherSpec):
    """A reader of a document (the first text) that answers a question (the second text) by a label."""

    kind: Literal["attentive_reader"] = "attentive_reader"
    encoder: EncoderSpec = setting(TextEncoderSpec(), "encoder of document and question")
    attention: PerQueryAttentionSpec | None = setting(
        SoftmaxSpec(), "how the question reads the document; none: only its summary"
    )
    hidden_size: int = setting(128, "width of the layer before the answers", at_least=1)

    @property
    @override
    def attention_kind(self) -> str | None:
        return None if self.attention is None else self.attention.kind

    @property
    @override
    def querying(self) -> Querying:
        return "label"

    @override
    def build(self, *, vocabulary: int, num_classes: int) -> AttentiveReader:
        """Build the model with new weights for this vocabulary size and number of answers."""
        check(self)
        check_sizes("AttentiveReader", vocabulary=vocabulary, num_classes=num_classes)
        encoder, attention = self.encoder.build(vocabulary), None
        if self.attention is not None:
            attention = self.attention.build(encoder.summary_size, encoder.value_size)
        return AttentiveReader(
            encoder,
            attention,
            hidden_size=self.hidden_size,
            vocabulary=vocabulary,
            num_classes=num_classes,
        )
