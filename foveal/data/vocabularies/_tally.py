"""Tally: frequencies of tokens in training examples, and lengths of the examples.

Vocabularies are made from a tally. The sum of the tallies of the parts of a corpus is the tally of the whole corpus.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain, islice
from typing import Any, NamedTuple

from ._vocabularies import Lengths, Vocabularies
from ._vocabulary import Labels, Vocabulary, bounded_counts

RARE = 10  # a token is rare if it occurs less often than this in the training set
_MAX_RARE = 10_000
_MAX_ANSWERS = 200_000  # maximum number of distinct answers to count, in about 20 MB
_AT_ONCE = 100  # examples: a call of Counter.update takes longer than a word


class Symbols(NamedTuple):
    """The tokens of a training example to count; None for parts that the task does not have."""

    source: Sequence[str] = ()
    target: Sequence[str] | None = None
    features: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    answers: Sequence[
        tuple[str, str]
    ] = ()  # question and answer; the question "" counts for all questions


@dataclass(kw_only=True)
class Tally:
    """Counts over examples.

    Examples:
        >>> tally = Tally.of([Symbols("ab", "xyz"), Symbols("b", "x")])
        >>> tally.vocabularies().source.tokens, tally.num_examples
        (('b', 'a'), 2)
    """

    source: Counter[str] = field(default_factory=Counter)
    target: Counter[str] | None = None
    features: Counter[str] | None = None
    labels: Counter[str] | None = None
    answers: Counter[str] = field(default_factory=Counter)  # keys are "question<TAB>answer"
    # The longest target for each length of a source.
    longest: dict[int, int] = field(default_factory=dict)
    num_examples: int = 0
    num_source: int = 0  # tokens
    num_target: int = 0

    @classmethod
    def of(cls, examples: Iterable[Symbols]) -> "Tally":
        """Count examples in bounded memory; see `Vocabulary.count`.

        Args:
            examples: Tokens of the examples.

        Returns:
            The counts of all examples.
        """
        tally, rows = cls(), iter(examples)
        while some := list(islice(rows, _AT_ONCE)):
            tally._add(some)
        return tally

    def merge(self, other: "Tally") -> None:
        """Add the counts of another tally.

        Args:
            other: Counts over other examples.
        """
        for name in _COUNTED:
            self._update(name, getattr(other, name))
        self._answer(other.answers)
        self._lengthen(other.longest.items())
        self.num_examples += other.num_examples
        self.num_source += other.num_source
        self.num_target += other.num_target

    def vocabularies(self, *, min_count: int = 1, max_size: int | None = None) -> Vocabularies:
        """Make vocabularies from the counts; all features and labels are kept, regardless of their frequency.

        Args:
            min_count: Tokens with a lower count are dropped.
            max_size: Maximum size of each vocabulary, including the four special tokens; None keeps all tokens.

        Returns:
            The vocabularies, most frequent tokens first, with statistics over the lengths and the rare words.
        """
        target = self.target
        return Vocabularies(
            source=Vocabulary.of(self.source, min_count=min_count, max_size=max_size),
            target=None
            if target is None
            else Vocabulary.of(target, min_count=min_count, max_size=max_size),
            features=None if self.features is None else Vocabulary.of(self.features),
            labels=None if self.labels is None else Labels(tuple(sorted(self.labels))),
            rare=rare(self.source),
            lengths=Lengths() if target is None else self._lengths(),
            majority=self._majority(),
        )

    def to_data(self) -> dict[str, Any]:
        """Convert to data for JSON.

        Returns:
            The counts as JSON values.
        """
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**values, "longest": list(self.longest.items())}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "Tally":
        """Read data that `to_data` wrote.

        Args:
            data: Counts as JSON values.

        Returns:
            The counts.
        """
        counts = {name: None if data[name] is None else Counter(data[name]) for name in _COUNTED}
        answers = Counter(data.get("answers", ()))
        return cls(**{**data, **counts, "answers": answers, "longest": dict(data["longest"])})

    def _add(self, some: Sequence[Symbols]) -> None:
        *parts, answers = zip(*some, strict=True)
        for name, column in zip(_COUNTED, parts, strict=True):
            texts = [text for text in column if text is not None]
            if texts:
                self._update(name, chain.from_iterable(texts))
        if pairs := ["\t".join(pair) for of_one in answers for pair in of_one]:
            self._answer(pairs)
        sources = [len(source) for source in parts[0]]
        targets = [len(target or ()) for target in parts[1]]
        self._lengthen(zip(sources, targets, strict=True))
        self.num_examples += len(some)
        self.num_source += sum(sources)
        self.num_target += sum(targets)

    def _update(self, name: str, symbols: Iterable[str] | None) -> None:
        """Add tokens, or the counts of a `Counter`."""
        if symbols is not None:
            counts = getattr(self, name) or Counter[str]()
            counts.update(symbols)
            setattr(self, name, bounded_counts(counts))

    def _answer(self, pairs: Iterable[str]) -> None:
        self.answers.update(pairs)
        self.answers = bounded_counts(self.answers, _MAX_ANSWERS)

    def _majority(self) -> dict[str, str]:
        """Return the most frequent answer to each question ("" for all questions), and the most frequent label. Ties
        are resolved by code point.
        """
        counts = {("", label): number for label, number in (self.labels or {}).items()}
        for pair, number in self.answers.items():
            asked, _, answer = pair.partition("\t")
            counts[asked, answer] = number
        found = dict[str, tuple[int, str]]()
        for (asked, answer), number in counts.items():
            found[asked] = min(found.get(asked, (0, "")), (-number, answer))
        return {asked: answer for asked, (_, answer) in sorted(found.items())}

    def _lengthen(self, sizes: Iterable[tuple[int, int]]) -> None:
        longest = self.longest
        for source, target in sizes:
            if target >= longest.get(source, 0):
                longest[source] = target

    def _lengths(self) -> Lengths:
        """Return a bound that all pairs of lengths satisfy."""
        ratio = self.num_target / max(1, self.num_source)
        slack = (target - ratio * source for source, target in self.longest.items())
        return Lengths(ratio=ratio, slack=max(0.0, *slack, 0.0))


_COUNTED = ("source", "target", "features", "labels")  # in the order of `Symbols`


def rare(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the tokens that were seen less than ten times."""
    found = sorted(symbol for symbol, count in counts.items() if count < RARE)
    return tuple(found[:_MAX_RARE])
