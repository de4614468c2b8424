"""A lexicon before a model: known words get their listed pronunciations, and the model answers all others.

MODEL/lexicon.txt       or lexicon.txt.gz or lexicon.txt.zst, next to the files of a bundle
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

from typing_extensions import override

from ..data import Example
from ..data.formats._lexicons import Tokens, listed
from ..tasks import Prediction, PredictionSpec, Transduction
from ..tasks.base._answerer import AbstractAnswerer
from ..tasks.base._prediction import Candidate

_NAMES = ("lexicon.txt", "lexicon.txt.gz", "lexicon.txt.zst")


def own_lexicon(folder: Path) -> Path | None:
    """Return the lexicon in the folder of a model, or None if it has none."""
    return next((folder / name for name in _NAMES if (folder / name).is_file()), None)


@final
class LexiconFirst(AbstractAnswerer):
    """Answers words of a lexicon from the lexicon, with confidence 1, and other words with a model.

    A word that is not listed as written is looked up in lowercase. The model reads a word in lowercase if it knows all
    characters of the lowercase word, but not all of the word as written. With an inventory, the model also answers words
    whose listed pronunciations have other tokens.

    Args:
        answerer: Answers of the model.
        task: The model, which writes pronunciations.
        lexicon: Pronunciations by word, the best first.
    """

    def __init__(
        self, answerer: AbstractAnswerer, task: Transduction, lexicon: Mapping[str, list[Tokens]]
    ) -> None:
        super().__init__(answerer.settings)
        self._answerer, self._task, self._lexicon = answerer, task, lexicon

    @override
    def size(self, example: Example) -> int:
        return self._answerer.size(self._readable(example))

    @override
    def answer(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> list[Prediction]:
        settings = settings or self.settings
        known = [listed(self._lexicon, each.text, settings.inventory) for each in examples]
        unknown = [
            self._readable(one) for one, found in zip(examples, known, strict=True) if not found
        ]
        answers = iter(self._answerer.answer(unknown, settings) if unknown else ())
        return [self._known(found[: settings.nbest]) if found else next(answers) for found in known]

    def _known(self, pronunciations: Sequence[Tokens]) -> Prediction:
        decode = self._task.spec.target.decode
        nbest = tuple(Candidate(decode(list(each)), 0.0, 1.0) for each in pronunciations)
        return Prediction(nbest[0].output, 0.0, 1.0, nbest)

    def _readable(self, example: Example) -> Example:
        """Return the word in lowercase if only that is readable for the model."""
        lower = Example(example.text.lower(), example.target, example.features)
        known = self._task.known
        if all(symbol in known for symbol in self._task.symbols(example)):
            return example
        is_better = all(symbol in known for symbol in self._task.symbols(lower))
        return lower if is_better else example
