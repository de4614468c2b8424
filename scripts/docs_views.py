"""The views of the documentation, drawn when it is built: name -> SVG, and one whole page.

No model is trained here: scores are written by hand, and the weights are what the distributions of
the library make of them. The image, the hypotheses and the curves are made up.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from sightline.attention import AttentionTrace, Layout
from sightline.distributions import Categorical, LinearChain, ProjectiveTree, Subset
from sightline.inspection import (
    Hypothesis,
    Section,
    Series,
    arcs,
    beam_tree,
    chain,
    curves,
    heads_table,
    heatmap,
    hypotheses_table,
    overlay,
    page,
    sentences,
    series_table,
    weights_table,
)


def _words(text: str) -> list[str]:
    return text.split()


def _rows(table: Tensor) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, table.tolist()))


def _flags(table: Tensor) -> tuple[tuple[bool, ...], ...]:
    return tuple(map(tuple, table.bool().tolist()))


def _noise(*shape: int, seed: int) -> Tensor:
    return 0.6 * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def softmax() -> AttentionTrace:
    """A translation whose order changes a little."""
    sources, targets = _words("the old cat sat on my mat"), _words("mon vieux chat était assis")
    read = [5, 1, 2, 3, 3]  # what each word of the translation comes from
    scores = 3.0 * one_hot(torch.tensor(read), 7) + _noise(5, 7, seed=0)
    return AttentionTrace(
        kind="softmax",
        sources=tuple(sources),
        targets=tuple(targets),
        weights=_rows(Categorical(scores).marginals()),
    )


def sigmoid() -> AttentionTrace:
    """Questions that ask for several words of a sentence."""
    sources = _words("Ann , Bo and Cy met in Oslo in May")
    wanted = torch.tensor([[1, 0, 1, 0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 0, 0]])
    scores = 5.0 * wanted - 2.5 + _noise(2, 10, seed=1)
    return AttentionTrace(
        kind="sigmoid",
        sources=tuple(sources),
        targets=("who?", "where?"),
        weights=_rows(Subset(scores).marginals()),
    )


def segment() -> AttentionTrace:
    """Characters that are read in runs: 私の is "my", マット "mat", 座った "sat"."""
    sources, targets = tuple("私のマットに座った"), ("sat", "on", "my", "mat")
    runs = ((6, 9), (5, 6), (0, 2), (2, 5))
    scores = torch.full((4, 9), -2.0)
    for row, (start, end) in enumerate(runs):
        # A run of one place has no neighbour to lean on.
        scores[row, start:end] = 2.5 if end - start > 1 else 5.0
    scores = scores + _noise(4, 9, seed=2)
    states = torch.stack([torch.zeros_like(scores), scores], -1)
    read = LinearChain(states, 2 * torch.eye(2) - 1)  # neighbours keep together
    return AttentionTrace(
        kind="segment",
        sources=sources,
        targets=targets,
        weights=_rows(read.marginals()[..., 1]),
        best=_flags(read.argmax() == 1),
    )


def tree() -> AttentionTrace:
    """A sentence whose every word has a likely head."""
    words = tuple(_words("the old cat sat on my mat"))
    heads = torch.tensor([3, 3, 4, 0, 4, 7, 5])  # words count from 1, 0 is the root
    scores = 2.2 * one_hot(heads, 8).T + 1.2 * _noise(8, 7, seed=3)
    read = ProjectiveTree(torch.cat([torch.zeros(8, 1), scores], 1))
    return AttentionTrace(
        kind="syntactic",
        sources=words,
        targets=words,
        weights=_rows(read.marginals()[1:, 1:].T),
        best=_flags(one_hot(read.argmax(), 8)[:, 1:]),
    )


def facts() -> AttentionTrace:
    """Where is the ball? Mary has it, and she is in the garden."""
    sources = (
        "Mary went to the kitchen.",
        "Mary took the ball.",
        "John moved to the hallway.",
        "Mary travelled to the garden.",
        "John took the milk.",
    )
    unary = 2.4 * one_hot(torch.tensor([1, 3]), 5) + _noise(2, 5, seed=4)
    follow = _noise(5, 5, seed=5)
    follow[1, 0] += 1.5  # a fact about Mary follows a fact about Mary
    follow[1, 3] += 1.5
    read = LinearChain(unary, follow)
    return AttentionTrace(
        kind="k-step",
        sources=sources,
        targets=("step 1", "step 2"),
        weights=_rows(read.marginals()),
        layout=Layout("facts"),
        best=_flags(one_hot(read.argmax(), 5)),
    )


def document() -> AttentionTrace:
    """A review; the second sentence says what its writer thinks."""
    review = [
        _words("We came on a rainy Monday and waited for a table ."),
        _words("The service was delicious and the food simply wonderful !"),
        _words("I would not mind the queue next time ."),
    ]
    longest = max(map(len, review))
    told = {
        "delicious": 2.6,
        "wonderful": 2.8,
        "simply": 1.2,
        "waited": 1.5,
        "mind": 1.4,
        "not": 1.2,
    }
    padded = [words + [""] * (longest - len(words)) for words in review]
    scores = torch.tensor([[told.get(word, 0.0) for word in words] for words in padded])
    real = torch.tensor([[bool(word) for word in words] for words in padded])
    within = Categorical(scores, real).marginals()
    between = Categorical(torch.tensor([-0.4, 1.6, 0.2])).marginals()
    return AttentionTrace(
        kind="hierarchical",
        sources=tuple(word for words in padded for word in words),
        targets=("positive",),
        weights=_rows((between[:, None] * within).view(1, -1)),
        layout=Layout("sentences", len(review), longest),
    )


def picture() -> tuple[AttentionTrace, np.ndarray]:
    """A red circle and a blue square, and a caption that looks at one and then the other."""
    image = np.full((96, 128, 3), 0.93)
    down, right = np.mgrid[:96, :128]
    image[(down - 32) ** 2 + (right - 36) ** 2 < 18**2] = (0.80, 0.12, 0.10)
    image[52:84, 80:112] = (0.10, 0.28, 0.75)
    rows, columns = 12, 16
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    spots = {
        "a": (5.5, 7, 5.0),
        "red": (3.5, 4, 2.0),
        "circle": (3.5, 4, 2.6),
        "and": (6, 8, 3.2),
        "blue": (8, 11.5, 2.0),
        "square": (8, 11.5, 2.6),
    }
    scores = [-((y - a) ** 2 + (x - b) ** 2) / (2 * wide**2) for a, b, wide in spots.values()]
    weights = Categorical(torch.stack(scores).flatten(1)).marginals()
    cells = tuple(f"row {r + 1}, column {c + 1}" for r in range(rows) for c in range(columns))
    looked = AttentionTrace(
        kind="spatial",
        sources=cells,
        targets=tuple(spots),
        weights=_rows(weights),
        layout=Layout("grid", rows, columns),
    )
    return looked, image


def search() -> list[Hypothesis]:
    """Ways to pronounce "read", with two that were dropped."""
    found = [
        ("R IY D", (-0.05, -0.45, -0.02), True),
        ("R EH D", (-0.05, -1.10, -0.03), True),
        ("R IY IH D", (-0.05, -0.45, -4.10, -0.60), True),
        ("R EY", (-0.05, -4.30), False),
        ("R IY T", (-0.05, -0.45, -5.20), False),
    ]
    return [
        Hypothesis(
            tokens=tuple(text.split()), log_probs=logs, score=math.fsum(logs), finished=finished
        )
        for text, logs, finished in found
    ]


def losses() -> list[Series]:
    """Curves of a run that begins to learn its training set by heart."""
    steps = range(0, 10_001, 250)
    return [
        Series(
            name="training loss",
            points=tuple((step, 2.9 * math.exp(-step / 1500) + 0.35) for step in steps),
        ),
        Series(
            name="loss on held-out words",
            points=tuple(
                (step, 2.8 * math.exp(-step / 1400) + 0.55 + 2.5e-5 * step) for step in steps[::4]
            ),
        ),
    ]


VIEWS: dict[str, Callable[[], str]] = {
    "view_softmax": lambda: heatmap(softmax()),
    "view_sigmoid": lambda: heatmap(sigmoid()),
    "view_segment": lambda: heatmap(segment()),
    "view_arcs": lambda: arcs(tree()),
    "view_chain": lambda: chain(facts()),
    "view_sentences": lambda: sentences(document()),
    "view_overlay": lambda: overlay(*picture()),
    "view_beam_tree": lambda: beam_tree(search(), title='Pronunciations of "read"'),
    "view_curves": lambda: curves(losses(), title="Loss", y_label="nats per phone"),
}


def _views_page() -> str:
    made_up = "The numbers behind this drawing were written by hand; no model was trained for it."
    traces = {"Softmax": softmax(), "Segments": segment()}
    sections = [
        Section(title=name, text=made_up, drawings=(heatmap(each),), tables=(weights_table(each),))
        for name, each in traces.items()
    ]
    rest = {
        "Heads": (arcs(tree()), heads_table(tree())),
        "Facts": (chain(facts()), weights_table(facts())),
        "Sentences": (sentences(document()), weights_table(document())),
        "Image": (overlay(*picture()), weights_table(picture()[0])),
        "Search": (VIEWS["view_beam_tree"](), hypotheses_table(search())),
        "Curves": (VIEWS["view_curves"](), series_table(losses())),
    }
    for name, (drawing, table) in rest.items():
        sections.append(Section(title=name, text=made_up, drawings=(drawing,), tables=(table,)))
    return page("Every view on one page", sections)


PAGES: dict[str, Callable[[], str]] = {"views": _views_page}
