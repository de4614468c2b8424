"""check_data: find problems of a corpus before training on it."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool

from ..data._example import Example, Where, quoted
from ..data.tokenizers._tokenizers import TokenizerSpec, graphemes
from ._sketch import Keys, Sketch

MAX_HELD = 500_000  # examples of a corpus that are compared with each other and with other corpora
MAX_SYMBOLS = 1_000_000
NUM_SHOWN = 3
MANY_TIMES = 4  # an outlier is longer than 99 % of the texts by this factor

_UNSEEN = {
    "source": "The model reads them as unknown tokens",
    "target": "The model can never output them",
}

Kind: TypeAlias = Literal[
    "empty", "duplicates", "conflicts", "leak", "seen_sources", "normalization", "lengths", "unseen"
]
Tokens: TypeAlias = Callable[[str], Sequence[str]]


class Finding(NamedTuple):
    """One problem: its kind, its location, its frequency, and advice."""

    kind: Kind
    corpus: str  # train, dev or test
    num: int  # number of affected examples
    sentence: str
    remedy: str
    places: tuple[Where, ...]  # the first few locations


@dataclass(frozen=True, slots=True)
class Findings:
    """The problems that `check_data` found, and the fraction of examples that it compared."""

    findings: tuple[Finding, ...]
    num_examples: dict[str, int]  # that were read
    share_compared: float  # below 1, the numbers of duplicates, conflicts and leaks are estimates
    is_whole: bool = True  # False if the training set has more examples than were read

    def lines(self) -> list[str]:
        """Return one line for each finding, and more if the numbers are estimates, or of a part of the training set."""
        said = [f"{found.corpus}: {found.sentence} {found.remedy}" for found in self.findings]
        if self.share_compared < 1 and said:
            one_in = round(1 / self.share_compared)
            said.append(
                f"The number of equal examples is an estimate from one in {one_in} sources."
            )
        if not self.is_whole:
            said.append(
                f"train: only the first {self.num_examples['train']:,} examples were checked; check_data of "
                f"foveal.planning checks all."
            )
        return said


def check_data(
    train: Iterable[Example],
    dev: Iterable[Example] | None = None,
    test: Iterable[Example] | None = None,
    *,
    source_tokenizer: TokenizerSpec | None = None,
    target_tokenizer: TokenizerSpec | None = None,
    max_held: int = MAX_HELD,
    max_train: int | None = None,
) -> Findings:
    """Search corpora for problems that harm training or evaluation.

    The check finds duplicates, equal sources with different targets, validation and test examples that are also in
    the training set, mixed Unicode normal forms, empty sides, unusually long texts, and tokens of the validation and
    test sets that do not occur in the training set. It reads each corpus once, in bounded memory.

    Args:
        train: The training set.
        dev: The validation set.
        test: The test set.
        source_tokenizer: The tokenizer of sources; characters by default.
        target_tokenizer: The tokenizer of targets; characters by default.
        max_held: Maximum number of examples of each corpus to compare; of a larger corpus, a sample is compared.
        max_train: Maximum number of training examples to read, from the first on; None reads all.

    Returns:
        The findings by corpus, the number of examples of each corpus, and the fraction of examples that was compared.

    Examples:
        >>> found = check_data([Example("a", "x"), Example("a", "x")], dev=[Example("a", "y")])
        >>> ", ".join(finding.kind for finding in found.findings)
        'duplicates, unseen, seen_sources'
    """
    tokens = (
        graphemes if source_tokenizer is None else source_tokenizer.encode,
        graphemes if target_tokenizer is None else target_tokenizer.encode,
    )
    first = _Survey("train", tokens, max_held, known=None).read(train, max_train)
    rest = [
        _Survey(name, tokens, max_held, known=first).read(corpus)
        for name, corpus in (("dev", dev), ("test", test))
        if corpus is not None
    ]
    surveys = [first, *rest]
    num_bits = max(survey.sketch.num_bits for survey in surveys)
    findings = [found for survey in surveys for found in survey.findings(num_bits)]
    for number, survey in enumerate(surveys):
        for other in surveys[:number]:
            findings += _leaks(survey, other, num_bits)
    findings += _mixed_forms(surveys)
    order = {survey.name: number for number, survey in enumerate(surveys)}
    return Findings(
        tuple(sorted(findings, key=lambda found: order[found.corpus])),
        {survey.name: survey.num for survey in surveys},
        0.5**num_bits,
        first.is_whole,
    )


class _Lengths:
    """Lengths of texts, and the longest few texts."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._longest: list[tuple[int, Where]] = []

    def add(self, length: int, where: Where) -> None:
        self._counts[length] += 1
        if len(self._longest) < NUM_SHOWN or length > self._longest[-1][0]:
            self._longest = sorted([*self._longest, (length, where)], key=lambda entry: -entry[0])[
                :NUM_SHOWN
            ]

    def outliers(self) -> tuple[int, int, tuple[Where, ...]]:
        """Return the number of texts far longer than 99 % of them, the threshold in characters, and their locations."""
        if not self._counts:
            return 0, 0, ()
        lengths = sorted(self._counts)
        up_to = np.cumsum([self._counts[length] for length in lengths])
        usual = lengths[int(np.searchsorted(up_to, 0.99 * up_to[-1]))]
        limit = MANY_TIMES * max(usual, 10)
        num = sum(number for length, number in self._counts.items() if length > limit)
        return num, limit, tuple(where for length, where in self._longest if length > limit)


class _Survey:
    """Statistics from one pass over a corpus."""

    def __init__(
        self, name: str, tokens: tuple[Tokens, Tokens], max_held: int, known: "_Survey | None"
    ) -> None:
        self.name, self.num, self.is_whole = name, 0, True
        self.sketch = Sketch(max_held)
        self.forms: dict[str, dict[str, list[Where]]] = {"source": {}, "target": {}}
        self.num_forms: Counter[tuple[str, str]] = Counter()
        self.symbols: dict[str, set[str]] = {"source": set(), "target": set()}
        self._tokens, self._known = tokens, known
        self._empty: dict[str, list[Where]] = {"source": [], "target": []}
        self._num_empty: Counter[str] = Counter()
        self._lengths = {"source": _Lengths(), "target": _Lengths()}
        self._unseen: dict[str, Counter[str]] = {"source": Counter(), "target": Counter()}
        self._unseen_places: dict[str, list[Where]] = {"source": [], "target": []}
        self._num_unseen: Counter[str] = Counter()

    def read(self, corpus: Iterable[Example], most: int | None = None) -> "_Survey":
        """Read every example once, or only the first ones."""
        for example in corpus:
            if self.num == most:
                self.is_whole = False
                break
            self.num += 1
            where = example.where or Where(self.name, self.num)
            self.sketch.add(example, where)
            self._look("source", str(example.source), self._tokens[0], where)
            if example.target is not None:
                self._look("target", example.target, self._tokens[1], where)
        return self

    def _look(self, side: str, text: str, tokens: Tokens, where: Where) -> None:
        self._lengths[side].add(len(text), where)
        if not text.strip():
            self._num_empty[side] += 1
            _note(self._empty[side], where)
        if not text.isascii() and (form := _form(text)) is not None:
            self.num_forms[side, form] += 1
            _note(self.forms[side].setdefault(form, []), where)
        symbols = tokens(text)
        if self._known is None:
            if len(self.symbols[side]) < MAX_SYMBOLS:
                self.symbols[side].update(symbols)
            return
        new = set(symbols) - self._known.symbols[side]
        if new:
            self._num_unseen[side] += 1
            self._unseen[side].update(new)
            _note(self._unseen_places[side], where)

    def findings(self, num_bits: int) -> Iterator[Finding]:
        """Yield the problems within this corpus."""
        if not self.num:
            yield Finding("empty", self.name, 0, "the file has no examples.", "Add more data.", ())
            return
        yield from self._sides()
        keys = self.sketch.keys(num_bits)
        if self.name == "train":
            repeats, against = keys.repeats(), keys.contradictions()
            yield from self._equal(
                "duplicates",
                keys,
                repeats,
                num_bits,
                "{} are exact duplicates of an earlier example.",
                "Training counts them more than once; remove them if this is not intended.",
            )
            yield from self._equal(
                "conflicts",
                keys,
                against,
                num_bits,
                "{} have a source that also occurs with another target.",
                "Only one of the targets can be the first answer; keep one, or use n-best lists.",
            )

    def _equal(
        self,
        kind: Kind,
        keys: Keys,
        which: Bool[np.ndarray, " n"],
        num_bits: int,
        sentence: str,
        remedy: str,
    ) -> Iterator[Finding]:
        if which.any():
            num = int(which.sum()) << num_bits
            places = tuple(map(self.sketch.where, sorted(keys.places[which].tolist())[:NUM_SHOWN]))
            yield Finding(kind, self.name, num, sentence.format(_of(num, self.num)), remedy, places)

    def _sides(self) -> Iterator[Finding]:
        for side in ("source", "target"):
            if num := self._num_empty[side]:
                yield Finding(
                    "empty",
                    self.name,
                    num,
                    f"{_of(num, self.num)} have an empty {side}.",
                    "Check these lines; a column may be missing.",
                    tuple(self._empty[side]),
                )
            num, limit, places = self._lengths[side].outliers()
            if num:
                yield Finding(
                    "lengths",
                    self.name,
                    num,
                    f"{_of(num, self.num)} have a {side} of more than {limit} characters, "
                    f"{MANY_TIMES} times the usual length.",
                    "Check them: they increase padding, and may be lines without line breaks.",
                    places,
                )
            if num := self._num_unseen[side]:
                shown = ", ".join(quoted(s) for s, _ in self._unseen[side].most_common(8))
                train = self._known
                lacking = (
                    "the training set does not have"
                    if train is None or train.is_whole
                    else f"the first {train.num:,} training examples do not have"
                )
                yield Finding(
                    "unseen",
                    self.name,
                    num,
                    f"{_of(num, self.num)} have a {side} token that {lacking}: {shown}.",
                    f"{_UNSEEN[side]}; add training examples with these tokens, or correct them.",
                    tuple(self._unseen_places[side]),
                )


def _leaks(survey: _Survey, other: _Survey, num_bits: int) -> Iterator[Finding]:
    """Yield findings about examples of a corpus that an earlier corpus also contains."""
    ours, theirs = survey.sketch.keys(num_bits), other.sketch.keys(num_bits)
    both = np.isin(ours.whole, theirs.whole)
    source_only = np.isin(ours.asked, theirs.asked) & ~both
    cases: tuple[tuple[Kind, Bool[np.ndarray, " n"], str, str], ...] = (
        (
            "leak",
            both,
            "are also in {}.",
            "Scores on them measure memorization; remove them from one of the files.",
        ),
        (
            "seen_sources",
            source_only,
            "have a source that occurs in {} with another target.",
            "Check which target is correct, and keep the source in one file.",
        ),
    )
    for kind, which, sentence, remedy in cases:
        if which.any():
            num = int(which.sum()) << num_bits
            places = sorted(ours.places[which].tolist())[:NUM_SHOWN]
            yield Finding(
                kind,
                survey.name,
                num,
                f"{_of(num, survey.num)} {sentence.format(other.name)}",
                remedy,
                tuple(map(survey.sketch.where, places)),
            )


def _mixed_forms(surveys: Sequence[_Survey]) -> Iterator[Finding]:
    """Yield findings about texts in different normal forms, which look equal but differ."""
    for side in ("source", "target"):
        totals: Counter[str] = Counter()
        for survey in surveys:
            for (of_side, form), num in survey.num_forms.items():
                totals[form] += num if of_side == side else 0
        used = [(form, num) for form, num in totals.most_common() if num]
        if len(used) < 2:
            continue
        rarest, num = used[-1]
        survey = next(survey for survey in surveys if survey.num_forms[side, rarest])
        said = ", ".join(f"{number} {form}" for form, number in used)
        yield Finding(
            "normalization",
            survey.name,
            num,
            f"{side}s are in different Unicode normal forms: {said}.",
            "Convert all files to one form with uconv -x any-nfc, or set normalization=NFC of the tokenizer.",
            tuple(survey.forms[side][rarest]),
        )


def _form(text: str) -> str | None:
    """Return the normal form of letters with marks; None if the text has no such letters."""
    composed = unicodedata.is_normalized("NFC", text)
    decomposed = unicodedata.is_normalized("NFD", text)
    if composed and decomposed:
        return None
    return "composed" if composed else "decomposed" if decomposed else "in neither form"


def _note(places: list[Where], where: Where) -> None:
    if len(places) < NUM_SHOWN:
        places.append(where)


def _of(num: int, total: int) -> str:
    return f"{num:,} of {total:,} examples"
