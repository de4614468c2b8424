"""The views of the documentation, drawn when it is built: name -> SVG, a caption of each, and one
whole page.

The script draws the attention of trained models from results/gallery, which `python -m benchmarks.gallery` writes. It
trains nothing. Data, scores and times in captions come from the same files; docs/pictures.md describes the
pictures.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.gallery import Exhibit
from foveal.attention import AttentionTrace
from foveal.views import (
    Section,
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
from foveal.views._tables import Table

GALLERY = Path(__file__).resolve().parent.parent / "results/gallery"

WORDS = "Icelandic pronunciation, 800 training words"


class View(NamedTuple):
    """A drawing, the table of its numbers, its subject, and its source file."""

    heading: str
    alt: str  # the text for readers who cannot see the drawing
    case: str
    draw: Callable[[Exhibit], str]
    table: Callable[[Exhibit], Table]
    caption: Callable[[Exhibit], str]


@cache
def exhibit(case: str) -> Exhibit:
    """Return the stored result of a case of the gallery."""
    return Exhibit.load(GALLERY / f"{case}.json")


def scores(shown: Exhibit) -> str:
    """Every score of the model, the time it was trained, and its seed."""
    said = list[str]()
    for row in shown.results.rows:
        if row.unit == "s":
            seed = f"seed {row.seeds[0]}"
            said.append(f"trained and scored in {row.value / 60:.1f} minutes on one thread, {seed}")
            continue
        between = ""
        if row.spread is not None:
            between = f" (95 % interval {row.spread[0]:.0f} to {row.spread[1]:.0f})"
        said.append(f"{row.name}: {row.value:.1f} {row.unit}{between}")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."


def _verdict(shown: Exhibit) -> str:
    """Return the output, and whether it is right."""
    facts = shown.shown.facts
    if facts["output"] == facts["reference"]:
        return f"{facts['output']!r}, which is right"
    return f"{facts['output']!r}, where {facts['reference']!r} is right"


def _word(shown: Exhibit) -> str:
    return (
        f"{WORDS}; {shown.shown.trace.kind} attention. For the test word {shown.shown.facts['input']!r}, the model predicts "
        f"{_verdict(shown)}. {scores(shown)}"
    )


def _formula(shown: Exhibit) -> str:
    return (
        f"Formulas from prefix to infix notation, 10,000 training formulas, syntactic attention in the "
        f"encoder. The model writes {_verdict(shown)}. {scores(shown)}"
    )


def _sentence(shown: Exhibit) -> str:
    facts = shown.shown.facts
    num_right = sum(map(int.__eq__, facts["output"], facts["reference"]))
    return (
        f"English Web Treebank, a parser trained on trees. "
        f"{num_right} of the {len(facts['reference'])} heads in the most probable tree are the heads of "
        f"the treebank; its probability, with its labels, is {facts['probability']:.2f}. {scores(shown)}"
    )


def _given(shown: Exhibit) -> str:
    return (
        f"The tree that the treebank has for {shown.shown.facts['input']!r}: what the drawing above "
        f"should be."
    )


def _treebank(shown: Exhibit) -> AttentionTrace:
    """The given tree as weights of 0 and 1."""
    trace, heads = shown.shown.trace, shown.shown.facts["reference"]
    places = range(1, len(heads) + 1)  # 0 is the root
    best = tuple(tuple(place == head for place in places) for head in heads)
    weights = tuple(tuple(map(float, row)) for row in best)
    return replace(trace, kind="given", weights=weights, best=best)


def _question(shown: Exhibit) -> str:
    facts = shown.shown.facts
    support = " and ".join(repr(fact) for fact in facts["support"])
    num_known = shown.results.spec["training"]["questions"]
    return (
        f"bAbI, task 2, {num_known:,} training questions, each after at most 20 facts. Asked {facts['input']!r}, the model answers "
        f"{_verdict(shown)}; the facts that support the answer are {support}. "
        f"{scores(shown)}"
    )


def _review(shown: Exhibit) -> str:
    facts = shown.shown.facts
    return (
        f"Reviews of films (Pang and Lee 2004), 1,800 training reviews. The model predicts {_verdict(shown)}, "
        f"with probability {facts['probability']:.2f}. {scores(shown)}"
    )


def _image(shown: Exhibit) -> str:
    return (
        f"Synthetic images of shapes; no test caption occurs in the training set. The model writes "
        f"{_verdict(shown)}. {scores(shown)}"
    )


def _search(shown: Exhibit) -> str:
    num_kept = sum(each.finished for each in shown.shown.hypotheses)
    return (
        f"The search behind the first heat map: a beam of {num_kept} for "
        f"{shown.shown.facts['input']!r}. Its best output has probability "
        f"{shown.shown.facts['probability']:.2f}; it is {_verdict(shown)}."
    )


def _log(shown: Exhibit) -> str:
    num_updates = int(shown.shown.series[0].points[-1][0])
    return (
        f"The log of the run behind the first heat map, {num_updates:,} updates: loss on training "
        f"words, with label smoothing and dropout, and the share of 100 development words that free "
        f"decoding gets wrong."
    )


def _overlay(shown: Exhibit) -> str:
    assert shown.shown.image is not None
    return overlay(shown.shown.trace, shown.shown.image)


def _trace(shown: Exhibit) -> AttentionTrace:
    return shown.shown.trace


def _weights(shown: Exhibit) -> Table:
    return weights_table(shown.shown.trace)


def _map(heading: str, case: str) -> View:
    alt = f"Heat map: letters of an Icelandic word by sounds, {case} attention"
    return View(heading, alt, case, lambda shown: heatmap(_trace(shown)), _weights, _word)


def _heads(
    heading: str,
    case: str,
    trace: Callable[[Exhibit], AttentionTrace],
    caption: Callable[[Exhibit], str],
) -> View:
    return View(
        heading,
        f"Arcs between words: {heading.lower()}",
        case,
        lambda shown: arcs(trace(shown), title=heading),
        lambda shown: heads_table(trace(shown)),
        caption,
    )


GALLERY_VIEWS = {
    "view_softmax": _map("Softmax", "softmax"),
    "view_sigmoid": _map("Sigmoid", "sigmoid"),
    "view_segment": _map("Segments", "segment"),
    "view_arcs": _heads("Heads of words", "parses", _trace, _sentence),
    "view_gold": _heads("Heads in the treebank", "parses", _treebank, _given),
    "view_latent": _heads("Heads that nobody gave", "formulas", _trace, _formula),
    "view_chain": View(
        "Facts",
        "Facts of a story in rows, with a path through the facts that the model reads",
        "facts",
        lambda shown: chain(_trace(shown)),
        _weights,
        _question,
    ),
    "view_sentences": View(
        "Sentences",
        "Sentences of a review, with a bar for each sentence and shaded words",
        "reviews",
        lambda shown: sentences(_trace(shown)),
        _weights,
        _review,
    ),
    "view_overlay": View(
        "Image",
        "Image with one overlay for each word of its caption",
        "shapes",
        _overlay,
        _weights,
        _image,
    ),
    "view_beam_tree": View(
        "Search",
        "Tree of the hypotheses of a beam search",
        "softmax",
        lambda shown: beam_tree(
            shown.shown.hypotheses, title=f"Pronunciations of {shown.shown.facts['input']!r}"
        ),
        lambda shown: hypotheses_table(shown.shown.hypotheses),
        _search,
    ),
    "view_curves": View(
        "Curves",
        "Curves of the training loss and of validation errors over updates",
        "softmax",
        lambda shown: curves(shown.shown.series, title="Loss and mistakes", x_label="updates"),
        lambda shown: series_table(shown.shown.series),
        _log,
    ),
}


def _drawn(view: View) -> Callable[[], str]:
    return lambda: view.draw(exhibit(view.case))


def _captioned(view: View) -> Callable[[], str]:
    return lambda: view.caption(exhibit(view.case))


VIEWS: dict[str, Callable[[], str]] = {name: _drawn(each) for name, each in GALLERY_VIEWS.items()}
CAPTIONS: dict[str, Callable[[], str]] = {
    name: _captioned(each) for name, each in GALLERY_VIEWS.items()
}


def _views_page() -> str:
    sections = [
        Section(
            title=view.heading,
            text=view.caption(exhibit(view.case)),
            drawings=(view.draw(exhibit(view.case)),),
            tables=(view.table(exhibit(view.case)),),
        )
        for view in GALLERY_VIEWS.values()
    ]
    return page("Every view on one page", sections)


PAGES: dict[str, Callable[[], str]] = {"views": _views_page}
