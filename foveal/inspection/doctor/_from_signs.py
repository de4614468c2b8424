"""Diagnoses from vital signs. This file defines every threshold, with its reason.

No axes: a reading is a number with a name, as `vital_signs` returns it.
"""

import math
from collections.abc import Iterator

from ...views import Series, curves
from ._finding import Finding, Severity
from ._readings import Readings, number
from ._remedies import Remedies

# A gradient that changes by two orders of magnitude over the sequence: the far end then contributes under a
# hundredth of the near end, less than gradients differ from batch to batch (or the reverse). The lecture's
# examples, 0.9 and 1.1 over 50 steps, are 0.005 and 117.
FADED, GROWN = 0.01, 100.0
# Nine of ten gates pass less than a fifth of the steepest slope: the cell's gates are constants.
MOST_SATURATED = 0.9
MOST_DEAD = 0.5  # more dead units than live ones
# Attention whose information, log(positions) - H, is under a hundredth of its maximum.
UNIFORM = 0.99
EXCLUSIVE = 0.01  # the weights of mutually exclusive positions sum to 1, up to rounding
STUCK = 0.9  # nine tenths of all weight, over all steps, on one position
# Other tokens in the same positions give bit-identical sums. More positions give other sums: float32 rounds a
# sum of some hundred log-probabilities by less than a tenth of this tolerance, in nats.
PADDING_HOLDS, PADDING_COUNTS = 1e-5, 1e-3
PADDING_READ = 1e-6  # weight of a padded position: exactly 0 with any mask


def from_signs(readings: Readings, remedies: Remedies) -> Iterator[Finding]:
    """Diagnose the vital signs; empty if they look healthy."""
    for path in readings:
        kind, _, part = path.partition("/")
        if kind == "gradient_factor":
            yield from _gradient(readings, part, remedies)
    yield from _gates(readings, remedies)
    yield from _units(readings, remedies)
    yield from _attention(readings, remedies)
    yield from _padding(readings)


def _gradient(readings: Readings, part: str, remedies: Remedies) -> Iterator[Finding]:
    factor, rate = (number(readings, f"gradient_{name}/{part}") for name in ("factor", "rate"))
    steps = number(readings, f"gradient_steps/{part}")
    if FADED <= factor <= GROWN:
        return
    numbers = {"rate": rate, "factor": factor, "steps": steps}
    measured = (
        f"Over {steps:.0f} steps of the {part} the gradient changes by a factor of {factor:.3g}, "
        f"that is {rate:.3g} for each step."
    )
    if factor > GROWN:
        yield Finding(
            name="exploding gradient",
            severity="alarm",
            text=f"{measured} A small change at the beginning becomes a large one at the end.",
            cause="The Jacobians of the recurrence stretch what they multiply; their product grows "
            "with the number of steps.",
            remedy=remedies.exploding(part),
            drawing=_fading(readings, part),
            numbers=numbers,
        )
        return
    is_gated = number(readings, f"gradient_gated/{part}") > 0
    is_bridged = number(readings, f"gradient_bridged/{part}") > 0
    why = "An Elman cell cannot choose to remember; a gated one can."
    if is_bridged:
        why = "Attention reads every place directly, so the model has a way round this."
    elif is_gated:
        why = "A gated cell forgets where nothing is to be remembered, so this may be as it should."
    yield Finding(
        name="vanishing gradient",
        severity="note" if is_gated or is_bridged else "alarm",
        text=f"{measured} What stands further back hardly changes the weights. {why}",
        cause="The Jacobians of the recurrence shrink what they multiply; their product fades with "
        "the number of steps.",
        remedy=remedies.vanishing(part, gated=is_gated),
        drawing=_fading(readings, part),
        numbers=numbers,
    )


def _fading(readings: Readings, part: str) -> str:
    norms = readings[f"gradient_norms/{part}"]
    assert isinstance(norms, list)
    points = tuple((distance, math.log10(norm)) for distance, norm in enumerate(norms))
    return curves(
        [Series(name=part, points=points)],
        title=f"Gradient through the {part}",
        x_label="steps back from the end",
        y_label="log10 of the norm",
    )


def _below(readings: Readings, group: str) -> dict[str, float]:
    found = {path.partition("/")[2]: path for path in readings if path.startswith(f"{group}/")}
    return {part: number(readings, path) for part, path in found.items()}


def _gates(readings: Readings, remedies: Remedies) -> Iterator[Finding]:
    shares = _below(readings, "gates_saturated")
    worst = {part: share for part, share in shares.items() if share > MOST_SATURATED}
    if worst:
        yield Finding(
            name="gate saturation",
            severity="warning",
            text=f"Gates below 0.05 or above 0.95: {_listed(worst)}. They hardly depend on what is "
            f"read, and hardly learn.",
            cause="Weights have grown large, most often from too large updates.",
            remedy=remedies.slower(),
            drawing=_shares(shares, "Saturated gates"),
            numbers=worst,
        )


def _units(readings: Readings, remedies: Remedies) -> Iterator[Finding]:
    shares = _below(readings, "units_dead")
    worst = {part: share for part, share in shares.items() if share > MOST_DEAD}
    if worst:
        yield Finding(
            name="dead units",
            severity="warning",
            text=f"Units whose output is the same wherever one looks: {_listed(worst)}. They carry "
            f"nothing.",
            cause="Units pushed to -1 or 1 and kept there by too large updates, inputs that are "
            "all alike, or far more units than the task needs.",
            remedy=f"{remedies.slower()}; or fewer units: {remedies.narrower(next(iter(worst)))}",
            drawing=_shares(shares, "Dead units"),
            numbers=worst,
        )


def _listed(shares: dict[str, float]) -> str:
    return ", ".join(f"{share:.0%} of the {part}" for part, share in shares.items())


def _shares(shares: dict[str, float], title: str) -> str:
    """Return one point for each part of the model; a drawing has room for eight."""
    some = list(shares.items())[:8]
    series = [
        Series(name=part, points=((place, share),)) for place, (part, share) in enumerate(some)
    ]
    return curves(series, title=title, x_label="part of the model", y_label="share")


def _attention(readings: Readings, remedies: Remedies) -> Iterator[Finding]:
    entropy, stuck = number(readings, "attention/entropy"), number(readings, "attention/stuck")
    cause = (
        "The score function gives every query the same answer: it has not learnt, or its gradient "
    )
    if entropy > UNIFORM:
        severity, meaning = _of_even_weights(readings)
        yield Finding(
            name="uniform attention",
            severity=severity,
            text=f"Attention spreads evenly over all places: its entropy is {entropy:.1%} of the "
            f"largest possible. {meaning}",
            cause=f"{cause}does not reach it.",
            remedy=remedies.attention(),
            numbers={"entropy": entropy},
        )
    elif stuck > STUCK:
        ends = [name for name in ("first", "last") if number(readings, f"attention/{name}") > STUCK]
        where = f"the {ends[0]} place" if ends else "one place"
        yield Finding(
            name="stuck attention",
            severity="alarm",
            text=f"Every step of an output reads {where}: {stuck:.0%} of all weight lies there. "
            f"The decoder is back to one vector for the whole source.",
            cause=f"{cause}was lost when the weights became 0 or 1.",
            remedy=remedies.attention(),
            numbers={"stuck": stuck, "entropy": entropy},
        )


def _of_even_weights(readings: Readings) -> tuple[Severity, str]:
    """Return the severity of uniform attention."""
    if "attention/stuck" not in readings:  # no example has several queries: a pool
        return "note", "It is a mean over the places, which may be all the task needs."
    if abs(number(readings, "attention/total") - 1) > EXCLUSIVE:
        return "warning", "Every place is read at every step, some a little more than others."
    return "alarm", "Every step reads the same mean of the source, so nothing says where to look."


def _padding(readings: Readings) -> Iterator[Finding]:
    names = ("holds", "more", "marked")
    holds, more, marked = (number(readings, f"padding/{name}", 0.0) for name in names)
    attended = number(readings, "attention/padding", 0.0)
    numbers = {"holds": holds, "more": more, "marked": marked, "attended": attended}
    if marked > 0:
        yield Finding(
            name="leaked padding",
            severity="alarm",
            text=f"{marked:.1%} of the places that the mask calls real hold the symbol of padding: "
            f"the model reads it, and learns from it, as if it were text.",
            cause="The batch was padded before its mask was made, or the mask is that of another.",
            remedy="make the mask from the lengths before padding: masking.mask_from_lengths",
            drawing=_changes(numbers),
            numbers=numbers,
        )
    elif holds > PADDING_HOLDS:
        yield Finding(
            name="no mask",
            severity="alarm",
            text=f"Another symbol in the padding changes log p of an answer by {holds:.3g}: padding "
            f"is read as text, so an answer depends on what else is in its batch.",
            cause="A part of the model is called without the mask.",
            remedy="hand the mask on to every encoder, attention and pool; "
            "foveal.testing has the law as a test",
            drawing=_changes(numbers),
            numbers=numbers,
        )
    elif more > PADDING_COUNTS or attended > PADDING_READ:
        yield Finding(
            name="leaked padding",
            severity="alarm",
            text=f"Three more places of padding change log p of an answer by {more:.3g}, and "
            f"attention gives places that are not there a weight of up to {attended:.3g}: how long "
            f"the longest text of a batch is changes the answers to the others.",
            cause="Padding is made 0 somewhere, but still counted: by a softmax, a mean or a norm "
            "over all places.",
            remedy="hand the mask on to every attention and pool; foveal.testing has the law as "
            "a test",
            drawing=_changes(numbers),
            numbers=numbers,
        )


def _changes(numbers: dict[str, float]) -> str:
    """Measure log p for an unchanged batch, with another token in the padding, and with more padding."""
    points = ((0, 0.0), (1, numbers["holds"]), (2, numbers["more"]))
    return curves(
        [Series(name="largest change of log p", points=points)],
        title="What padding changes",
        x_label="0: as it is, 1: another symbol in the padding, 2: three more places",
    )
