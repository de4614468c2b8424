"""The pictures of the documentation, drawn when it is built: name -> SVG.

A structure is shown by its marginals as ink and one sample on top; an attention by its weights on
one small input that all of them share. All shades have one color, which also works in gray print.
"""

import io
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import torch
from docs_views import VIEWS
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Rectangle
from torch import Tensor

from foveal import attention
from foveal.distributions import (
    Alignment,
    Categorical,
    KSubset,
    LinearChain,
    ProjectiveTree,
    SemiMarkov,
    SpanningTree,
    SpanTree,
    Sparsemax,
    Subset,
)

INK, RED = "#1f3b5c", "#c0392b"
WORDS = ["the", "old", "cat", "sat", "on", "my", "mat"]
STYLE: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "foveal",  # the same drawing gives the same bytes
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

# A page with a dark palette sets `color-scheme: dark`, which an image sees as a preference. Turning the hue back makes red
# lines red again.
DARK = "<style>@media screen and (prefers-color-scheme:dark){:root{filter:invert(1) hue-rotate(180deg)}}</style>"


def svg(figure: Figure) -> str:
    """A figure as SVG on the background of its page, with light lines on a dark page."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    return text.getvalue().replace("<defs>", f"{DARK}\n<defs>", 1)


def _svg(draw: Callable[[Axes], None], width: float = 5.0, height: float = 2.2) -> str:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.add_subplot())
        return svg(figure)


def _scores(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _seed(number: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def _cells(axes: Axes, weights: Tensor, rows: list[str], columns: list[str]) -> None:
    """A heat map: rows of cells, darker for more."""
    axes.imshow(weights.detach().numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)


def _outline(axes: Axes, row: int, column: int, width: int = 1) -> None:
    axes.add_patch(
        Rectangle((column - 0.5, row - 0.5), width, 1, fill=False, edgecolor=RED, linewidth=1.8)
    )


def _choice(axes: Axes) -> None:
    one = Categorical(_scores(7))
    _cells(axes, one.marginals()[None], [""], WORDS)
    _outline(axes, 0, int(one.sample(generator=_seed())))


def _subset(axes: Axes) -> None:
    some = Subset(_scores(7))
    _cells(axes, some.marginals()[None], [""], WORDS)
    for place in some.sample(generator=_seed()).nonzero().flatten().tolist():
        _outline(axes, 0, place)


def _k_subset(axes: Axes) -> None:
    three = KSubset(_scores(7), 3)
    _cells(axes, three.marginals()[None], ["3 of 7"], WORDS)
    for place in three.sample(generator=_seed()).nonzero().flatten().tolist():
        _outline(axes, 0, place)


def _sparse(axes: Axes) -> None:
    scores = _scores(7)
    both = torch.stack([Categorical(scores).marginals(), Sparsemax(scores).marginals()])
    _cells(axes, both, ["softmax", "sparsemax"], WORDS)
    for row, column in (both == 0).nonzero().tolist():
        axes.text(column, row, "0", ha="center", va="center", color=INK)


def _chain(axes: Axes) -> None:
    chain = LinearChain(_scores(7, 3), 1.5 * torch.eye(3))
    _cells(axes, chain.marginals().T, ["state 0", "state 1", "state 2"], WORDS)
    labels = chain.sample(generator=_seed())
    axes.plot(range(7), labels, color=RED, marker="o", linewidth=1.8)


def _semi_markov(axes: Axes) -> None:
    model = SemiMarkov(_scores(7, 4, 2, seed=1), torch.zeros(2, 2))
    covered = torch.zeros(2, 7)
    marginals = model.marginals()
    for start in range(7):
        for extent in range(min(4, 7 - start)):
            covered[:, start : start + extent + 1] += marginals[start, extent].unsqueeze(-1)
    _cells(axes, covered, ["label 0", "label 1"], WORDS)
    value = model.sample(generator=_seed())
    starts = [*value.ge(0).nonzero().flatten().tolist(), 7]
    for start, end in pairwise(starts):
        _outline(axes, int(value[start]), start, end - start)


def _arcs(axes: Axes, tree: ProjectiveTree | SpanningTree) -> None:
    """Every arc with its probability as ink, one sampled tree in red."""
    marginals, heads = tree.marginals(), tree.sample(generator=_seed())
    for word in range(1, 8):
        for head in range(8):
            probability = float(marginals[head, word])
            drawn = int(heads[word - 1]) == head
            if probability < 0.02 and not drawn:
                continue
            axes.add_patch(
                Arc(
                    ((head + word) / 2, 0),
                    abs(head - word),
                    1.2 * abs(head - word),
                    theta1=0,
                    theta2=180,
                    color=RED if drawn else INK,
                    linewidth=1.6 if drawn else 2.4 * probability,
                    alpha=1.0 if drawn else 0.25 + 0.75 * probability,
                )
            )
    for place, word in enumerate(["(root)", *WORDS]):
        axes.text(place, -0.35, word, ha="center", va="top")
    axes.set_xlim(-0.5, 7.5)
    axes.set_ylim(-1.1, 4.4)
    axes.axis("off")


def _span_tree(axes: Axes) -> None:
    tree = SpanTree(_scores(7, 7))
    marginals, value = tree.marginals(), tree.sample(generator=_seed())
    for first in range(7):
        for last in range(first, 7):
            ink = float(marginals[first, last])
            center, height = (first + last) / 2, last - first
            axes.add_patch(
                Rectangle(
                    (center - 0.45, height - 0.4),
                    0.9,
                    0.8,
                    facecolor=mpl.colormaps["Blues"](ink),
                    edgecolor=RED if value[first, last] else "none",
                    linewidth=1.8,
                )
            )
    axes.set_xlim(-0.6, 6.6)
    axes.set_ylim(-0.6, 6.6)
    axes.set_xticks(range(7), WORDS)
    axes.set_yticks(range(7), [str(width) for width in range(1, 8)])
    axes.set_ylabel("words in the span")
    axes.tick_params(length=0)


def _alignment(axes: Axes) -> None:
    aligned = Alignment.one_to_many(3 * _scores(5, 7, seed=2))
    rows, columns = [f"source {i}" for i in range(5)], [f"target {j}" for j in range(7)]
    _cells(axes, aligned.marginals()[1:, 1:, 2], rows, columns)
    for row, column in aligned.sample(generator=_seed())[1:, 1:, 2].nonzero().tolist():
        _outline(axes, row, column)


STRUCTURES: dict[str, Callable[[], str]] = {
    "categorical": lambda: _svg(_choice, height=0.8),
    "subset": lambda: _svg(_subset, height=0.8),
    "k_subset": lambda: _svg(_k_subset, height=0.8),
    "sparse": lambda: _svg(_sparse, height=1.2),
    "linear_chain": lambda: _svg(_chain, height=1.5),
    "semi_markov": lambda: _svg(_semi_markov, height=1.2),
    "projective_tree": lambda: _svg(lambda axes: _arcs(axes, ProjectiveTree(2 * _scores(8, 8)))),
    "spanning_tree": lambda: _svg(lambda axes: _arcs(axes, SpanningTree(2 * _scores(8, 8)))),
    "span_tree": lambda: _svg(_span_tree, height=3.0),
    "alignment": lambda: _svg(_alignment, height=2.0),
}


def _weights(named: Callable[[], attention.Attention], queries: int = 3) -> Tensor:
    """The weights of an attention whose parameters are drawn from one seed, on one input."""
    torch.manual_seed(4)
    layer = named()
    values, query = 1.5 * _scores(7, 4, seed=5), 1.5 * _scores(queries, 4, seed=6)
    return layer(query, layer.remember(attention.Memory(values))).weights


def _attention(weights: Tensor, rows: list[str] | None = None) -> str:
    rows = rows or [f"query {q}" for q in range(len(weights))]
    return _svg(lambda axes: _cells(axes, weights, rows, WORDS), height=0.35 * len(rows) + 0.5)


def _syntactic() -> str:
    torch.manual_seed(4)
    layer = attention.syntactic_attention(4, 4, 8)
    words = 3 * _scores(7, 4, seed=5)
    return _attention(layer(words, layer.remember(attention.Memory(words))).weights, WORDS)


def _hierarchical() -> str:
    torch.manual_seed(4)
    dot = attention.DotScorer()
    inner = attention.softmax_attention(4, 4, dot)
    layer = attention.HierarchicalAttention(inner, attention.softmax_attention(4, 4, dot))
    memory = attention.sentences_memory(1.5 * _scores(3, 7, 4, seed=5))
    weights = layer(1.5 * _scores(1, 4, seed=6), layer.remember(memory)).weights.view(3, 7)
    return _attention(weights, ["sentence 1", "sentence 2", "sentence 3"])


def _spatial() -> str:
    torch.manual_seed(4)
    layer = attention.spatial_attention(4, 4, attention.DotScorer())
    memory = layer.remember(attention.grid_memory(1.5 * _scores(4, 7, 4, seed=5)))
    weights = layer(1.5 * _scores(1, 4, seed=6), memory).weights.view(4, 7)
    names = [f"row {row}" for row in range(4)]
    return _svg(lambda axes: _cells(axes, weights, names, [str(c) for c in range(7)]), height=1.8)


def _segment() -> attention.Attention:
    """Segment attention that prefers to stay in a state, as a trained one does."""
    layer = attention.segment_attention(4, 4, attention.DotScorer())
    with torch.no_grad():
        layer.get_parameter("scorer.transitions").copy_(2 * torch.eye(2) - 1)
    return layer


def _multi_head() -> str:
    torch.manual_seed(4)
    inner = attention.softmax_attention(4, 4, attention.DotScorer())
    layer = attention.MultiHead(inner, num_heads=2, query_size=8, value_size=8)
    memory = layer.remember(attention.Memory(6 * _scores(7, 8, seed=5)))
    weights = layer(6 * _scores(3, 8, seed=6), memory).weights.flatten(0, 1)
    return _attention(weights, [f"head {h}, query {q}" for h in range(2) for q in range(3)])


def _named(make: Callable[..., attention.Attention]) -> Callable[[], str]:
    return lambda: _attention(_weights(lambda: make(4, 4, attention.DotScorer())))


ATTENTIONS: dict[str, Callable[[], str]] = {
    "softmax_attention": _named(attention.softmax_attention),
    "sigmoid_attention": _named(attention.sigmoid_attention),
    "segment_attention": lambda: _attention(_weights(_segment)),
    "k_step_attention": _named(attention.k_step_attention),
    "local_attention": _named(attention.local_attention),
    "hard_attention": _named(attention.hard_attention),
    "monotone_attention": _named(attention.monotone_attention),
    "sparsemax_attention": _named(attention.sparsemax_attention),
    "syntactic_attention": _syntactic,
    "hierarchical_attention": _hierarchical,
    "spatial_attention": _spatial,
    "multi_head_attention": _multi_head,
}

PICTURES = STRUCTURES | ATTENTIONS | VIEWS
