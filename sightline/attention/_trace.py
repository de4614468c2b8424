"""AttentionTrace: what was attended to, as plain data.

A picture, a report, a server and a test all read this, and none of them needs torch for it.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import ShapeError
from ._attention import Attended
from ._memory import SEQUENCE, Layout


@dataclass(frozen=True, kw_only=True)
class AttentionTrace:
    """The weights of one item: `weights[q][s]` is how much query q read of place s.

    >>> trace = AttentionTrace(kind="softmax", sources=("a", "b"), targets=("x",), weights=((0.9, 0.1),))
    >>> AttentionTrace.from_json(trace.to_json()) == trace
    True
    """

    kind: str  # which attention: "softmax", "segment", "syntactic", ...
    sources: tuple[str, ...]  # a label for each place
    targets: tuple[str, ...]  # a label for each query
    weights: tuple[tuple[float, ...], ...]
    layout: Layout = SEQUENCE

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.weights}
        if len(self.weights) != len(self.targets) or widths - {len(self.sources)}:
            raise ShapeError(
                f"AttentionTrace: expected {len(self.targets)} rows of {len(self.sources)} weights, "
                f"got {len(self.weights)} rows of {sorted(widths)}. "
                f"Give a label for every query and for every place."
            )

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self) | {"layout": self.layout._asdict()}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "AttentionTrace":
        """Read what `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        return cls(
            kind=data["kind"],
            sources=tuple(data["sources"]),
            targets=tuple(data["targets"]),
            weights=tuple(tuple(row) for row in data["weights"]),
            layout=Layout(**data["layout"]),
        )


def trace_of(
    attended: Attended,
    *,
    kind: str,
    sources: list[str],
    targets: list[str],
    layout: Layout = SEQUENCE,
) -> AttentionTrace:
    """The trace of one item without batch axes; places beyond the labels are padding."""
    rows = attended.weights[: len(targets), : len(sources)].tolist()
    return AttentionTrace(
        kind=kind,
        sources=tuple(sources),
        targets=tuple(targets),
        weights=tuple(tuple(row) for row in rows),
        layout=layout,
    )
