"""Warm start: initialize a model with the weights of another model, whose vocabulary may differ.

    W'[row of a token] = W[row of the token]     if both vocabularies have the token; otherwise W' is unchanged
    W' = W                                       for weights without a row for each token

To find the weights that have a row for each token, the other model is built again with one more token: every weight
that grows is such a table. The names of the weights play no role.
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

_KINDS = ("source", "target", "features", "labels")


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
    tables = _tables(other)
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
        for kind, axis in tables[name]:
            mine[axis], found[axis] = _shared(task.vocabularies, other.vocabularies, kind)
        taken = weights[torch.meshgrid(*found, indexing="ij")]
        own[name][torch.meshgrid(*mine, indexing="ij")] = taken


def token_tables(task: AbstractTask[Any], kind: str) -> set[str]:
    """Return the names of the weights with a row for each token of a kind, such as `"source"`."""
    return {name for name, axes in _tables(task).items() if axes == [_Axis(kind, 0)]}


def _tables(task: AbstractTask[Any]) -> dict[str, list[_Axis]]:
    """Return the weights of a task that have an entry for each token of some kind, and the axes of these entries."""
    shapes = {name: weights.shape for name, weights in task.model.state_dict().items()}
    tables: dict[str, list[_Axis]] = {}
    for kind in _KINDS:
        longer = _with_one_more(task.vocabularies, kind)
        if longer is None:
            continue
        with torch.random.fork_rng(devices=[]):
            grown = task.spec.build(longer).model.state_dict()
        for name, weights in grown.items():
            for axis, (before, after) in enumerate(zip(shapes[name], weights.shape, strict=True)):
                if before != after:
                    tables.setdefault(name, []).append(_Axis(kind, axis))
    return tables


def _with_one_more(vocabularies: Vocabularies, kind: str) -> Vocabularies | None:
    """Return the vocabularies with one more token of a kind, or None if they do not have that kind."""
    symbols = getattr(vocabularies, kind)
    if symbols is None:
        return None
    names = _names(symbols)
    new = "+" * (1 + max((len(name) for name in names), default=0))  # longer, so different from all
    return replace(vocabularies, **{kind: type(symbols)((*names, new))})


def _names(symbols: Vocabulary | Labels) -> tuple[str, ...]:
    return symbols.names if isinstance(symbols, Labels) else symbols.tokens


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
