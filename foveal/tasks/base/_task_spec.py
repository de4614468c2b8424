"""The base class of all task specs."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from ...data import AbstractTokenizerSpec, Example
from ...data.vocabularies._vocabularies import Vocabularies
from ...specs import AbstractSpec

Built_co = TypeVar("Built_co", covariant=True)


class Inputs(NamedTuple):
    """The fields of an input, which determine the fields of a page and the columns of a file."""

    text: bool = True
    second: bool = False  # a second text
    features: bool = False
    picture: bool = False
    audio: bool = False  # the picture is the spectrogram of a recording


_TEXT = Inputs()


class AbstractTaskSpec(AbstractSpec, Generic[Built_co]):
    """Spec of a task. Derive a custom task from it, or from `AbstractTextSpec`, to train, save, load, predict with,
    evaluate, explain and serve it.
    """

    __slots__ = ()

    @abstractmethod
    def build(self, vocabularies: Vocabularies) -> Built_co:
        """Build the task with fresh weights.

        Args:
            vocabularies: Vocabularies of the task.

        Returns:
            The untrained task.
        """

    @abstractmethod
    def build_from(self, examples: Iterable[Example]) -> Built_co:
        """Build the task with fresh weights and the vocabularies of these training examples.

        Args:
            examples: Training examples, which may be read more than once.

        Returns:
            The untrained task.
        """

    @property
    def inputs(self) -> Inputs:
        """The fields of an input; by default one text."""
        return _TEXT

    @property
    def attention_choices(self) -> tuple[str, ...]:
        """Kinds of decoder attention that a sweep tries; none by default."""
        return ()

    def tokenizer(self, side: str) -> AbstractTokenizerSpec | None:
        """Return the tokenizer of the source or the target: the field of that name, if it holds one.

        Args:
            side: `source` or `target`.

        Returns:
            The tokenizer, or None if the spec has no such field.
        """
        found = getattr(self, side, None)
        return found if isinstance(found, AbstractTokenizerSpec) else None
