"""Automata for sets of allowed outputs: a set of tokens, a list of outputs, a regular expression.

Axes: Q states, W tokens of the vocabulary.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from ..errors import ValueRangeError
from ..extras import required
from ._automaton import Automaton

# An escaped character, a character class, or one character of a pattern.
_PIECE = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)
# greenery accepts these two characters only in classes.
_LITERAL = {r"\^": r"[\^]", r"\$": "[$]"}


def allowed_tokens(tokens: Iterable[int], *, num_tokens: int, end: int) -> Automaton:
    """Allow outputs of any length that consist only of these tokens.

    Args:
        tokens: Token ids that may occur; the end symbol among them is ignored.
        num_tokens: Size of the vocabulary.
        end: End symbol, which may follow any token.

    Returns:
        An automaton with one state.

    Examples:
        >>> digits = allowed_tokens(range(4, 14), num_tokens=50, end=3)
        >>> digits.accepts([4, 13]), digits.accepts([4, 14])
        (True, False)
    """
    edges = [[0, token, 0] for token in sorted(set(tokens) - {end})]
    return Automaton(
        torch.tensor(edges).reshape(-1, 3),
        torch.tensor([True]),
        torch.tensor([0]),
        num_tokens,
        end,
    )


def lexicon(outputs: Iterable[Sequence[int]], *, num_tokens: int, end: int) -> Automaton:
    """Allow exactly these outputs, stored as a trie.

    Args:
        outputs: Token ids of each output, without the end symbol.
        num_tokens: Size of the vocabulary.
        end: End symbol.

    Returns:
        An automaton with a state for each prefix.

    Raises:
        ValueRangeError: If there are no outputs, or an output contains the end symbol or a token outside the vocabulary.

    Examples:
        >>> words = lexicon([[4, 5], [4, 5, 6]], num_tokens=9, end=3)
        >>> words.accepts([4, 5]), words.accepts([4])
        (True, False)
    """
    words = [list(output) for output in outputs]
    if not words:
        raise ValueRangeError(
            "lexicon: expected at least one output, got none. To allow all outputs, remove the constraint."
        )
    outside = [token for word in words for token in word if not 0 <= token < num_tokens]
    if outside:
        raise ValueRangeError(
            f"lexicon: outputs must hold tokens 0 to {num_tokens - 1}, got {outside[0]}. "
            f"Encode them with the vocabulary of the model."
        )
    # Build the trie level by level: a node is a pair (its parent, its token).
    longest = max(map(len, words))
    tokens = torch.tensor([word + [-1] * (longest - len(word)) for word in words])
    nodes = torch.zeros(len(words), dtype=torch.long)
    num_nodes, edges = 1, [torch.zeros(0, 3, dtype=torch.long)]
    for level in range(longest):
        longer = tokens[:, level] >= 0
        keys, which = torch.unique(
            nodes[longer] * num_tokens + tokens[longer, level], return_inverse=True
        )
        children = num_nodes + torch.arange(len(keys))
        edges.append(torch.stack([keys // num_tokens, keys % num_tokens, children], 1))
        nodes[longer] = children[which]
        num_nodes += len(keys)
    accepting = torch.zeros(num_nodes, dtype=torch.bool)
    accepting[nodes] = True
    return Automaton(torch.cat(edges), accepting, torch.tensor([0]), num_tokens, end)


def balanced(opening: int, closing: int, *, deepest: int, num_tokens: int, end: int) -> Automaton:
    """Allow outputs with balanced opening and closing tokens.

    Args:
        opening: Token that opens a level.
        closing: Token that closes a level.
        deepest: Maximum number of nested levels.
        num_tokens: Size of the vocabulary.
        end: End symbol, which is allowed when all levels are closed.

    Returns:
        An automaton with a state for each level.

    Examples:
        >>> braces = balanced(4, 5, deepest=3, num_tokens=9, end=3)
        >>> braces.accepts([4, 7, 5]), braces.accepts([4, 7]), braces.accepts([5, 4])
        (True, False, False)
    """
    depth = torch.arange(deepest + 1)
    table = depth[:, None].repeat(1, num_tokens)
    table[:, opening] = torch.where(depth < deepest, depth + 1, -1)
    table[:, closing] = depth - 1
    table[:, end] = -1
    return Automaton.from_table(table, depth == 0, end=end)


def regular_expression(pattern: str, tokens: Sequence[str | None], *, end: int) -> Automaton:
    r"""Allow outputs whose text matches the whole pattern.

    Args:
        pattern: A pattern of Python's `re`, without anchors, look-around and references to groups.
        tokens: The text of each token of the vocabulary, with any number of characters; None or ""
            for tokens that never occur, such as padding and the begin symbol.
        end: The end symbol; its text is ignored.

    Returns:
        An automaton over the tokens, without dead ends.

    Raises:
        ValueRangeError: If the pattern is not a regular expression of the supported kind.

    Examples:
        >>> tokens = [None, None, None, None, "1", "2", "22", "a"]
        >>> numbers = regular_expression(r"\d{2,3}", tokens, end=3)
        >>> numbers.accepts([4, 6]), numbers.accepts([6, 6]), numbers.accepts([4, 7])
        (True, False, False)
    """
    machine = _machine(pattern)
    order = sorted(machine.states, key=lambda state: (state != machine.initial, state))
    number = {state: i for i, state in enumerate(order)}
    written = [text if text and i != end else "" for i, text in enumerate(tokens)]
    # Maps each character to the next state of every state. The map of a token composes its characters.
    after: dict[str, np.ndarray] = {}
    for character in set("".join(written)):
        symbol = next(each for each in machine.alphabet if each.accepts(character))
        after[character] = np.array([number[machine.map[state][symbol]] for state in order])
    table = np.full((len(order), len(tokens)), -1)
    for token, text in enumerate(written):
        if text:
            column = np.arange(len(order))
            for character in text:
                column = after[character][column]
            table[:, token] = column
    accepting = torch.tensor([state in machine.finals for state in order])
    return _without_dead_states(Automaton.from_table(torch.from_numpy(table), accepting, end=end))


def _machine(pattern: str) -> Any:
    """Build the smallest automaton over characters."""
    pieces: list[str] = _PIECE.findall(pattern)
    if "^" in pieces or "$" in pieces:
        raise ValueRangeError(
            f"regular_expression: a pattern must match the whole output and has no anchors, got "
            f"{pattern!r}. Remove ^ and $; write \\^ and \\$ for the characters."
        )
    reader = required("toolkit", "greenery.parse", needed_by="regular_expression")
    try:
        parsed = reader.parse("".join(_LITERAL.get(piece, piece) for piece in pieces))
        return parsed.to_fsm().reduce()
    except (reader.NoMatch, IndexError, ValueError) as error:
        raise ValueRangeError(
            f"regular_expression: expected a regular expression without look-around and without "
            f"references to groups, got {pattern!r}: {error}."
        ) from error


def _without_dead_states(automaton: Automaton) -> Automaton:
    """Remove edges into states from which no output is accepted."""
    alive = automaton.distances[automaton.edges[:, 2]] <= len(automaton.accepting)
    return Automaton(
        automaton.edges[alive],
        automaton.accepting,
        automaton.starts,
        automaton.num_tokens,
        automaton.end,
    )
