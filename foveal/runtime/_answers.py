"""What a model answers."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Candidate(NamedTuple):
    """One answer of an n-best list."""

    output: str
    score: float  # the score that ranks answers
    confidence: float  # the calibrated probability that the output is right


@dataclass(frozen=True)
class Attention:
    """The weights with which each output token read the positions of the source."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]  # a row for each target


@dataclass(frozen=True)
class Answer:
    """The answer to one input."""

    output: str
    score: float
    confidence: float
    nbest: tuple[Candidate, ...]  # best first, including the output
    token_probabilities: tuple[float, ...] = ()  # of each token of the output
    attention: Attention | None = None


class Source(NamedTuple):
    """One input: a text, and the features of the requested form, if the model reads some. The text of an image is the
    path of its file or a data URL, unless `image` has the content of the file.
    """

    text: str = ""
    features: str = ""
    image: bytes | None = None

    @classmethod
    def of(cls, source: "str | bytes | Path | Source") -> "Source":
        """Convert an input of `Model.predict`.

        Args:
            source: A text, the content or the path of an image file, or a source.

        Returns:
            The source.
        """
        if isinstance(source, Source):
            return source
        return cls(image=source) if isinstance(source, bytes) else cls(str(source))
