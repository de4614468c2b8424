"""Warm start: initialize a model with the weights of another model, whose vocabulary may differ.

    W'[row of a token] = W[row of the token]     if both vocabularies have the token; otherwise W' is unchanged
    W' = W                                       for weights without a row for each token

To find the weights that have a row for each token, the other model is built again with one more token: every weight
that grows is such a table. The names of the weights play no role. A table may have rows of two kinds, one after the
other: first the source tokens, then rows without a token (the slots of a model that copies), then the features.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..data import Vocabulary
from ..data.vocabularies._vocabularies import Vocabularies
from ..data.vocabularies._vocabulary import Labels
from ..errors import BundleError
from ..specs._settings import outside_specs
from ..tasks.base._task import AbstractTask
from ._bundle import load_bundle

_KINDS = (("source",), ("target",), ("features",), ("labels",))
_KINDS_OF_COPYING = (("source", "target"), ("features",), ("labels",))


class _Axis(NamedTuple):
    """The axis of a weight that is indexed by tokens of one kind."""

    kind: str
    axis: int


def warm_start(task: AbstractTask[Any], folder: str | Path) -> None:
    """Copy the weights of a bundle into a task. Tables are copied for the tokens that both vocabularies have, all
    other weights completely.

    Args:
        task: Task whose weights are changed in place.
        folder: Folder of the bundle to copy from.

    Raises:
        BundleError: The models differ in more than their tokens and labels.
    """
    other = load_bundle(folder, also=outside_specs(task.spec))
    own, theirs = task.model.state_dict(), other.model.state_dict()
    both = (task.vocabularies, other.vocabularies)
    # A model that copies cannot be built with one more source token and without the same target token.
    is_shared = all(each.source == each.target for each in both)
    tables = _tables(other, _KINDS_OF_COPYING if is_shared else _KINDS)
    for name in sorted({*own, *theirs}):
        shapes = [_shape(side.get(name), tables.get(name, ())) for side in (own, theirs)]
        if shapes[0] != shapes[1]:
            raise BundleError(
                f"{folder}: training cannot start from these weights: {name} is {shapes[1]}, expected "
                f"{shapes[0]}. Build the model with the spec.json of the bundle, or start without a "
                f"bundle."
            )
    for name, weights in theirs.items():
        if name not in tables:
            own[name].copy_(weights)
            continue
        mine = [torch.arange(size) for size in own[name].shape]
        found = [torch.arange(size) for size in weights.shape]
        for axis in {at.axis for at in tables[name]}:
            kinds = [at.kind for at in tables[name] if at.axis == axis]
            sizes = own[name].shape[axis], weights.shape[axis]
            mine[axis], found[axis] = _common_rows(*both, kinds, sizes)
        taken = weights[torch.meshgrid(*found, indexing="ij")]
        own[name][torch.meshgrid(*mine, indexing="ij")] = taken


def token_tables(task: AbstractTask[Any], kind: str) -> set[str]:
    """Return the names of the weights with a row for each token of a kind, such as `"source"`."""
    tables = _tables(task, _KINDS)
    return {name for name, axes in tables.items() if axes == [_Axis(kind, 0)]}


def _tables(task: AbstractTask[Any], kinds: Sequence[tuple[str, ...]]) -> dict[str, list[_Axis]]:
    """Return the weights of a task that have an entry for each token of some kind, and the axes of these entries. Kinds
    in one tuple share their tokens, and the first of them stands for all.
    """
    shapes = {name: weights.shape for name, weights in task.model.state_dict().items()}
    tables: dict[str, list[_Axis]] = {}
    for alike in kinds:
        kind = alike[0]
        longer = _with_one_more(task.vocabularies, alike)
        if longer is None:
            continue
        with torch.random.fork_rng(devices=[]):
            grown = task.spec.build(longer).model.state_dict()
        for name, weights in grown.items():
            for axis, (before, after) in enumerate(zip(shapes[name], weights.shape, strict=True)):
                if before != after:
                    tables.setdefault(name, []).append(_Axis(kind, axis))
    return tables


def _with_one_more(vocabularies: Vocabularies, kinds: Sequence[str]) -> Vocabularies | None:
    """Return the vocabularies with one more token of kinds with the same tokens, or None if they lack these kinds."""
    symbols = getattr(vocabularies, kinds[0])
    if symbols is None:
        return None
    names = _names(symbols)
    new = "+" * (1 + max((len(name) for name in names), default=0))  # longer, so different from all
    longer = type(symbols)((*names, new))
    return replace(vocabularies, **dict.fromkeys(kinds, longer))


def _names(symbols: Vocabulary | Labels) -> tuple[str, ...]:
    return symbols.names if isinstance(symbols, Labels) else symbols.tokens


def _common_rows(
    own: Vocabularies, other: Vocabularies, kinds: Sequence[str], sizes: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Return the indices of the rows that both tables have: the tokens of each kind, and the rows without a token.

    Args:
        own: Vocabularies of the task.
        other: Vocabularies of the bundle.
        kinds: Kinds of tokens with rows in the tables, in the order of the rows.
        sizes: Number of rows of the table of the task, and of the bundle.

    Returns:
        Rows of the task, and the rows of the bundle with the same meaning.
    """
    counts = [[len(getattr(side, kind)) for kind in kinds] for side in (own, other)]
    without = [size - sum(count) for size, count in zip(sizes, counts, strict=True)]
    starts = [counts[0][0], counts[1][0]]  # after the first kind
    pairs = [_shared(own, other, kinds[0])]
    rest = torch.arange(min(without))
    pairs.append((starts[0] + rest, starts[1] + rest))
    for number, kind in enumerate(kinds[1:], start=1):
        mine, found = _shared(own, other, kind)
        before = [without[side] + sum(counts[side][:number]) for side in (0, 1)]
        pairs.append((before[0] + mine, before[1] + found))
    mine, found = zip(*pairs, strict=True)
    return torch.cat(mine), torch.cat(found)


def _shared(own: Vocabularies, other: Vocabularies, kind: str) -> tuple[Tensor, Tensor]:
    """Return the ids of the common tokens in both vocabularies. The ids of special tokens are equal in both."""
    ours, theirs = _names(getattr(own, kind)), _names(getattr(other, kind))
    special = len(getattr(own, kind)) - len(ours)
    known = {name: special + number for number, name in enumerate(theirs)}
    pairs = [(number, number) for number in range(special)]
    pairs += [(special + number, known[name]) for number, name in enumerate(ours) if name in known]
    mine, found = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).unbind(-1)
    return mine, found


def _shape(weights: Tensor | None, axes: Sequence[_Axis]) -> str:
    """Describe the shape of a weight without the axes of tokens, which may differ between the two models."""
    if weights is None:
        return "not there"
    sizes = [str(size) for size in weights.shape]
    for kind, axis in axes:
        if axis < len(sizes):
            sizes[axis] = kind
    return f"({', '.join(sizes)})"
