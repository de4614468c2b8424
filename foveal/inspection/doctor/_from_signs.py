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
# sum of about a hundred log-probabilities by less than a tenth of this tolerance, in nats.
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
        f"Over {steps:.0f} steps of the {part}, the gradient changes by a factor of {factor:.3g}, or "
        f"{rate:.3g} per step."
    )
    if factor > GROWN:
        yield Finding(
            name="exploding gradient",
            severity="alarm",
            text=f"{measured} A small change at the first step becomes a large change at the last step.",
            cause="The Jacobians of the recurrence have norms above 1; their product grows with the "
            "number of steps.",
            remedy=remedies.exploding(part),
            drawing=_fading(readings, part),
            numbers=numbers,
        )
        return
    is_gated = number(readings, f"gradient_gated/{part}") > 0
    is_bridged = number(readings, f"gradient_bridged/{part}") > 0
    why = "An Elman cell cannot keep information selectively; a gated cell can."
    if is_bridged:
        why = "Attention reads every position directly, so the gradient also has a short path."
    elif is_gated:
        why = "A gated cell forgets irrelevant information, so this may be intended."
    yield Finding(
        name="vanishing gradient",
        severity="note" if is_gated or is_bridged else "alarm",
        text=f"{measured} Early positions have almost no influence on the weights. {why}",
        cause="The Jacobians of the recurrence have norms below 1; their product vanishes with the "
        "number of steps.",
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
            text=f"Saturated gates (below 0.05 or above 0.95): {_listed(worst)}. They barely depend "
            f"on the input, and barely learn.",
            cause="The weights have grown large, usually because of too large updates.",
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
            text=f"Units with a constant output: {_listed(worst)}. They carry no information.",
            cause="The units are saturated at -1 or 1 because of too large updates, or all inputs "
            "are equal, or the task needs far fewer units.",
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
    cause = "The score function returns the same scores for every query: it has not been trained, or its gradient "
    if entropy > UNIFORM:
        severity, meaning = _of_even_weights(readings)
        yield Finding(
            name="uniform attention",
            severity=severity,
            text=f"Attention is uniform over all positions: its entropy is {entropy:.1%} of the "
            f"maximum. {meaning}",
            cause=f"{cause}does not reach it.",
            remedy=remedies.attention(),
            numbers={"entropy": entropy},
        )
    elif stuck > STUCK:
        ends = [name for name in ("first", "last") if number(readings, f"attention/{name}") > STUCK]
        where = f"the {ends[0]} position" if ends else "one position"
        yield Finding(
            name="stuck attention",
            severity="alarm",
            text=f"Every output step reads {where}, with {stuck:.0%} of the attention weight. The "
            f"decoder thus gets the same vector at every step.",
            cause=f"{cause}vanished when the weights saturated at 0 or 1.",
            remedy=remedies.attention(),
            numbers={"stuck": stuck, "entropy": entropy},
        )


def _of_even_weights(readings: Readings) -> tuple[Severity, str]:
    """Return the severity of uniform attention."""
    if "attention/stuck" not in readings:  # no example has several queries: a pool
        return (
            "note",
            "The context is a mean over all positions, which may be enough for this task.",
        )
    if abs(number(readings, "attention/total") - 1) > EXCLUSIVE:
        return "warning", "Every step reads every position, with small differences in weight."
    return (
        "alarm",
        "Every step reads the same mean of the source, so attention does not select positions.",
    )


def _padding(readings: Readings) -> Iterator[Finding]:
    names = ("holds", "more", "marked")
    holds, more, marked = (number(readings, f"padding/{name}", 0.0) for name in names)
    attended = number(readings, "attention/padding", 0.0)
    numbers = {"holds": holds, "more": more, "marked": marked, "attended": attended}
    if marked > 0:
        yield Finding(
            name="leaked padding",
            severity="alarm",
            text=f"{marked:.1%} of the positions that the mask marks as valid contain the padding "
            f"token: the model reads them as text.",
            cause="The batch was padded before its mask was computed, or the mask belongs to another batch.",
            remedy="compute the mask from the lengths before padding: masking.mask_from_lengths",
            drawing=_changes(numbers),
            numbers=numbers,
        )
    elif holds > PADDING_HOLDS:
        yield Finding(
            name="no mask",
            severity="alarm",
            text=f"Another token in the padding changes the log-probability of an output by "
            f"{holds:.3g}: the model reads padding as text, so an output depends on the other "
            f"examples of its batch.",
            cause="A part of the model does not get the mask.",
            remedy="pass the mask to every encoder, attention and pooling layer; foveal.testing has "
            "a test for this",
            drawing=_changes(numbers),
            numbers=numbers,
        )
    elif more > PADDING_COUNTS or attended > PADDING_READ:
        yield Finding(
            name="leaked padding",
            severity="alarm",
            text=f"Three more padding positions change the log-probability of an output by "
            f"{more:.3g}, and attention gives padding a weight of up to {attended:.3g}: the "
            f"length of the longest text in a batch changes the other outputs.",
            cause="The padding is set to 0, but a softmax, a mean or a norm over all positions still "
            "counts it.",
            remedy="pass the mask to every attention and pooling layer; foveal.testing has a test for this",
            drawing=_changes(numbers),
            numbers=numbers,
        )


def _changes(numbers: dict[str, float]) -> str:
    """Measure log p for an unchanged batch, with another token in the padding, and with more padding."""
    points = ((0, 0.0), (1, numbers["holds"]), (2, numbers["more"]))
    return curves(
        [Series(name="maximum change of the log-probability", points=points)],
        title="Influence of padding",
        x_label="0: unchanged, 1: another token in the padding, 2: three more padding positions",
    )
