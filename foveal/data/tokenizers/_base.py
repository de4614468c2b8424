"""The base class of tokenizers."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from ...specs import AbstractSpec


class AbstractTokenizerSpec(AbstractSpec):
    """A tokenizer. Derive from it to define a new tokenization."""

    __slots__ = ()

    @abstractmethod
    def encode(self, text: str) -> list[str]:
        """Convert a text to tokens.

        Args:
            text: Text to split.

        Returns:
            The tokens, in order.
        """

    @abstractmethod
    def decode(self, tokens: Sequence[str]) -> str:
        """Convert tokens to a text.

        Args:
            tokens: Tokens, as `encode` returns them or a model generates them.

        Returns:
            The text.
        """

    @property
    def is_trained(self) -> bool:
        """Return True if the tokenizer is ready; a tokenizer that learns its tokens must be trained first."""
        return True

    def trained_on(self, texts: Iterable[str]) -> "AbstractTokenizerSpec":
        """Return the tokenizer with tokens learned from texts. By default there is nothing to learn.

        Args:
            texts: Texts of the training set.

        Returns:
            The trained tokenizer.
        """
        del texts
        return self
