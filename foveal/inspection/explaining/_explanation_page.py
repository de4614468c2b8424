"""The page of one answer: the output, its confidence, the attention, and the effect of erasing each position."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from ...attention import AttentionTrace
from ...tasks.explaining._explanation import Explanation
from ...views import Section, beam_tree, heatmap, hypotheses_table, page, sentences, weights_table
from ...views._drawing import drawing, drawing_table
from ...views._tables import Table
from ...views._text import bounded, number
from ._long import LONG, MOST_WORDS, STRONGEST, in_sentences, is_long, strongest_tables
from ._mass import mass, mass_table, symbol_name

MOST_HYPOTHESES = 24  # in the drawing of a search: the best and the last pruned ones are enough
UNCHANGED = 1e-5  # a change below this is rounding
MOST_PLACES = 200  # in the tables of erased positions


def explanation_page(
    explanation: Explanation,
    change: Float[np.ndarray, "S T"] | None = None,
    units: Sequence[str] = (),
) -> str:
    """Render a page that explains one answer.

    Args:
        explanation: The result of `explain`.
        change: The change from erasing each position, for every step, as `erased` returns it. It belongs to
            the model's own attention, and is left out if attention was forced.
        units: Drawings of units and gates over the text, as `colored_text` returns them.

    Returns:
        The HTML of the page.
    """
    sections = [_answer(explanation), _steps(explanation)]
    looked = explanation.others or (() if explanation.trace is None else (explanation.trace,))
    if looked:
        sections.append(_looking(explanation, looked))
    if change is not None and not any(step.forced for step in explanation.steps):
        sections.append(_erasing(explanation, change))
    if explanation.tree:
        sections.append(_tree(explanation))
    if units:
        text = "The activation of a unit, or the value of a gate, after each token."
        sections.append(Section(title="Units and gates", text=text, drawings=tuple(units)))
    return page(_title(explanation), sections)


def _title(explanation: Explanation) -> str:
    if explanation.task == "language_modeling":
        return bounded(explanation.input)
    return f"{bounded(explanation.input)} → {bounded(explanation.output)}"


def _answer(explanation: Explanation) -> Section:
    """Build the section with the answer and the n-best list."""
    if not explanation.nbest:
        mean = explanation.confidence
        text = (
            f"The log-probability of the text is {explanation.score:.2f}; the geometric mean of the "
            f"token probabilities is {number(mean)}."
        )
        return Section(title="Probability of the text", text=text)
    rows = tuple(
        (str(rank), bounded(each.output), number(each.probability), f"{each.score:.3f}")
        for rank, each in enumerate(explanation.nbest, 1)
    )
    forced = [n for n, step in enumerate(explanation.steps) if step.forced]
    said = (
        f"Confidence {number(explanation.confidence)}: the calibrated probability that the output "
        f"is correct."
    )
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
        "transduction": "Probability of each token given the previous tokens, before calibration.",
        "captioning": "Probability of each token given the previous tokens, before calibration.",
        "classification": "Probability of each label, before calibration.",
        "pair_classification": "Probability of each label, before calibration.",
        "visual_question_answering": "Probability of each answer, before calibration.",
        "image_classification": "Probability of each label, before calibration.",
        "video_classification": "Probability of each label, before calibration.",
        "tagging": "Marginal probability of the tag of each word.",
        "parsing": "Marginal probability of the head and the label of each word.",
    }.get(explanation.task, "Probability of each token of the text given the previous tokens.")
    # A tag or an arc needs its word to be readable.
    names = explanation.sources if explanation.task in ("tagging", "parsing") else None
    return Section(
        title="Probability of each step",
        text=text,
        drawings=(mass(explanation.steps, names=names),),
        tables=(mass_table(explanation.steps, names=names),),
    )


def _looking(explanation: Explanation, looked: Sequence[AttentionTrace]) -> Section:
    drawings, tables = list[str](), list[Table]()
    for index, trace in enumerate(looked, 1):
        which = f" {index}" if len(looked) > 1 else ""
        if is_long(trace):
            drawings.append(sentences(in_sentences(trace)))
            tables += strongest_tables(trace, caption=f"Weights{which}")
        else:
            drawings.append(drawing(trace, image=explanation.picture))
            table = drawing_table(trace)
            tables.append(replace(table, caption=f"{table.caption}{which}"))
    text = f"The strongest {MOST_WORDS} words." if _is_cut(looked) else ""
    return Section(title="Attention", text=text, drawings=tuple(drawings), tables=tuple(tables))


def _is_cut(looked: Sequence[AttentionTrace]) -> bool:
    """Return whether a drawing leaves out some sentences."""
    return any(
        is_long(each) and sum(map(bool, each.sources)) * len(each.targets) > MOST_WORDS
        for each in looked
    )


def _erasing(explanation: Explanation, change: Float[np.ndarray, "S T"]) -> Section:
    """Compare the positions that the answer depends on with the attended ones."""
    probabilities = np.array([step.probability for step in explanation.steps])
    # The fraction of each token's probability that is lost; zero where it rose.
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
    text = (
        "Attention weights are not an explanation. Here each input position was replaced by the "
        "unknown token in turn, and the same output was scored again: the figure shows the "
        "probability that each output token loses. If the dark cells are the same as in the "
        "attention above, the output depends on the attended positions. An unknown token is not the "
        "same as a missing token, and may be rare in training."
    )
    title = "Probability lost when a position is erased"
    if is_long(drawn):
        drawings = (sentences(in_sentences(drawn), title=title),)
        tables = _places_tables(explanation.sources, change, attended)
    else:
        drawings = (heatmap(drawn, title=title, verb="loses without", unit="probability lost"),)
        tables = (
            *_places_tables(explanation.sources, change, attended),
            replace(weights_table(drawn), caption="Probability lost"),
        )
    return Section(
        title="Influence of each input position", text=text, drawings=drawings, tables=tables
    )


def _places_tables(
    sources: Sequence[str],
    change: Float[np.ndarray, "S T"],
    attended: Float[np.ndarray, " S"] | None,
) -> tuple[Table, ...]:
    """List the change from erasing each position, in order. A long input lists the largest changes first, without
    positions that change nothing.
    """
    total, size = change.sum(1), np.abs(change).max(1, initial=0.0)
    order = list(range(len(sources)))
    if len(sources) > LONG:
        used = [place for place in order if size[place] >= UNCHANGED]
        order = sorted(used, key=lambda place: -abs(total[place]))[:MOST_PLACES]
    rows = list[tuple[str, ...]]()
    for place in order:
        given = () if attended is None else (f"{attended[place]:.2f}",)
        said = f"{total[place]:+.2f}"
        if size[place] < UNCHANGED:
            said = "nothing: the token is unknown to the model, or has no influence"
        rows.append((bounded(sources[place]), *given, said))
    columns = ("place", *(() if attended is None else ("attention, all steps",)))
    whole = Table(
        caption="Attention to each position, and the effect of erasing it",
        columns=(*columns, "change of the output's log-probability"),
        rows=tuple(rows),
    )
    if len(sources) <= LONG:
        return (whole,)
    first = replace(
        whole,
        caption=f"The {STRONGEST} positions whose erasure changes the output most, of {len(sources):,}",
        rows=whole.rows[:STRONGEST],
    )
    rest = replace(
        whole,
        caption="Other positions whose erasure changes the output",
        rows=whole.rows[STRONGEST:],
        folded=True,
    )
    return (first, rest) if rest.rows else (first,)


def _tree(explanation: Explanation) -> Section:
    hypotheses = sorted(explanation.hypotheses, key=lambda each: (not each.finished, -each.score))[
        :MOST_HYPOTHESES
    ]
    return Section(
        title="Beam search",
        text="All prefixes in the beam; a cross marks a pruned prefix.",
        drawings=(beam_tree(hypotheses),),
        tables=(hypotheses_table(hypotheses),),
    )
