"""AttentionTrace: attention weights as plain data.

Plots, reports, servers and tests read a trace, and none of them needs torch to do so.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import Bool
from torch import Tensor

from ..errors import ShapeError
from ._attention import Attended
from ._hierarchical import HierarchicalAttended
from ._memory import SEQUENCE, Layout


@dataclass(frozen=True, kw_only=True)
class AttentionTrace:
    """The attention weights of one item: `weights[q][s]` is the weight of position s for query q.

    Examples:
        >>> trace = AttentionTrace(kind="softmax", sources=("a", "b"), targets=("x",), weights=((0.9, 0.1),))
        >>> AttentionTrace.from_json(trace.to_json()) == trace
        True
    """

    kind: str  # the attention: "softmax", "segment", "syntactic", ...
    sources: tuple[str, ...]  # a label for each position
    targets: tuple[str, ...]  # a label for each query
    weights: tuple[tuple[float, ...], ...]
    layout: Layout = SEQUENCE
    # The most probable selection, in the shape of the weights: the segments, the chain of facts, or the
    # tree (best[d][h] is True if h is the head of d; the root word of the sentence has no head).
    best: tuple[tuple[bool, ...], ...] | None = None
    copied: tuple[float, ...] | None = None  # for each query, the probability of copying

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.weights}
        if len(self.weights) != len(self.targets) or widths - {len(self.sources)}:
            raise ShapeError(
                f"AttentionTrace: expected {len(self.targets)} rows of {len(self.sources)} weights, "
                f"got {len(self.weights)} rows of {sorted(widths)}. Pass a label for every query and "
                f"for every position."
            )
        if self.best is not None and [*map(len, self.best)] != [*map(len, self.weights)]:
            raise ShapeError(
                f"AttentionTrace: best must have the shape of the weights, {len(self.targets)} rows "
                f"of {len(self.sources)}, got {len(self.best)} rows of "
                f"{sorted({len(row) for row in self.best})}. Pass a boolean for every query and every "
                f"position."
            )

        if self.copied is not None and len(self.copied) != len(self.targets):
            raise ShapeError(
                f"AttentionTrace: expected a probability of copying for each of {len(self.targets)} queries, "
                f"got {len(self.copied)}. Give one for every query, or None."
            )

    def to_json(self) -> str:
        """Serialize to one line of JSON.

        Returns:
            The trace as JSON, with non-ASCII characters as they are.
        """
        return json.dumps(asdict(self) | {"layout": self.layout._asdict()}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "AttentionTrace":
        """Parse the output of `to_json`.

        Args:
            text: JSON from `to_json`.

        Returns:
            A trace that is equal to the serialized one.
        """
        data: dict[str, Any] = json.loads(text)
        pitch = data["layout"].get("pitch")
        return cls(
            kind=data["kind"],
            sources=tuple(data["sources"]),
            targets=tuple(data["targets"]),
            weights=tuple(tuple(row) for row in data["weights"]),
            layout=Layout(**data["layout"] | {"pitch": None if pitch is None else tuple(pitch)}),
            best=None if data.get("best") is None else tuple(map(tuple, data["best"])),
            copied=None if data.get("copied") is None else tuple(data["copied"]),
        )


def trace_of(
    attended: Attended,
    *,
    kind: str,
    sources: list[str],
    targets: list[str],
    layout: Layout = SEQUENCE,
    best: Bool[Tensor, "Q S"] | None = None,
) -> AttentionTrace:
    """Build the trace of one item without batch axes; positions beyond the labels are padding.

    `best` marks the selection of the most probable structure. It depends on the attention:

        segment     attended.distribution.argmax() == 1
        k-step      one_hot(attended.distribution.argmax(), S).bool()
        syntactic   one_hot(attended.distribution.argmax(), n + 1)[:, 1:].bool()

    Args:
        attended: Output of an attention, without batch axes.
        kind: Name of the attention, for example "softmax" or "segment".
        sources: Label of each position.
        targets: Label of each query.
        layout: Layout of the positions; a sequence by default.
        best: True at the selected positions of each query, if known.

    Returns:
        A trace with one row of weights for each target and one column for each source.
    """
    return AttentionTrace(
        kind=kind,
        sources=tuple(sources),
        targets=tuple(targets),
        weights=_rows(attended.weights[: len(targets), : len(sources)]),
        layout=layout,
        best=None if best is None else _rows(best[: len(targets), : len(sources)]),
    )


def sentences_trace(
    attended: HierarchicalAttended, *, kind: str, sentences: list[list[str]], targets: list[str]
) -> AttentionTrace:
    """Build the trace of one document without batch axes.

    Its positions are the words of every sentence; empty labels pad each sentence to the longest.

    Args:
        attended: Output of a hierarchical attention, without batch axes.
        kind: Name of the attention.
        sentences: Words of each sentence.
        targets: Label of each query.

    Returns:
        A trace with the layout "sentences".

    Raises:
        ShapeError: The weights have fewer queries, sentences or words than the labels.
    """
    longest = max((len(words) for words in sentences), default=0)
    within = attended.words.weights  # (n, Q, w)
    shape = (within.shape[1], within.shape[0], within.shape[2])
    weights = attended.weights.view(shape)[: len(targets), : len(sentences), :longest]
    if weights.shape != (len(targets), len(sentences), longest):
        raise ShapeError(
            f"sentences_trace: expected weights for {len(targets)} queries, {len(sentences)} "
            f"sentences and {longest} words, got {shape}. Pass the attended words of one document."
        )
    return AttentionTrace(
        kind=kind,
        sources=tuple(
            word for words in sentences for word in words + [""] * (longest - len(words))
        ),
        targets=tuple(targets),
        weights=_rows(weights.flatten(1)),
        layout=Layout("sentences", len(sentences), longest),
    )


def _rows(table: Tensor) -> tuple[tuple[Any, ...], ...]:
    return tuple(map(tuple, table.tolist()))
