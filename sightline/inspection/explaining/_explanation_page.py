"""The page of one answer: what was said, how sure, where the model looked, and whether that matters."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from ...attention import AttentionTrace
from ..views import (
    Section,
    Table,
    beam_tree,
    bounded,
    drawing,
    drawing_table,
    heatmap,
    hypotheses_table,
    number,
    page,
    weights_table,
)
from ._explanation import Explanation
from ._mass import mass, mass_table, symbol_name

MOST_HYPOTHESES = 24  # in the drawing of a search; the best and the last dropped say enough
UNCHANGED = 1e-5  # a change that is none, up to rounding
MOST_PLACES = 200  # in the table of erased places


def explanation_page(
    explanation: Explanation, change: Float[np.ndarray, "S T"] | None = None
) -> str:
    """A page that explains one answer.

    Args:
        explanation: what `explain` gave.
        change: what erasing each place changes, from `erased`, for every step; it is that of the
            model's own attention, and is left out where attention was forced.
    """
    sections = [_answer(explanation), _steps(explanation)]
    looked = explanation.others or (() if explanation.trace is None else (explanation.trace,))
    if looked:
        sections.append(
            Section(
                title="Where it looked",
                drawings=tuple(drawing(each, image=explanation.picture) for each in looked),
                tables=tuple(map(drawing_table, looked)),
            )
        )
    if change is not None and not any(step.forced for step in explanation.steps):
        sections.append(_erasing(explanation, change))
    if explanation.tree:
        sections.append(_tree(explanation))
    return page(_title(explanation), sections)


def _title(explanation: Explanation) -> str:
    if explanation.task == "language_modelling":
        return bounded(explanation.input)
    return f"{bounded(explanation.input)} → {bounded(explanation.output)}"


def _answer(explanation: Explanation) -> Section:
    """The answer and the n-best list."""
    if not explanation.nbest:
        mean = explanation.confidence
        text = (
            f"The log-probability of the text is {explanation.score:.2f}; "
            f"the mean probability of a symbol (geometric) is {number(mean)}."
        )
        return Section(title="How likely the text is", text=text)
    rows = tuple(
        (str(rank), bounded(each.output), number(each.probability), f"{each.score:.3f}")
        for rank, each in enumerate(explanation.nbest, 1)
    )
    forced = [n for n, step in enumerate(explanation.steps) if step.forced]
    said = f"Confidence {number(explanation.confidence)}: the calibrated probability that the output is right."
    if forced:
        said += f" Attention was forced at {len(forced)} of {len(explanation.steps)} steps."
    table = Table(
        caption="The most probable outputs",
        columns=("rank", "output", "probability (calibrated)", "score"),
        rows=rows,
    )
    return Section(title="Answer", text=said, tables=(table,))


def _steps(explanation: Explanation) -> Section:
    text = {
        "transduction": "Each symbol given those before it, in the model's own probabilities.",
        "captioning": "Each symbol given those before it, in the model's own probabilities.",
        "classification": "Every label, in the model's own probabilities.",
        "pair_classification": "Every label, in the model's own probabilities.",
        "visual_question_answering": "Every answer, in the model's own probabilities.",
        "video_classification": "Every label, in the model's own probabilities.",
        "tagging": "The tag of each word by itself, whatever the others are.",
    }.get(explanation.task, "Each symbol of the text given those before it.")
    # A tag says little without its word.
    names = explanation.sources if explanation.task == "tagging" else None
    return Section(
        title="How sure it was of each step",
        text=text,
        drawings=(mass(explanation.steps, names=names),),
        tables=(mass_table(explanation.steps, names=names),),
    )


def _erasing(explanation: Explanation, change: Float[np.ndarray, "S T"]) -> Section:
    """What the answer depends on, beside what was attended to."""
    probabilities = np.array([step.probability for step in explanation.steps])
    # How much of the probability of each symbol is gone; nothing where it rose.
    lost = np.clip(probabilities * (1 - np.exp(np.minimum(change, 0.0))), 0.0, 1.0).T
    drawn = AttentionTrace(
        kind="erased",
        sources=explanation.sources,
        targets=tuple(symbol_name(step.token) for step in explanation.steps),
        weights=tuple(map(tuple, lost.tolist())),
    )
    weights = [step.weights for step in explanation.steps]
    attended = (
        np.array([row for row in weights if row is not None]).sum(0)
        if None not in weights
        else None
    )
    rows = list[tuple[str, ...]]()
    for place, source in enumerate(explanation.sources[:MOST_PLACES]):
        given = () if attended is None else (f"{attended[place]:.2f}",)
        said = f"{change[place].sum():+.2f}"
        if np.abs(change[place]).max(initial=0.0) < UNCHANGED:
            said = "nothing: the model does not know the symbol, or does not use it"
        rows.append((bounded(source), *given, said))
    columns = ("place", *(() if attended is None else ("attention, all steps",)))
    table = Table(
        caption="Each place: attention to it, and what erasing it changes",
        columns=(*columns, "change of the output's log-probability"),
        rows=tuple(rows),
    )
    text = (
        "Weights alone are no explanation. Here each place was made unknown in turn, and the same "
        "output scored again: the drawing shows how much probability each symbol then loses. Where "
        "its ink is that of the weights above, the model needs what it looked at. An unknown symbol is "
        "not the same as none, and the model may seldom have met one."
    )
    return Section(
        title="What the answer needs",
        text=text,
        drawings=(
            heatmap(
                drawn,
                title="Probability lost when a place is erased",
                verb="loses without",
                unit="probability lost",
            ),
        ),
        tables=(table, replace(weights_table(drawn), caption="Probability lost")),
    )


def _tree(explanation: Explanation) -> Section:
    hypotheses = sorted(explanation.hypotheses, key=lambda each: (not each.finished, -each.score))[
        :MOST_HYPOTHESES
    ]
    return Section(
        title="How the search went",
        text="Every beginning that the beam kept; a cross marks where it was dropped for better ones.",
        drawings=(beam_tree(hypotheses),),
        tables=(hypotheses_table(hypotheses),),
    )
