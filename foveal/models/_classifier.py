"""Classifier: one label for a whole text or document.

    memory = encoder(tokens),   log p(class) = log_softmax( W pool(memory) + b )

    pool = the encoder's summary, the mean or the maximum over positions, or attention with one learned
    query, whose weights show which words decided

For a document, the pool combines sentence vectors, each of which is pooled from its words.

References: Yang et al. 2016 (attention at two levels); Lin et al. 2017.

Axes: B items of a batch, S tokens, n sentences of w words, C classes, V width of a value.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ..attention import Attended, AttentionPooling, Memory, max_pooling, mean_pooling
from ..batch_invariant import Linear
from ..networks import AbstractEncoder, DocumentEncoder
from ..networks.encoders._document_encoder import Document
from ..specs import AbstractSpec, check, setting
from ._checks import check_axes, check_sizes, checked_tokens
from .parts._attention_specs import PerQueryAttentionSpec, SoftmaxSpec
from .parts._document_spec import DocumentEncoderSpec
from .parts._encoder_specs import EncoderSpec, TextEncoderSpec
from .parts._recursive_specs import BracketedEncoderSpec

# Computes one vector for each memory: (*batch, S, V) -> (*batch, V).
Pool = Callable[[Memory], Tensor]
Pooling = Literal["summary", "mean", "max"] | PerQueryAttentionSpec


class Classified(NamedTuple):
    """The class probabilities, and the attention behind them."""

    log_probs: Float[Tensor, "B C"]
    attended: Attended | None  # over the tokens, or over the sentences of a document
    words: Attended | None = None  # over the words of each sentence: weights (B, n, 1, w)

    @property
    def weights(self) -> Tensor | None:
        """Return the weight of each token: `(B, S)`, or `(B, n, w)` in a document.

        The result is None if the model has no attention, or if only one of the two levels of a document
        has attention.
        """
        if self.attended is None:
            return None
        places = self.attended.weights.squeeze(-2)
        return (
            places if self.words is None else places.unsqueeze(-1) * self.words.weights.squeeze(-2)
        )


@final
class Classifier(nn.Module):
    """Computes log-probabilities of the classes from tokens.

    Args:
        encoder: Encodes texts `(B, S)`, or documents `(B, n, w)`.
        pool: Computes one vector for each text from the positions of its memory.
        output: Linear layer from this vector to the scores of the classes.
        vocabulary: Number of tokens.
        dropout: Dropout probability of the pooled vector.

    Examples:
        >>> import torch
        >>> classifier = ClassifierSpec().build(vocabulary=30, num_classes=4)
        >>> classified = classifier(torch.randint(30, (2, 7)))
        >>> classified.log_probs.shape, classified.weights.shape
        (torch.Size([2, 4]), torch.Size([2, 7]))
    """

    def __init__(
        self,
        encoder: AbstractEncoder | DocumentEncoder,
        pool: Pool | AttentionPooling,
        output: nn.Linear,
        *,
        vocabulary: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder, self.pool, self.output = encoder, pool, output
        self.vocabulary = vocabulary
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, tokens: Int[Tensor, "B *places"], mask: Bool[Tensor, "B *places"] | None = None
    ) -> Classified:
        """Classify texts `(B, S)`, or documents `(B, n, w)`.

        Args:
            tokens: Token ids.
            mask: True on real tokens; None if all tokens are real.

        Returns:
            The log-probabilities of the classes and the attention behind them.

        Raises:
            ShapeError: If the number of axes of the tokens does not match the encoder.
        """
        documents = isinstance(self.encoder, DocumentEncoder)
        check_axes("Classifier", "tokens", tokens, documents=documents)
        with checked_tokens("Classifier", self.vocabulary, mask, tokens=tokens):
            encoded = self.encoder(tokens, mask)
        memory, words = encoded, None
        if isinstance(encoded, Document):
            memory, words = encoded.sentences, encoded.attended
        vector, attended = pooled(self.pool, memory)
        return Classified(self.output(self.dropout(vector)).log_softmax(-1), attended, words)


def pooled(
    pool: Pool | AttentionPooling, memory: Memory
) -> tuple[Float[Tensor, "B V"], Attended | None]:
    """Pool each memory to one vector, and return the attention of the pool, if any."""
    found = pool(memory)
    if isinstance(found, Tensor):
        return found, None
    return found.context.squeeze(-2), found


class AbstractClassifierSpec(AbstractSpec):
    """A text classifier. Derive from it to use a custom model in `ClassificationSpec`."""

    __slots__ = ()

    @abstractmethod
    def build(self, *, vocabulary: int, num_classes: int) -> nn.Module:
        """Build the model with new weights.

        The task calls the model with tokens `(B, S)` and a mask `(B, S)`, which is True on real tokens, or
        with tokens only. The model returns a `Classified`.

        Args:
            vocabulary: Number of tokens.
            num_classes: Number of classes.

        Returns:
            The model.
        """

    @property
    def attention_kind(self) -> str | None:
        """Return the name of the attention over tokens in traces; None if the model returns no weights."""
        return None

    @property
    def is_exclusive(self) -> bool:
        """Return whether the weights of a text are probabilities of one token and therefore sum to 1."""
        return True

    @property
    def is_bridged(self) -> bool:
        """Return whether the tokens also reach the output without a recurrence.

        They do with attention, or with a pool over all positions. The doctor then ignores small gradients
        through time.
        """
        return self.attention_kind is not None

    @property
    def reads_documents(self) -> bool:
        """Return whether tokens and mask have the shape `(B, n, w)`: n sentences of w words."""
        return False

    @property
    def reads_trees(self) -> bool:
        """Return whether the tokens 2 and 3 are the brackets of a text, which is then a tree."""
        return False


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifierSpec(AbstractClassifierSpec):
    """A model that predicts one label for a whole text or document."""

    kind: Literal["classifier"] = "classifier"
    encoder: EncoderSpec | DocumentEncoderSpec | BracketedEncoderSpec = setting(
        TextEncoderSpec(), "encoder of the text"
    )
    pooling: Pooling = setting(SoftmaxSpec(), "how the positions are pooled into one vector")
    dropout: float = setting(0.3, "dropout rate of the pooled vector", at_least=0, at_most=1)

    @override
    def build(self, *, vocabulary: int, num_classes: int) -> Classifier:
        """Build the model with new weights for this vocabulary size and number of classes."""
        check(self)
        check_sizes("Classifier", vocabulary=vocabulary, num_classes=num_classes)
        encoder = self.encoder.build(vocabulary)
        pool, size = build_pool(self.pooling, encoder)
        output = Linear(size, num_classes)
        return Classifier(encoder, pool, output, vocabulary=vocabulary, dropout=self.dropout)

    @property
    @override
    def attention_kind(self) -> str | None:
        return None if isinstance(self.pooling, str) else self.pooling.kind

    @property
    @override
    def is_exclusive(self) -> bool:
        return not isinstance(self.pooling, str) and self.pooling.is_exclusive

    @property
    @override
    def is_bridged(self) -> bool:
        return self.pooling != "summary"

    @property
    @override
    def reads_documents(self) -> bool:
        return isinstance(self.encoder, DocumentEncoderSpec)

    @property
    @override
    def reads_trees(self) -> bool:
        return isinstance(self.encoder, BracketedEncoderSpec)


def build_pool(
    pooling: Pooling, encoder: AbstractEncoder | DocumentEncoder
) -> tuple[Pool | AttentionPooling, int]:
    """Return the function that pools all positions to one vector, and the width of that vector."""
    size = encoder.value_size
    if not isinstance(pooling, str):
        return AttentionPooling(pooling.build(size, size), query_size=size), size
    pool = {"summary": _summary, "mean": mean_pooling, "max": max_pooling}[pooling]
    return pool, encoder.summary_size if pooling == "summary" else size


def _summary(memory: Memory) -> Tensor:
    """Return the encoder's summary, or the mean if it has none."""
    return mean_pooling(memory) if memory.summary is None else memory.summary
