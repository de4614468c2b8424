"""What all tokenizers have in common."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from ...specs import AbstractSpec


class AbstractTokenizerSpec(AbstractSpec):
    """A tokenizer. Derive from it to cut texts into symbols in a way of your own."""

    __slots__ = ()

    @abstractmethod
    def encode(self, text: str) -> list[str]:
        """The symbols of a text."""

    @abstractmethod
    def decode(self, tokens: Sequence[str]) -> str:
        """The text of symbols."""

    @property
    def is_trained(self) -> bool:
        """Whether it can be used; a tokenizer that learns its symbols from texts is trained first."""
        return True

    def trained_on(self, texts: Iterable[str]) -> "AbstractTokenizerSpec":
        """The tokenizer with symbols that it has learned from these texts."""
        del texts
        return self
