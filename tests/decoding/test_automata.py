"""Automata as sets of outputs: accepted outputs, products, distances, and regular expressions."""

import itertools
import re

import pytest
import torch
from hypothesis import given, settings, strategies as st

from foveal.decoding import Automaton, allowed_tokens, lexicon, regular_expression
from foveal.decoding._automaton import FAR
from foveal.errors import ShapeError, ValueRangeError
from tests.decoding.test_rules import Machine, machines
from tests.decoding.toys import END

pytestmark = pytest.mark.slow

W = 4
EVERY = [list(each) for n in range(4) for each in itertools.product([0, 2, 3], repeat=n)]


@settings(deadline=None, max_examples=30)
@given(first=machines(), second=machines(), least=st.integers(0, 3))
def test_products_and_lengths_by_enumeration(first: Machine, second: Machine, least: int) -> None:
    one, other = first.build(), second.build()
    both, long = one & other, one.at_least(least)
    for output in EVERY:
        accepted = first.accepts(output)
        assert one.accepts(output) == accepted
        assert both.accepts(output) == (accepted and second.accepts(output))
        assert long.accepts(output) == (accepted and len(output) >= least)


@settings(deadline=None, max_examples=100)
@given(machine=machines(), data=st.data())
def test_what_a_token_needs(machine: Machine, data: st.DataObject) -> None:
    """The shortest path to acceptance equals enumeration, both from the table and from the edges."""
    automaton = machine.build()
    state = data.draw(st.integers(0, len(machine.accepting) - 1))
    rows = automaton.needs(torch.tensor([[state]]))[0, 0]
    edges = {(s, w): t for s, w, t in automaton.edges.tolist()}
    started = {
        state: Automaton(automaton.edges, automaton.accepting, torch.tensor([state]), W, END)
        for state in range(len(automaton.accepting))
    }
    for token in (0, 2, 3):
        target = edges.get((state, token))
        lengths = [len(o) + 1 for o in EVERY if target is not None and started[target].accepts(o)]
        assert rows[token] == min(lengths, default=FAR)
        if target is not None:
            assert automaton.follow(torch.tensor([[state]]), torch.tensor([[token]])) == target
    assert rows[END] == (0 if automaton.accepting[state] else FAR)
    vars(automaton)["_table"] = None
    assert torch.equal(automaton.needs(torch.tensor([[state]]))[0, 0], rows)


@settings(deadline=None, max_examples=50)
@given(words=st.lists(st.lists(st.sampled_from([0, 2, 3]), max_size=4), min_size=1, max_size=12))
def test_a_lexicon_accepts_its_words(words: list[list[int]]) -> None:
    automaton = lexicon(words, num_tokens=W, end=END)
    assert [output for output in EVERY if automaton.accepts(output)] == [
        output for output in EVERY if output in words
    ]
    prefixes = {tuple(word[:n]) for word in words for n in range(len(word) + 1)}
    assert len(automaton.accepting) == len(prefixes)


PATTERNS = ["", "a", "(ab)*", "[ab]+c?", "a{2,3}|bc", "a.b", r"\w*", "[^a]b*", "((a|b)(b|c))+", "x"]
PATTERNS += [r"(\$|\^|a)+", r"[$a]+\$", r"[\^b]*", r"\\?a"]
TOKENS = [None, "end", "a", "b", "c", "ab", "bc", "a$^", "", "$"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_regular_expression_is_pythons(pattern: str) -> None:
    """Tokens have several characters: only the text counts, not its split into tokens."""
    automaton = regular_expression(pattern, TOKENS, end=1)
    expected = re.compile(pattern)
    accepted = 0
    for n in range(4):
        for output in itertools.product(range(2, 10), repeat=n):
            matches = bool(expected.fullmatch("".join(TOKENS[token] or "" for token in output)))
            assert automaton.accepts(output) == (matches and 8 not in output), output
            accepted += matches
    assert accepted or pattern == "x"


def test_an_expression_has_no_states_that_lead_nowhere() -> None:
    automaton = regular_expression("a{3}", TOKENS, end=1)
    assert automaton.distances[automaton.edges[:, 2]].max() <= 3


def test_an_automaton_may_allow_nothing() -> None:
    nothing = Automaton.from_table(torch.full((2, W), -1), torch.tensor([False, False]), end=END)
    states = torch.tensor([[0, 1]])
    assert (nothing.needs(states) == FAR).all()
    vars(nothing)["_table"] = None
    assert (nothing.needs(states) == FAR).all()
    assert nothing.follow(states, states).shape == (1, 2)
    assert not nothing.accepts([])


def test_tokens_that_may_occur() -> None:
    automaton = allowed_tokens([2, 3, END], num_tokens=W, end=END)
    accepted = [output for output in EVERY if automaton.accepts(output)]
    assert accepted == [output for output in EVERY if 0 not in output]


def test_an_automaton_moves_to_a_device() -> None:
    moved = allowed_tokens([2], num_tokens=W, end=END).to("cpu")
    assert moved.accepts([2, 2])


def test_errors_say_what_to_do() -> None:
    for pattern in ("(a", "[a", "a(?=b)", r"(a)\1", "a{2"):
        with pytest.raises(ValueRangeError, match="without look-around and without references"):
            regular_expression(pattern, TOKENS, end=1)
    for pattern in ("^a", "a$", "(^a|b)", "a(b$|c)", "a|^", r"\\$", "[a]^"):
        with pytest.raises(ValueRangeError, match=r"no anchors.*Remove \^ and \$"):
            regular_expression(pattern, TOKENS, end=1)
    with pytest.raises(ValueRangeError, match="at least one output, got none"):
        lexicon([], num_tokens=W, end=END)
    with pytest.raises(ValueRangeError, match=r"not be the end token 1, got 1\.\.1"):
        lexicon([[1]], num_tokens=W, end=END)
    with pytest.raises(ValueRangeError, match=f"tokens 0 to {W - 1}, got {W}"):
        lexicon([[2, W]], num_tokens=W, end=END)
    with pytest.raises(ValueRangeError, match="got -1"):
        lexicon([[2, -1]], num_tokens=W, end=END)
    with pytest.raises(ValueRangeError, match=r"states must be in 0\.\.0.*got 0\.\.3"):
        Automaton.from_table(torch.full((1, W), 3), torch.tensor([True]), end=END)
    edges = torch.tensor([[0, 2, 0], [0, 2, 1]])
    with pytest.raises(ValueRangeError, match="edges must ascend"):
        Automaton(edges, torch.tensor([True, True]), torch.tensor([0]), W, END)
    with pytest.raises(ShapeError, match="num_tokens 4 and 9"):
        _ = lexicon([[2]], num_tokens=W, end=END) & lexicon([[2]], num_tokens=9, end=END)
    with pytest.raises(ShapeError, match="one start, one vocabulary"):
        Automaton.for_items([])
