"""What all specs of tasks have in common."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from ...data import AbstractTokenizerSpec, Example
from ...data.vocabularies._vocabularies import Vocabularies
from ...specs import AbstractSpec

Built_co = TypeVar("Built_co", covariant=True)


class Inputs(NamedTuple):
    """What an input is made of: which fields a page shows, and which columns a file has."""

    text: bool = True
    second: bool = False  # another text after the first
    features: bool = False
    picture: bool = False


_TEXT = Inputs()


class AbstractTaskSpec(AbstractSpec, Generic[Built_co]):
    """A task. Derive from it, or from `AbstractTextSpec`, to train, save, load, predict with, evaluate,
    explain and serve a task of your own.
    """

    __slots__ = ()

    @abstractmethod
    def build(self, vocabularies: Vocabularies) -> Built_co:
        """Build the task with fresh weights."""

    @abstractmethod
    def build_from(self, examples: Iterable[Example]) -> Built_co:
        """Build the task for these training examples, which may be read more than once: symbols and labels
        are theirs, weights are fresh.
        """

    @property
    def inputs(self) -> Inputs:
        """What an input is made of; by default one text."""
        return _TEXT

    @property
    def attention_choices(self) -> tuple[str, ...]:
        """Kinds of decoder attention that a sweep tries; none by default."""
        return ()

    def tokenizer(self, side: str) -> AbstractTokenizerSpec | None:
        """The tokenizer of the source or the target: the field of that name, if it holds one."""
        found = getattr(self, side, None)
        return found if isinstance(found, AbstractTokenizerSpec) else None
