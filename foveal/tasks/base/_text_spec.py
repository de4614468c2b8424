"""The base class of specs of tasks on texts: from training examples to a task with fresh weights.

    examples -> trained_on -> counted, summed -> vocabularies -> build

The steps are separate, so many processes can each handle a part of a corpus.
"""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Generic

from typing_extensions import override

from ...data import Example
from ...data.vocabularies._tally import Symbols, Tally
from ...data.vocabularies._vocabularies import Vocabularies
from ._task_spec import AbstractTaskSpec, Built_co


class AbstractTextSpec(AbstractTaskSpec[Built_co], Generic[Built_co]):
    """A spec whose vocabularies are built from the training set. Derive a custom task on texts from it."""

    __slots__ = ()

    def trained_on(self, examples: Iterable[Example]) -> "AbstractTextSpec[Built_co]":
        """Return the spec with subwords trained on these examples, if it needs them and has none.

        Args:
            examples: Training examples.

        Returns:
            The spec itself by default.
        """
        return self

    @abstractmethod
    def counted(self, example: Example) -> Symbols:
        """Return the tokens of an example that the vocabularies must contain.

        Args:
            example: Training example.

        Returns:
            The tokens of the source, the target and other parts.
        """

    @abstractmethod
    def vocabularies(self, tally: Tally) -> Vocabularies:
        """Build the vocabularies from token counts.

        Args:
            tally: Counts over the training set.

        Returns:
            The vocabularies.
        """

    @override
    def build_from(self, examples: Iterable[Example]) -> Built_co:
        """Build the task with fresh weights. Its vocabularies, and subwords if configured, come from these training
        examples, which are read more than once.
        """
        spec = self.trained_on(examples)
        return spec.build(spec.vocabularies(Tally.of(map(spec.counted, examples))))
