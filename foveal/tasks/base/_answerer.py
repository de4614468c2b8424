"""Tasks as what answers: made ready once, then asked many times."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, overload

from ...data import Example
from ...errors import SpecError, ValueRangeError
from ._prediction import Prediction, PredictionSpec
from ._size_classes import batched

# A function that is told how many more examples have been answered.
Answered: TypeAlias = Callable[[int], None]


def ignore(number: int) -> None:
    """Tell nobody."""
    del number


class AbstractAnswerer(ABC):
    """A task made ready to answer, from its weights as they are now; make another when they have changed.
    `settings` say how where a call does not. What is in one batch with an example changes nothing in its answer, to the last bit.
    """

    def __init__(self, settings: PredictionSpec) -> None:
        self.settings = settings

    @abstractmethod
    def size(self, example: Example) -> int:
        """How many symbols are read of an example; those of one size class go into one batch."""

    @abstractmethod
    def answer(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> list[Prediction]:
        """Answers to some examples of one size class, in one batch."""

    def predict(
        self,
        examples: Sequence[Example | str],
        settings: PredictionSpec | None = None,
        *,
        answered: Answered = ignore,
    ) -> list[Prediction]:
        """Predict for each example, in order. A plain string is the source of an example; `answered` is
        called with the number of examples of each finished batch.
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
    """What gives answers to examples."""

    @abstractmethod
    def size(self, example: Example) -> int:
        """How many symbols are read of an example."""

    @abstractmethod
    def answerer(self, settings: PredictionSpec | None = None) -> AbstractAnswerer:
        """It made ready to answer; the spec says how if `settings` does not."""

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
            settings: How to search; defaults to the settings of the spec.

        Returns:
            A prediction, or a list of predictions in the order of the examples.
        """
        if isinstance(examples, Example | str):
            return self.answerer(settings).predict([examples])[0]
        return self.answerer(settings).predict(examples)

    def fill(self, lines: Iterable[str], file: str = "input") -> Iterator[str]:
        """Yield CoNLL-U lines with the columns filled in that the task predicts.

        Args:
            lines: without line ends.
            file: the name that errors give.

        Raises:
            SpecError: the task predicts no column of CoNLL-U.
        """
        raise SpecError(
            f"{type(self).__name__}: only a parser writes CoNLL-U, since it predicts heads and labels. "
            f"Leave out --format conllu (fill in Python), or use a bundle of ParsingSpec."
        )


def _as_examples(given: Sequence[Example | str]) -> list[Example]:
    """Examples, with each plain string as a source."""
    if isinstance(given, str):
        raise ValueRangeError(
            f"predict: expected a list of examples or texts, got one text, {given[:40]!r}. "
            f"Put it into a list: predict([{given[:40]!r}])."
        )
    return [Example(one) if isinstance(one, str) else one for one in given]
