"""What all specs of tasks on texts have in common: from training examples to a task with fresh weights.

    examples -> trained_on -> counted, summed -> vocabularies -> build

Apart from each other the steps can be taken for parts of a corpus in many processes.
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
    """A spec whose symbols are counted in the training data. Derive from it for a task of your own on
    texts.
    """

    __slots__ = ()

    def trained_on(self, examples: Iterable[Example]) -> "AbstractTextSpec[Built_co]":
        """The spec, with the subwords of these examples if it asks for some and has none."""
        return self

    @abstractmethod
    def counted(self, example: Example) -> Symbols:
        """What of an example has to have a number."""

    @abstractmethod
    def vocabularies(self, tally: Tally) -> Vocabularies:
        """The numbers of what was counted."""

    @override
    def build_from(self, examples: Iterable[Example]) -> Built_co:
        """The task for these training examples, which are read more than once: vocabularies (and
        subwords, if asked for) are theirs, weights are fresh.
        """
        spec = self.trained_on(examples)
        return spec.build(spec.vocabularies(Tally.of(map(spec.counted, examples))))
