"""Alignments of words, or of tokens, from the attention of a model under teacher forcing.

    posterior   i-j where p(target word j comes from source word i) is at least a threshold
    argmax      i-j where the most probable selection of some token of j has a token of i

From tokens to words: if a step reads one position, it reads word i with the sum of the weights of its tokens;
if positions are read independently (segments, sigmoid), with their maximum. A target word takes the largest
weight of its tokens for each i, which links the words of subwords as in Garg et al. 2019.
Spaces belong to no word, and attention to them is ignored.

A model of the reverse direction adds a second table. Either `symmetrize` merges the links of both tables, or
`product` merges the tables: it thresholds the geometric mean of the posteriors (Liang et al. 2006), a soft
version of `intersection`.

Axes: J target words, I source words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float

from ...attention import AttentionTrace
from ...data import Example, TokenizerSpec
from ...data.formats._links import Link
from ...data.tokenizers._words import Words, words_of
from ...errors import ValueRangeError
from ...tasks import AbstractTask, Transduction
from ...tasks._transduction import as_transduction
from ._forced_attention import forced_traces
from ._symmetrization import Symmetrization, symmetrize

Units: TypeAlias = Literal["words", "symbols"]
By: TypeAlias = Literal["posterior", "argmax"]


@dataclass(frozen=True, kw_only=True)
class Aligned:
    """One pair of texts with its links.

    Examples:
        >>> pair = Aligned(
        ...     sources=("no", "way"), targets=("never",), links=frozenset({(0, 0), (1, 0)}),
        ...     weights=((0.6, 0.4),),
        ... )
        >>> pair.pharaoh
        '0-0 1-0'
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    links: frozenset[Link]  # source, target
    weights: tuple[tuple[float, ...], ...]  # weights[j][i] = p(target j comes from source i)

    @property
    def pharaoh(self) -> str:
        """The links in Pharaoh format, sorted by source and target."""
        return " ".join(f"{i}-{j}" for i, j in sorted(self.links))


class _Table(NamedTuple):
    """One direction: the attention from each target word to each source word, and the selected source words."""

    weights: Float[np.ndarray, "J I"]
    best: Bool[np.ndarray, "J I"]


def align(
    task: AbstractTask[Any],
    examples: Sequence[Example],
    *,
    by: By = "posterior",
    threshold: float = 0.5,
    units: Units | None = None,
    reverse: AbstractTask[Any] | None = None,
    symmetrization: Symmetrization | Literal["product"] = "grow-diag-final",
) -> list[Aligned]:
    """Align the source of each example with its target.

    Args:
        task: A trained transduction.
        examples: Examples with targets.
        by: Use posterior probabilities above a threshold, or the most probable selection.
        threshold: The minimum probability of a link; for `posterior` only.
        units: Link words or tokens. Defaults to words if outputs are texts, tokens if outputs are single words.
        reverse: A transduction from targets to sources.
        symmetrization: Method to merge the links of both directions, if there is a reverse model.

    Returns:
        Links and weights of each example, in the order of the examples.

    Raises:
        ValueRangeError: The threshold is not a probability above 0, or `product` is combined with `argmax`.
    """
    forward = _transduction("align", task)
    backward = None if reverse is None else _transduction("align: reverse", reverse)
    if not 0 < threshold <= 1:
        raise ValueRangeError(
            f"align: threshold must be a probability above 0 and at most 1, got {threshold}. For "
            f"example, use 0.5."
        )
    if reverse is not None and symmetrization == "product" and by == "argmax":
        raise ValueRangeError(
            "align: symmetrization by product needs posterior probabilities, got argmax. Use "
            "by=posterior, or symmetrize by intersection."
        )
    units = units or usual_units(forward)
    ours = [_words(forward.spec.source, e.text, units) for e in examples]
    theirs = [_words(forward.spec.target, e.target or "", units) for e in examples]
    pairs = [(a.words, b.words) for a, b in zip(ours, theirs, strict=True)]
    tables = _tables(forward, examples, ours, theirs)
    if backward is None:
        links = [_links(table, by, threshold) for table in tables]
        rows = zip(pairs, links, (table.weights for table in tables), strict=True)
        return [_aligned(pair, found, weights) for pair, found, weights in rows]
    back = _backward(backward, examples, units, pairs)
    return [
        _joint(pair, there, here, by, threshold, symmetrization)
        for pair, there, here in zip(pairs, tables, back, strict=True)
    ]


def usual_units(task: Transduction) -> Units:
    """Return words if an output is a text, and tokens if it is one word, as in pronunciation."""
    return "symbols" if task.has_one_answer else "words"


def _transduction(what: str, task: AbstractTask[Any]) -> Transduction:
    return as_transduction(
        task, f"{what}: expected a model that maps a source text to a target text"
    )


def _words(tokenizer: TokenizerSpec, text: str, units: Units) -> Words:
    if units == "words":
        return words_of(tokenizer, text)
    symbols = tokenizer.encode(text)
    return Words(tuple(symbols), tuple(range(len(symbols))))


def _tables(
    task: Transduction, examples: Sequence[Example], ours: Sequence[Words], theirs: Sequence[Words]
) -> list[_Table]:
    exclusive = task.spec.model.decoder.is_exclusive
    traces = forced_traces(task, examples)
    return [
        _table(trace, a, b, exclusive=exclusive)
        for trace, a, b in zip(traces, ours, theirs, strict=True)
    ]


def _backward(
    task: Transduction,
    examples: Sequence[Example],
    units: Units,
    pairs: Sequence[tuple[tuple[str, ...], tuple[str, ...]]],
) -> list[_Table]:
    """Return the tables of the reverse model, transposed."""
    turned = [replace(e, source=e.target or "", target=e.text, features="") for e in examples]
    ours = [_words(task.spec.source, e.text, units) for e in turned]
    theirs = [_words(task.spec.target, e.target or "", units) for e in turned]
    for pair, a, b in zip(pairs, ours, theirs, strict=True):
        if pair != (b.words, a.words):
            raise ValueRangeError(
                f"align: the model of the other direction splits {' '.join(pair[0])!r} and "
                f"{' '.join(pair[1])!r} into other tokens, so the links cannot be compared. Align "
                f"words: units words."
            )
    tables = _tables(task, turned, ours, theirs)
    return [_Table(table.weights.T, table.best.T) for table in tables]


def _table(trace: AttentionTrace, ours: Words, theirs: Words, *, exclusive: bool) -> _Table:
    """Convert a trace of tokens to a table of words."""
    assert trace.best is not None
    assert len(theirs.of_symbol) == len(trace.targets) - 1  # the last row is for the end
    kept, owners = _owned(ours)
    rows, numbers = _owned(theirs)
    shape = len(theirs.words), len(ours.words)
    weights = np.array(trace.weights)[np.ix_(rows, kept)]
    best = np.array(trace.best)[np.ix_(rows, kept)]
    read, chosen = np.zeros((len(rows), shape[1])), np.zeros((len(rows), shape[1]), bool)
    (np.add if exclusive else np.maximum).at(read.T, owners, weights.T)
    np.logical_or.at(chosen.T, owners, best.T)
    found = _Table(np.zeros(shape), np.zeros(shape, bool))
    np.maximum.at(found.weights, numbers, read)
    np.logical_or.at(found.best, numbers, chosen)
    return found._replace(weights=found.weights.clip(max=1.0))


def _owned(words: Words) -> tuple[list[int], list[int]]:
    """Return the tokens that belong to a word, and the words that they belong to."""
    owned = [(n, owner) for n, owner in enumerate(words.of_symbol) if owner is not None]
    return [n for n, _ in owned], [owner for _, owner in owned]


def _links(table: _Table, by: By, threshold: float) -> frozenset[Link]:
    chosen = table.best if by == "argmax" else table.weights >= threshold
    return frozenset((int(i), int(j)) for j, i in np.argwhere(chosen))


def _joint(
    pair: tuple[tuple[str, ...], tuple[str, ...]],
    forward: _Table,
    backward: _Table,
    by: By,
    threshold: float,
    symmetrization: Symmetrization | Literal["product"],
) -> Aligned:
    both = np.sqrt(forward.weights * backward.weights)
    if symmetrization == "product":
        return _aligned(pair, _links(_Table(both, forward.best), "posterior", threshold), both)
    there, back = (_links(table, by, threshold) for table in (forward, backward))
    return _aligned(pair, symmetrize(there, back, symmetrization), both)


def _aligned(
    pair: tuple[tuple[str, ...], tuple[str, ...]],
    links: frozenset[Link],
    weights: Float[np.ndarray, "J I"],
) -> Aligned:
    rows = tuple(tuple(row) for row in weights.tolist())
    return Aligned(sources=pair[0], targets=pair[1], links=links, weights=rows)
