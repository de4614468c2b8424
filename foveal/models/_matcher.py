"""The shared parts of models that classify a pair of texts, and of their specs.

Axes: B items of a batch, S words of the first text, R of the second, C classes, Q queries, P positions that are read.
"""

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..attention import Attended
from ..specs import AbstractSpec

# The queries of the attention between the texts: the words of a text, which read the other text, or one query that
# reads the first text and stands for the label.
Querying = Literal["first", "second", "label"]


class Matched(NamedTuple):
    """The class probabilities, and the attention between the words of the two texts."""

    log_probs: Float[Tensor, "B C"]
    first: Attended  # the words of the first text attend to the second: weights (B, S, R)
    second: Attended  # the words of the second text attend to the first: weights (B, R, S)

    @property
    def weights(self) -> Float[Tensor, "B S R"]:
        """Return the weights with which the words of the first text read the second."""
        return self.first.weights


class Reading(NamedTuple):
    """The class probabilities, and the attention to the first text in the order of the queries, if any."""

    log_probs: Float[Tensor, "B C"]
    attended: tuple[Attended, ...] = ()

    @property
    def weights(self) -> Float[Tensor, "B Q S"] | None:
        """Return the weight of each word of the first text for each query; None without attention."""
        return torch.cat([read.weights for read in self.attended], -2) if self.attended else None


class AbstractMatcher(nn.Module, ABC):
    """A model that classifies a pair of texts."""

    @abstractmethod
    def forward(
        self,
        first: Int[Tensor, "B S"],
        first_mask: Bool[Tensor, "B S"] | None,
        second: Int[Tensor, "B R"],
        second_mask: Bool[Tensor, "B R"] | None,
    ) -> Matched | Reading:
        """Classify each pair of a first and a second text.

        Args:
            first: Token ids of the first texts.
            first_mask: True on real tokens; None if all tokens are real.
            second: Token ids of the second texts.
            second_mask: True on real tokens; None if all tokens are real.

        Returns:
            The log-probabilities of the classes and the attention between the texts.
        """

    def self_attentions(
        self, tokens: Int[Tensor, " S"], heads: Int[Tensor, " S"] | None = None
    ) -> tuple[Attended, ...]:
        """Return the self-attentions within a text; by default, there are none.

        Args:
            tokens: Token ids of one text.
            heads: Position of the head of each word, for models that read heads.

        Returns:
            The attentions from the input to the output.
        """
        return ()


class AbstractMatcherSpec(AbstractSpec):
    """A model that classifies a pair of texts."""

    __slots__ = ()

    @abstractmethod
    def build(self, *, vocabulary: int, num_classes: int) -> AbstractMatcher:
        """Build the model with new weights.

        Args:
            vocabulary: Number of tokens.
            num_classes: Number of classes.

        Returns:
            The model, in training mode.
        """

    @property
    @abstractmethod
    def attention_kind(self) -> str | None:
        """Return the name of the attention between the texts in traces; None if there is none."""

    @property
    def self_attention_kinds(self) -> tuple[str, ...]:
        """Return the name of each self-attention in traces, in the order of the model's `self_attentions`."""
        return ()

    @property
    def reads_heads(self) -> bool:
        """Return whether `forward` needs the heads of the words of both texts, as `heads`."""
        return False

    @property
    @abstractmethod
    def querying(self) -> Querying:
        """Return the queries of the attention between the texts."""
