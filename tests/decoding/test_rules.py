"""Constraints, prefixes, lengths and repetition are never violated; a dead end raises an error."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from foveal.decoding import (
    Automaton,
    Hypotheses,
    beam_search,
    greedy,
    lexicon,
    sample,
    stochastic_beam_search,
)
from foveal.errors import ImpossibleError, ShapeError, ValueRangeError
from tests.decoding.toys import BEGIN, END, Output, ToyStepper, every_output

pytestmark = pytest.mark.slow

W = 4
WIDE = 300


class Machine(NamedTuple):
    """An automaton as plain lists: drawing a case runs no code of the library."""

    table: tuple[tuple[int, ...], ...]
    accepting: tuple[bool, ...]

    def build(self) -> Automaton:
        table = torch.tensor(self.table)
        table[:, END] = -1
        return Automaton.from_table(table, torch.tensor(self.accepting), end=END)

    def accepts(self, output: Sequence[int]) -> bool:
        """Check acceptance by hand."""
        state = 0
        for token in output:
            state = self.table[state][token]
            if state < 0:
                return False
        return self.accepting[state]


ANYTHING = Machine(((0,) * W,), (True,))


class Rule(NamedTuple):
    """The rule for one item."""

    machine: Machine
    prefix: tuple[int, ...]
    limit: int


class Case(NamedTuple):
    """Rules for a batch; each item has a different prefix, limit and automaton."""

    rules: tuple[Rule, ...]
    min_length: int
    ngram: int

    def allows(self, output: Output, item: int) -> bool:
        """Check an output by hand."""
        tokens, (machine, prefix, _) = output.tokens, self.rules[item]
        content = [token for token in tokens if token != END]
        ngrams = [tuple(tokens[i : i + self.ngram]) for i in range(len(tokens) - self.ngram + 1)]
        # Forced tokens may repeat.
        free = ngrams[max(0, len(prefix) - self.ngram + 1) :] if self.ngram else []
        return (
            tokens[: len(prefix)] == prefix
            and len(tokens) >= self.min_length
            and machine.accepts(content)
            and all(ngrams.count(each) == 1 or each[-1] == END for each in free)
        )

    def keywords(self) -> dict[str, Any]:
        """Return the keyword arguments for a search."""
        width = max(len(rule.prefix) for rule in self.rules)
        rows = [[*rule.prefix, *[99] * (width - len(rule.prefix))] for rule in self.rules]
        tokens = torch.tensor(rows, dtype=torch.long).reshape(len(rows), width)
        return {
            "begin": BEGIN,
            "end": END,
            "max_length": torch.tensor([rule.limit for rule in self.rules]),
            "min_length": self.min_length,
            "prefix": tokens,
            "prefix_mask": tokens != 99,
            "no_repeat_ngram": self.ngram,
            "constraints": [Automaton.for_items(rule.machine.build() for rule in self.rules)],
        }


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Draw any automaton of up to four states."""
    num_states = draw(st.integers(1, 4))
    row = st.tuples(*[st.integers(-1, num_states - 1)] * W)
    return Machine(
        draw(st.tuples(*[row] * num_states)), draw(st.tuples(*[st.booleans()] * num_states))
    )


@st.composite
def cases(draw: st.DrawFn, *, ngrams: Sequence[int] = (0, 0, 1, 2, 3)) -> Case:
    rules = []
    for _ in range(2):
        limit = draw(st.integers(1, 5))
        prefix = draw(st.lists(st.sampled_from([0, 2, 3]), max_size=max(0, limit - 2)))
        rules.append(Rule(draw(st.just(ANYTHING) | machines()), tuple(prefix), limit))
    shortest = min(rule.limit for rule in rules)
    return Case(tuple(rules), draw(st.integers(0, shortest)), draw(st.sampled_from(ngrams)))


def allowed_of(
    case: Case, stepper: ToyStepper, offsets: tuple[int, int], *, complete: bool = True
) -> list[list[Output]]:
    return [
        [
            output
            for output in every_output(stepper, offset, case.rules[item].limit, complete=complete)
            if case.allows(output, item)
        ]
        for item, offset in enumerate(offsets)
    ]


def tokens_of(hypotheses: Hypotheses, item: int) -> list[tuple[int, ...]]:
    rows = zip(hypotheses.tokens[item].tolist(), hypotheses.lengths[item].tolist(), strict=True)
    return [tuple(tokens[:length]) for tokens, length in rows if length]


@settings(deadline=None, max_examples=150)
@given(case=cases(), seed=st.integers(0, 10**6))
def test_a_wide_beam_finds_all_that_is_allowed_and_nothing_else(case: Case, seed: int) -> None:
    stepper = ToyStepper(W, seed=seed, sharpness=2.0)
    allowed = allowed_of(case, stepper, (5, 17))
    how = case.keywords()
    if not all(allowed):
        with pytest.raises(ImpossibleError, match="items"):
            beam_search(stepper, stepper.start(5, 17), beam_size=WIDE, nbest=WIDE, **how)
        return
    found = beam_search(stepper, stepper.start(5, 17), beam_size=WIDE, nbest=WIDE, **how)
    for item, outputs in enumerate(allowed):
        assert tokens_of(found, item) == [output.tokens for output in outputs]


@settings(deadline=None, max_examples=100)
@given(case=cases(ngrams=[0]), seed=st.integers(0, 10**6), beam_size=st.integers(1, 3))
def test_automata_prefixes_and_lengths_have_no_dead_ends(
    case: Case, seed: int, beam_size: int
) -> None:
    """Even the narrowest search finds an allowed output if there is one."""
    stepper = ToyStepper(W, seed=seed, sharpness=3.0)
    how = case.keywords()
    generator = torch.Generator().manual_seed(seed)
    draws: dict[str, Any] = {"num_samples": beam_size, "generator": generator}
    searches = (
        (lambda state: greedy(stepper, state, **how), True),
        (
            lambda state: beam_search(stepper, state, beam_size=beam_size, nbest=beam_size, **how),
            True,
        ),
        (lambda state: sample(stepper, state, **draws, **how), False),
        (lambda state: stochastic_beam_search(stepper, state, **draws, **how), False),
    )
    for search, complete in searches:
        allowed = allowed_of(case, stepper, (5, 17), complete=complete)
        if not all(allowed):
            with pytest.raises(ImpossibleError, match="items"):
                search(stepper.start(5, 17))
            continue
        found = search(stepper.start(5, 17))
        for item, outputs in enumerate(allowed):
            expected = {output.tokens for output in outputs}
            assert set(tokens_of(found, item)) <= expected
            assert tokens_of(found, item)
            assert not found.totals[item].isnan().any()


@settings(deadline=None, max_examples=100)
@given(case=cases(ngrams=[1, 2]), seed=st.integers(0, 10**6), beam_size=st.integers(1, 3))
def test_repetition_is_never_violated(case: Case, seed: int, beam_size: int) -> None:
    """Repetition depends on the whole prefix: a narrow search may find no output, and then raises."""
    stepper = ToyStepper(W, seed=seed, sharpness=3.0)
    allowed = allowed_of(case, stepper, (5, 17))
    try:
        found = beam_search(
            stepper, stepper.start(5, 17), beam_size=beam_size, nbest=beam_size, **case.keywords()
        )
    except ImpossibleError:
        return
    for item, outputs in enumerate(allowed):
        assert set(tokens_of(found, item)) <= {output.tokens for output in outputs}


@settings(deadline=None, max_examples=50)
@given(case=cases(ngrams=[0, 2]), seed=st.integers(0, 10**6))
def test_rules_of_an_item_are_the_same_in_any_batch(case: Case, seed: int) -> None:
    stepper = ToyStepper(W, seed=seed, sharpness=2.0)
    if not all(allowed_of(case, stepper, (5, 17))):
        return
    try:
        together = beam_search(
            stepper, stepper.start(5, 17), beam_size=4, nbest=3, **case.keywords()
        )
    except ImpossibleError:
        return
    for item, offset in enumerate((5, 17)):
        how = case._replace(rules=case.rules[item : item + 1]).keywords()
        by_itself = beam_search(stepper, stepper.start(offset), beam_size=4, nbest=3, **how)
        assert torch.equal(by_itself.scores[0], together.scores[item])
        assert tokens_of(by_itself, 0) == tokens_of(together, item)


def test_a_prefix_that_all_items_share_is_read_by_one_hypothesis() -> None:
    stepper = ToyStepper(W)
    prefix = torch.tensor([[2, 3, 2], [3, 3, 2]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    how: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": 6, "beam_size": 3}
    found = beam_search(stepper, stepper.start(5, 17), prefix=prefix, prefix_mask=mask, **how)
    assert [call[1] for call in stepper.calls[:4]] == [1, 1, 1, 3]
    assert found.tokens[0, 0, :3].tolist() == [2, 3, 2]
    assert found.tokens[1, 0, :2].tolist() == [3, 3]
    (best,) = (
        output
        for output in every_output(stepper, 5, 6)
        if output.tokens == tuple(found.tokens[0, 0, : found.lengths[0, 0]].tolist())
    )
    assert found.scores[0, 0].item() == pytest.approx(best.log_prob, rel=1e-5)


def test_a_lexicon_larger_than_the_table() -> None:
    """Rows are then computed from the edges; the outputs must be the same."""
    words = [[2, 2], [2, 3, 3], [3], [3, 2, 3, 2]]
    small = lexicon(words, num_tokens=W, end=END)
    stepper = ToyStepper(W, seed=1)
    how: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": 6, "beam_size": 5, "nbest": 4}
    expected = beam_search(stepper, stepper.start(1, 2), constraints=[small], **how)
    large = lexicon(words, num_tokens=W, end=END)
    vars(large)["_table"] = None
    found = beam_search(stepper, stepper.start(1, 2), constraints=[large], **how)
    for one, other in zip(found[:4], expected[:4], strict=True):
        assert isinstance(one, Tensor)
        assert isinstance(other, Tensor)
        assert torch.equal(one, other)
    written = [[tokens[:-1] for tokens in tokens_of(found, item)] for item in (0, 1)]
    assert all(sorted(each) == sorted(map(tuple, words)) for each in written)


def test_errors_say_what_to_do() -> None:
    stepper = ToyStepper(W)
    state = stepper.start(5, 17)
    how: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": 3}
    only = lexicon([[2, 2, 2, 2]], num_tokens=W, end=END)
    with pytest.raises(
        ImpossibleError,
        match=r"max_length=3.*items \[0, 1\]: the shortest needs 4 tokens.*and the end",
    ):
        greedy(stepper, state, constraints=[only], **how)
    with pytest.raises(ImpossibleError, match=r"items \[1\]: no output with this prefix"):
        greedy(
            stepper,
            state,
            constraints=[only],
            prefix=torch.tensor([[2], [3]]),
            begin=BEGIN,
            end=END,
            max_length=5,
        )
    with pytest.raises(ShapeError, match=r"for 4 tokens with end symbol 1, got 9 tokens"):
        greedy(stepper, state, constraints=[lexicon([[2]], num_tokens=9, end=END)], **how)
    with pytest.raises(ShapeError, match="one for each of 2 items, got 3"):
        greedy(stepper, state, constraints=[Automaton.for_items([only] * 3)], **how)
    mask = torch.tensor([[False, True], [True, True]])
    with pytest.raises(ValueRangeError, match="a prefix has no holes"):
        greedy(stepper, state, prefix=torch.tensor([[2, 2], [2, 2]]), prefix_mask=mask, **how)
    with pytest.raises(ValueRangeError, match=r"without the end symbol 1.*items \[1\]"):
        greedy(stepper, state, prefix=torch.tensor([[2], [END]]), **how)
    with pytest.raises(ValueRangeError, match=r"no more of them than max_length.*items \[0, 1\]"):
        greedy(stepper, state, prefix=torch.full((2, 4), 2), **how)
    with pytest.raises(ShapeError, match=r"shape \(2, P\).*got \(1, 1\)"):
        greedy(stepper, state, prefix=torch.tensor([[2]]), **how)
    with pytest.raises(ValueRangeError, match="no_repeat_ngram must be 0"):
        greedy(stepper, state, no_repeat_ngram=-1, **how)
