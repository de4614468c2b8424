"""Diagnoses from a model's free-running outputs, compared with the references.

References: Ranzato et al. 2016 and Bengio et al. 2015 (exposure bias); Koehn and Knowles 2017, section
3.6 (length); Ott et al. 2018, section 5 (copies); Holtzman et al. 2020 (repetition).

No axes: outputs are texts and rows of tokens.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...attention import AttentionTrace
from ...data import Example
from ...metrics import word_error_rate
from ...tasks import (
    AbstractAnsweringTask,
    AbstractTask,
    Prediction,
)
from ...views import Series, curves, heatmap
from ._finding import Finding
from ._remedies import Remedies

LEAST_EXAMPLES = 10  # below this, fractions mean nothing
# Nine of ten outputs are the same text, a tenth more than among references: chance does not explain that.
SAME, SAME_BEYOND = 0.9, 0.1
GAP = 0.2  # a fifth of all tokens are lost between predicting after gold tokens and after predicted tokens
COPIES = 0.2  # fraction of outputs that copy their source, beyond the fraction among references
LOOPS = 0.1  # fraction of repetitive outputs, beyond the fraction among references
TURNS, LONGEST_LOOP = 4, 6  # the same one to six tokens, four times in a row
SHORT, LONG = 0.8, 1.25  # a fifth of all tokens missing, or a quarter too many
VERY_SHORT, VERY_LONG = 0.5, 2.0


class Written(NamedTuple):
    """Outputs next to references, as tokens."""

    sources: list[list[str]]
    references: list[list[str]]
    outputs: list[list[str]]
    traces: list[AttentionTrace | None]


def written(task: AbstractTask[Any], examples: Sequence[Example]) -> Written | None:
    """Predict the examples; returns None if they have no references to compare with."""
    if not isinstance(task, AbstractAnsweringTask) or len(examples) < LEAST_EXAMPLES:
        return None
    settings = replace(task.prediction, nbest=1, beam_size=1, trace=True)
    predictions: list[Prediction] = task.predict(examples, settings)
    return Written(
        [task.symbols(example) for example in examples],
        [task.output_symbols(task.reference(example)) for example in examples],
        [task.output_symbols(prediction.output) for prediction in predictions],
        [prediction.trace for prediction in predictions],
    )


def from_outputs(
    task: AbstractTask[Any], found: Written, forced_accuracy: float | None, remedies: Remedies
) -> Iterator[Finding]:
    """Diagnose the outputs; empty if they look healthy.

    Args:
        task: The task that wrote the outputs.
        found: Outputs and references.
        forced_accuracy: Token accuracy under teacher forcing, if it is known.
        remedies: The settings of the run that can help.
    """
    same = list(_same(task, found, remedies))
    yield from same
    if not task.is_forcible:
        return
    yield from _length(found, remedies)
    yield from _repetition(found, remedies)
    yield from _copies(found)
    # Texts have more than one correct wording: a different output is not necessarily an error.
    if forced_accuracy is not None and task.has_one_answer and not same:
        yield from _gap(found, forced_accuracy, remedies)


def _same(task: AbstractTask[Any], found: Written, remedies: Remedies) -> Iterator[Finding]:
    outputs, references = found.outputs, found.references
    what = "outputs"
    if task.output_kind == "labels":
        outputs, references = (
            [[tag] for row in rows for tag in row] for rows in (outputs, references)
        )
        what = "tags"
    (text, often), expected = _commonest(outputs), _commonest(references)[1]
    if often > SAME and often - expected > SAME_BEYOND:
        is_label = task.output_kind != "text"
        yield Finding(
            name="same output",
            severity="alarm",
            text=f"{often:.0%} of the {what} are {' '.join(text)!r}, compared with {expected:.0%} of "
            f"the references. The output of the model does not depend on its input.",
            cause="The model has learned only the frequency of labels."
            if is_label
            else "The decoder has learned only typical outputs, and ignores its source: training was "
            "too short, or attention provides no information.",
            remedy=remedies.faster(),
            drawing=_picture(found, 0),
            numbers={"share": often, "expected": expected},
        )


def _commonest(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], float]:
    text, count = Counter(map(tuple, rows)).most_common(1)[0]
    return text, count / len(rows)


def _length(found: Written, remedies: Remedies) -> Iterator[Finding]:
    ratio = _total(found.outputs) / max(1, _total(found.references))
    if SHORT <= ratio <= LONG:
        return
    is_short = ratio < SHORT
    yield Finding(
        name="outputs too short" if is_short else "outputs too long",
        severity="warning" if VERY_SHORT <= ratio <= VERY_LONG else "alarm",
        text=f"The outputs are {ratio:.2f} times the length of their references.",
        cause="A sum of log-probabilities favors short outputs, and large beams find them."
        if is_short
        else "The decoder misses the end of the output, and repeats itself.",
        remedy=remedies.longer() if is_short else remedies.fed(),
        drawing=_lengths(found),
        numbers={"ratio": ratio},
    )


def _repetition(found: Written, remedies: Remedies) -> Iterator[Finding]:
    share, expected = (
        sum(map(turns, rows)) / len(rows) for rows in (found.outputs, found.references)
    )
    if share - expected > LOOPS:
        yield Finding(
            name="repetition",
            severity="warning",
            text=f"{share:.0%} of the outputs repeat a phrase {TURNS} times or more, compared with "
            f"{expected:.0%} of the references.",
            cause="Each repetition makes the next one more probable, and the decoder has no memory "
            "of the covered source.",
            remedy=remedies.fed(),
            drawing=_picture(found, [turns(row) for row in found.outputs].index(True)),
            numbers={"share": share, "expected": expected},
        )


def turns(symbols: Sequence[str]) -> bool:
    """Return whether one to six tokens repeat four times in a row.

    Args:
        symbols: The tokens of an output.

    Returns:
        True for an output that loops.

    Examples:
        >>> turns("abcabcabcabc"), turns("banana")
        (True, False)
    """
    for size in range(1, LONGEST_LOOP + 1):
        alike = 0
        for place in range(size, len(symbols)):
            alike = alike + 1 if symbols[place] == symbols[place - size] else 0
            if alike == size * (TURNS - 1):
                return True
    return False


def _copies(found: Written) -> Iterator[Finding]:
    share, expected = (
        sum(map(list.__eq__, found.sources, rows)) / len(rows)
        for rows in (found.outputs, found.references)
    )
    if share - expected > COPIES:
        yield Finding(
            name="copied source",
            severity="warning",
            text=f"{share:.0%} of the outputs are copies of their source, compared with "
            f"{expected:.0%} of the references.",
            cause="Training examples whose target equals their source teach the model to copy; a few "
            "percent are enough.",
            remedy="remove lines with equal source and target from the training file; foveal fit "
            "prints their number",
            drawing=_picture(
                found, list(map(list.__eq__, found.sources, found.outputs)).index(True)
            ),
            numbers={"share": share, "expected": expected},
        )


def _gap(found: Written, forced_accuracy: float, remedies: Remedies) -> Iterator[Finding]:
    pairs = [pair for pair in zip(found.references, found.outputs, strict=True) if pair[0]]
    if not pairs:
        return
    rows = [[" ".join(map(_joined, row)) for row in side] for side in zip(*pairs, strict=True)]
    free = max(0.0, 1 - word_error_rate(*rows).value / 100)
    if forced_accuracy - free > GAP:
        yield Finding(
            name="exposure bias",
            severity="warning",
            text=f"With the correct prefix, {forced_accuracy:.0%} of the predicted tokens are "
            f"correct; with its own prefix, {free:.0%}. One error leads to the next.",
            cause="In training, the decoder reads only correct prefixes (teacher forcing), so it has "
            "not learned to continue after its own errors.",
            remedy=remedies.scheduled_sampling(),
            drawing=_lengths(found),
            numbers={"forced": forced_accuracy, "free": free},
        )


def _joined(symbol: str) -> str:
    """Join a token into one word, for a metric that splits on words."""
    return "".join(f"u{ord(character):x}" for character in symbol) or "u"


def _total(rows: Sequence[Sequence[str]]) -> int:
    return sum(map(len, rows))


def _picture(found: Written, example: int) -> str:
    """Draw the attention of one output; empty without attention."""
    trace = found.traces[example]
    return "" if trace is None or not trace.targets else heatmap(trace)


def _lengths(found: Written) -> str:
    order = sorted(range(len(found.sources)), key=lambda n: len(found.references[n]))
    series = [
        Series(name=name, points=tuple((at, len(rows[n])) for at, n in enumerate(order)))
        for name, rows in (("reference", found.references), ("output", found.outputs))
    ]
    return curves(series, title="Lengths", x_label="examples, by length", y_label="symbols")
