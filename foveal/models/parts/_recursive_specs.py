"""Specs of recursive text encoders: along a tree that the text contains, a balanced tree, or a chain."""

from dataclasses import dataclass
from typing import Literal, final

from torch import nn
from typing_extensions import override

from ...networks import AbstractEncoder, RecursiveEncoder
from ...networks.encoders.trees._bracketing import Tree
from ...networks.encoders.trees._compositions import Composition
from ...specs import setting
from ._encoder_spec import AbstractEncoderSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class AbstractRecursiveSpec:
    """The settings of all recursive encoders."""

    embedding_size: int = setting(128, "width of a token's vector", at_least=1)
    hidden_size: int = setting(128, "width of the state of a constituent", at_least=1)
    composition: Composition = setting("lstm", "how the states of two parts become one")
    dropout: float = setting(
        0.3, "dropout of the embeddings and of the values", at_least=0, at_most=1
    )

    def network(self, vocabulary: int, tree: Tree) -> RecursiveEncoder:
        """Build the network.

        Args:
            vocabulary: Number of tokens.
            tree: Where the tree over the tokens comes from.

        Returns:
            An encoder with new weights.
        """
        return RecursiveEncoder(
            nn.Embedding(vocabulary, self.embedding_size),
            self.hidden_size,
            composition=self.composition,
            tree=tree,
            dropout=self.dropout,
        )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class RecursiveEncoderSpec(AbstractRecursiveSpec, AbstractEncoderSpec):
    """A recursive network over a tree that depends only on the number of tokens."""

    kind: Literal["recursive"] = "recursive"
    tree: Literal["balanced", "chain"] = setting(
        "balanced", "balanced: depth log2 of the number of tokens; chain: from left to right"
    )

    @override
    def build(self, vocabulary: int) -> AbstractEncoder:
        """Build the encoder for tokens 0 to `vocabulary` - 1."""
        return self.network(vocabulary, self.tree)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class BracketedEncoderSpec(AbstractRecursiveSpec):
    """A recursive network over the brackets of a text, such as `( ( a film ) ( with charm ) )`."""

    kind: Literal["bracketed"] = "bracketed"

    def build(self, vocabulary: int) -> RecursiveEncoder:
        """Build the encoder.

        Args:
            vocabulary: Number of tokens; 2 and 3 are the brackets.

        Returns:
            An encoder with new weights.
        """
        return self.network(vocabulary, "brackets")
