"""Ensemble of several transductions.

    mixture   p(y_t | y_<t, x) = mean over m of p_m(y_t | y_<t, x)
    product   p(y_t | y_<t, x) ~ prod over m of p_m(y_t | y_<t, x)^(1 / M)

Members differ in seed, size or attention, and therefore in their errors. They must share one target vocabulary and the
same tokenizers. Each member may have a different source vocabulary.

Axes: M members.
"""

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import fields
from typing import Any, Literal, final

import torch
from typing_extensions import override

from ..data import Example, Vocabulary
from ..errors import ValueRangeError
from ..metrics._statistics import Statistics
from ._transduction import Transduction
from .base._answering import AbstractAnswering, Search
from .base._evaluation import MainMetric
from .base._searching import searcher

_ADVICE = "Train the members on the same files with the same tokenizers, or remove this member."
_SHOWN = 5  # number of differing tokens that an error lists


@final
class TransductionEnsemble(AbstractAnswering):
    """An ensemble of transductions. The first member sets the default search settings, the rare source tokens and,
    until `calibrate` is called, the calibration; otherwise the order does not matter.

    The trace of an answer is the mean over the members, if all of them attend. An ensemble cannot be trained or saved:
    train and save its members.

    Args:
        members: Trained transductions with the same target vocabulary and the same tokenizers.
        combine: Whether the probability of a token is the mean over the members (`mixture`), or their normalized
            geometric mean (`product`).

    Raises:
        ValueRangeError: There are no members, or their vocabularies or tokenizers differ.
    """

    is_complete = False

    def __init__(
        self,
        members: Sequence[Transduction],
        *,
        combine: Literal["mixture", "product"] = "mixture",
    ) -> None:
        if not members:
            raise ValueRangeError(
                "TransductionEnsemble: expected at least one member, got none. Pass tasks from load_bundle."
            )
        self.members = tuple(members)
        self.combine: Literal["mixture", "product"] = combine
        first = self.members[0]
        for number, member in enumerate(self.members[1:], start=2):
            _check_alike(first, member, number)
        self.vocabularies, self.prediction = first.vocabularies, first.prediction
        self.calibration = first.calibration

    @property
    @override
    def main_metric(self) -> MainMetric:
        return self.members[0].main_metric

    @property
    def device(self) -> torch.device:
        """The device of the members."""
        return self.members[0].device

    @override
    def answering(self) -> AbstractContextManager[None]:
        return _at_rest(self.members)

    @override
    def symbols(self, example: Example) -> list[str]:
        return self.members[0].symbols(example)

    @override
    def size(self, example: Example) -> int:
        return self.members[0].size(example)

    @override
    def reference(self, example: Example) -> str:
        return self.members[0].reference(example)

    @override
    def trivial_answers(self, example: Example) -> Mapping[str, str]:
        return self.members[0].trivial_answers(example)

    @override
    def searcher(self) -> Search:
        return searcher(self.members, combine=self.combine)

    @override
    def _groups(self, examples: Sequence[Example]) -> Sequence[Sequence[Example]]:
        return self.members[0]._groups(examples)

    @override
    def _scored(
        self, groups: Sequence[Sequence[Example]], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        return self.members[0]._scored(groups, outputs)

    @override
    def statistics_of(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        return self.members[0].statistics_of(references, outputs)


@contextmanager
def _at_rest(members: Sequence[Transduction]) -> Iterator[None]:
    """Disable dropout in all members, and restore their modes afterwards."""
    with ExitStack() as stack:
        for member in members:
            stack.enter_context(member.answering())
        yield


def _check_alike(first: Transduction, member: Transduction, number: int) -> None:
    """Check that two members write the same tokens and read the same positions."""
    one, other = first.spec, member.spec
    settings = (
        ("source", one.source, other.source),
        ("features", one.features, other.features),
        ("target", one.target, other.target),
        ("outputs", one.outputs, other.outputs),
    )
    for name, expected, got in settings:
        if got != expected:
            raise ValueRangeError(
                f"TransductionEnsemble: {name} of member {number} differs from member 1, "
                f"{_difference(got, expected)}. {_ADVICE}"
            )
    expected, got = first.vocabularies.target, member.vocabularies.target
    assert expected is not None
    assert got is not None
    if got != expected:
        raise ValueRangeError(
            f"TransductionEnsemble: the target vocabulary of member {number} differs from member 1, "
            f"{_symbols_that_differ(got, expected)}. {_ADVICE}"
        )


def _difference(got: Any, expected: Any) -> str:
    """Return two settings, or only the parts that differ, because subwords would fill pages."""
    if type(got) is not type(expected) or isinstance(got, str):
        sides = [
            repr(side) if isinstance(side, str) else "none" if side is None else repr(side.kind)
            for side in (got, expected)
        ]
        return f"got {sides[0]}, expected {sides[1]}"
    names = [field.name for field in fields(got) if field.compare]
    pairs = [(name, getattr(got, name), getattr(expected, name)) for name in names]
    return "; ".join(
        f"got {name} {reprlib.repr(one)}, expected {reprlib.repr(other)}"
        for name, one, other in pairs
        if one != other
    )


def _symbols_that_differ(got: Vocabulary, expected: Vocabulary) -> str:
    """Return the tokens that only one of two vocabularies has."""
    if set(got.tokens) == set(expected.tokens):
        return "got its tokens in another order, expected the same order"
    sides = [
        f"{len(one.tokens)} tokens{_only([token for token in one.tokens if token not in other])}"
        for one, other in ((got, expected), (expected, got))
    ]
    return f"got {sides[0]}, expected {sides[1]}"


def _only(tokens: Sequence[str]) -> str:
    if not tokens:
        return ""
    more = ", ..." if len(tokens) > _SHOWN else ""
    return f", including {', '.join(map(repr, tokens[:_SHOWN]))}{more} only in it"
