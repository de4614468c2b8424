"""The tree of a beam search, in which hypotheses share their common prefixes.

The drawing needs only the finished and the pruned hypotheses: merged by prefix, they form the search
tree. The best hypothesis is the straight line at the top.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import ShapeError, ValueRangeError
from ._ink import MOST_MARKS
from ._render import render_svg
from ._text import named, note_width, number, short, width

FONT = 13.0
MARGIN = 14.0
LONGEST_TOKEN = 12.0  # ems
ROW, GAP = 30.0, 30.0
START = 12.0  # the width of the root


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """One hypothesis of a search: its tokens, the log-probability of each token given its prefix, and the score for
    ranking. `finished` is False for a pruned hypothesis.
    """

    tokens: tuple[str, ...]
    log_probs: tuple[float, ...]
    score: float
    finished: bool = True

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.log_probs):
            raise ShapeError(
                f"Hypothesis: expected a log-probability for each of {len(self.tokens)} tokens, got "
                f"{len(self.log_probs)}. Omit the begin token from both."
            )
        if not (math.isfinite(self.score) and all(value <= 1e-6 for value in self.log_probs)):
            raise ValueRangeError(
                f"Hypothesis: expected a finite score and log-probabilities of at most 0, got score "
                f"{self.score} and {max(self.log_probs, default=0.0)}. Omit hypotheses that do not "
                f"exist: their score is -inf."
            )


class Node(NamedTuple):
    """A token after its prefix, or (with `token` None) the end of a hypothesis."""

    parent: int
    depth: int
    token: str | None
    log_prob: float
    total: float  # log-probability of the prefix up to this token
    rank: int  # rank of the best hypothesis through it
    finished: bool


class Edge(NamedTuple):
    """A line from a node to its successor, with the token at its end."""

    path: str
    width: float
    opacity: float
    best: bool
    x: float
    y: float
    text: str
    room: float
    title: str


class Leaf(NamedTuple):
    """The end of a hypothesis."""

    x: float
    y: float
    text: str
    title: str
    best: bool
    finished: bool


def ranked(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the finished hypotheses, best first, then the pruned ones."""
    return sorted(hypotheses, key=lambda each: (not each.finished, -each.score))


def _tree(hypotheses: Sequence[Hypothesis]) -> list[Node]:
    """Merge hypotheses, best first, by prefix; the root is node 0."""
    nodes = [Node(-1, 0, None, 0.0, 0.0, 0, False)]
    known = dict[tuple[int, str], int]()
    for rank, hypothesis in enumerate(hypotheses):
        at = 0
        for token, log_prob in zip(hypothesis.tokens, hypothesis.log_probs, strict=True):
            key = (at, token)
            if key not in known:
                known[key] = len(nodes)
                total = nodes[at].total + log_prob
                nodes.append(Node(at, nodes[at].depth + 1, token, log_prob, total, rank, False))
            at = known[key]
        end = nodes[at]
        nodes.append(Node(at, end.depth + 1, None, 0.0, end.total, rank, hypothesis.finished))
    return nodes


def _rows(nodes: list[Node]) -> list[int]:
    """Return the row of each node: the row of its best end, with the ends in tree order."""
    children = [list[int]() for _ in nodes]
    for index, node in enumerate(nodes[1:], 1):
        children[node.parent].append(index)
    rows, free, stack = [0] * len(nodes), 0, [0]
    while stack:  # not recursion: a hypothesis may have a thousand tokens
        index = stack.pop()
        rows[index] = free
        if not children[index]:
            free += 1
        # The node that opens a branch takes the first free row, like its best end.
        stack.extend(reversed(children[index]))
    return rows


def _columns(nodes: list[Node]) -> list[float]:
    """Return the left edge of each depth."""
    rooms = [0.0] * (max(node.depth for node in nodes) + 2)
    for node in nodes:
        if node.token is not None:
            room = FONT * width(short(node.token, LONGEST_TOKEN)) + 8
            rooms[node.depth] = max(rooms[node.depth], room)
    edges = [MARGIN + START + GAP]
    for room in rooms[1:]:
        edges.append(edges[-1] + room + GAP)
    return [MARGIN, *edges]


def _bounded(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the best hypotheses that fit into a bounded number of marks."""
    kept, marks = list[Hypothesis](), 0
    for hypothesis in ranked(hypotheses):
        marks += len(hypothesis.tokens) + 1
        if marks > MOST_MARKS:
            break
        kept.append(hypothesis)
    return kept


def _path(x0: float, y0: float, x1: float, y1: float) -> str:
    if y0 == y1:
        return f"M{x0:.1f} {y0:.1f}H{x1:.1f}"
    middle = (x0 + x1) / 2
    return f"M{x0:.1f} {y0:.1f}C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"


def _edges(nodes: list[Node], rows: list[int], columns: list[float]) -> list[Edge]:
    ends = [MARGIN + START] * len(nodes)
    edges = list[Edge]()
    for index, node in enumerate(nodes[1:], 1):
        y = MARGIN + 14 + rows[index] * ROW
        x, above = columns[node.depth], MARGIN + 14 + rows[node.parent] * ROW
        text = "" if node.token is None else short(node.token, LONGEST_TOKEN)
        room = FONT * width(text) + 8 if text else 0.0
        ends[index] = x + room
        probability = math.exp(min(node.log_prob, 0.0))
        title = (
            ""
            if node.token is None
            else (
                f"{named(node.token)}: probability {number(probability)} here, "
                f"log-probability {node.total:.2f} so far"
            )
        )
        edges.append(
            Edge(
                path=_path(ends[node.parent], above, x, y),
                # The line to an end has no token and no probability: it is thin.
                width=round(0.8 + 3 * probability, 2) if text else 1.0,
                opacity=round(0.25 + 0.75 * probability, 3) if text else 0.5,
                best=node.rank == 0,
                x=round(x, 1),
                y=round(y, 1),
                text=text,
                room=round(room, 1),
                title=title,
            )
        )
    return edges


def _leaves(nodes: list[Node], edges: list[Edge], hypotheses: Sequence[Hypothesis]) -> list[Leaf]:
    leaves = list[Leaf]()
    for node, edge in zip(nodes[1:], edges, strict=True):
        if node.token is None:
            score = hypotheses[node.rank].score
            state = "finished" if node.finished else "dropped"
            said = " ".join(hypotheses[node.rank].tokens)
            leaves.append(
                Leaf(
                    edge.x,
                    edge.y,
                    f"{node.rank + 1}.  {score:.2f}" if node.finished else f"{score:.2f} dropped",
                    f"{named(said)}: {state}, score {score:.4g}, log-probability {node.total:.4g}",
                    node.rank == 0,
                    node.finished,
                )
            )
    return leaves


def beam_tree(hypotheses: Sequence[Hypothesis], *, title: str = "Beam search") -> str:
    """Draw the tree of a search, with the best hypothesis at the top.

    Width and ink of a line show the probability of its token, and every end shows its rank and score.

    Args:
        hypotheses: Finished and pruned hypotheses, in any order.
        title: Title of the drawing.

    Returns:
        An SVG drawing.

    Examples:
        >>> best = Hypothesis(tokens=("a", "b"), log_probs=(-0.1, -0.2), score=-0.3)
        >>> other = Hypothesis(tokens=("a", "c"), log_probs=(-0.1, -1.8), score=-1.9)
        >>> beam_tree([other, best]).count('class="token"')      # a, b, c: the stem is shared
        3
    """
    kept = _bounded(hypotheses)
    nodes = _tree(kept)
    rows, columns = _rows(nodes), _columns(nodes)
    edges = _edges(nodes, rows, columns)
    leaves = _leaves(nodes, edges, kept)
    bottom = MARGIN + max(len(kept), 1) * ROW
    left_out = len(hypotheses) - len(kept)
    notes = ["line: probability of the token; at the end: rank and score"]
    if left_out:
        notes.append(f"{left_out} more hypotheses are not drawn")
    note = "; ".join(notes)
    best = f"Best: {leaves[0].title}." if leaves else "No hypothesis."
    return render_svg(
        "beam_tree.svg",
        title=title,
        description=f"{len(hypotheses)} hypotheses. {best}",
        width=math.ceil(max([2 * MARGIN + note_width(note), *(leaf.x + 110 for leaf in leaves)])),
        height=math.ceil(bottom + 40),
        edges=sorted((edge for edge in edges), key=lambda edge: (edge.best, edge.opacity)),
        leaves=leaves,
        root_x=MARGIN + START / 2,
        root_y=MARGIN + 14,
        note=note,
        note_y=bottom + 24,
    )
