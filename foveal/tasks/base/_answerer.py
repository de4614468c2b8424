"""Answerers: tasks that are prepared once and then answer many times."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, overload

from ...data import Example
from ...errors import SpecError, ValueRangeError
from ._prediction import Prediction, PredictionSpec
from ._size_classes import batched

# A function that is called with the number of newly answered examples.
Answered: TypeAlias = Callable[[int], None]


def ignore(number: int) -> None:
    """Ignore the number."""
    del number


class AbstractAnswerer(ABC):
    """A task that is prepared to answer with its current weights; make a new one when the weights change. `settings` is
    the default for calls without settings. The answer to an example is bit-identical in every batch.
    """

    def __init__(self, settings: PredictionSpec) -> None:
        self.settings = settings

    @abstractmethod
    def size(self, example: Example) -> int:
        """Return the number of tokens in an example. Examples of one size class share a batch."""

    @abstractmethod
    def answer(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> list[Prediction]:
        """Answer examples of one size class in one batch."""

    def predict(
        self,
        examples: Sequence[Example | str],
        settings: PredictionSpec | None = None,
        *,
        answered: Answered = ignore,
    ) -> list[Prediction]:
        """Predict for each example, in order. A plain string is the source of an example; `answered` is called with the
        number of examples of each finished batch.
        """
        settings, examples = settings or self.settings, _as_examples(examples)
        predictions: dict[int, Prediction] = {}
        sizes = [self.size(example) for example in examples]
        for rows in batched(sizes, settings.batch_size):
            found = self.answer([examples[n] for n in rows], settings)
            predictions.update(zip(rows, found, strict=True))
            answered(len(rows))
        return [predictions[n] for n in range(len(examples))]


class AbstractPredicting(ABC):
    """An object that predicts answers to examples."""

    @abstractmethod
    def size(self, example: Example) -> int:
        """Return the number of tokens in an example."""

    @abstractmethod
    def answerer(self, settings: PredictionSpec | None = None) -> AbstractAnswerer:
        """Return a prepared answerer; `settings` defaults to the settings of the spec."""

    @overload
    def predict(
        self, examples: Example | str, settings: PredictionSpec | None = None
    ) -> Prediction: ...

    @overload
    def predict(
        self, examples: Sequence[Example | str], settings: PredictionSpec | None = None
    ) -> list[Prediction]: ...

    def predict(
        self,
        examples: Example | str | Sequence[Example | str],
        settings: PredictionSpec | None = None,
    ) -> Prediction | list[Prediction]:
        """Predict the output of one example, or of each of several. A plain string is the source of an
        example: `task.predict("reykjavík")` returns one prediction, `task.predict(["reykjavík"])` a list.

        The result for an example is bit-identical for every batch it is in.

        Args:
            examples: An example or a text, or a list of them.
            settings: Search settings; defaults to the settings of the spec.

        Returns:
            A prediction, or a list of predictions in the order of the examples.
        """
        if isinstance(examples, Example | str):
            return self.answerer(settings).predict([examples])[0]
        return self.answerer(settings).predict(examples)

    def fill(self, lines: Iterable[str], file: str = "input") -> Iterator[str]:
        """Fill in the columns of CoNLL-U lines that the task predicts.

        Args:
            lines: Lines without line breaks.
            file: Name of the file for error messages.

        Returns:
            An iterator over the lines, in order.

        Raises:
            SpecError: The task predicts no column of CoNLL-U.
        """
        raise SpecError(
            f"{type(self).__name__}: only a parser writes CoNLL-U, because it predicts heads and "
            f"labels. Remove --format conllu (fill in Python), or use a bundle of ParsingSpec."
        )


def _as_examples(given: Sequence[Example | str]) -> list[Example]:
    """Return examples; a plain string becomes a source."""
    if isinstance(given, str):
        raise ValueRangeError(
            f"predict: expected a list of examples or texts, got one text, {given[:40]!r}. "
            f"Put it into a list: predict([{given[:40]!r}])."
        )
    return [Example(one) if isinstance(one, str) else one for one in given]
