"""Diagnoses from the curves of a run: loss, gradient norm and validation scores.

The loss is compared with the loss of the first step, the loss of guessing. This needs no unit of the task and
no target loss. Means are over a twentieth of the run.
"""

from collections.abc import Iterator

import numpy as np

from ...views import Series, curves
from ._finding import Finding
from ._history import LEAST_STEPS, History
from ._remedies import Remedies

# The mean loss over a twentieth of the run is a fifth above the largest loss of guessing in a single batch.
ABOVE_GUESSING = 1.2
LOST = 0.5  # fraction of the progress in the loss that is lost again
LEARNT_NOTHING = (
    0.95  # fraction of the first loss left at the end: within the noise between batches
)
STILL = 0.01  # fraction of the first loss: the last half of the run improved by less
ALWAYS_CLIPPED = 0.9  # fraction of the steps in the last half
# A score that fell by a tenth of its total gain, and by more than its usual fluctuation.
WORSE = 0.1
LEAST_SCORES = 6  # two means of three
MEMORIZED = (
    0.5  # fraction of the first loss left in training, while unseen examples cost more than it
)


def from_curves(history: History, remedies: Remedies) -> Iterator[Finding]:
    """Diagnose the curves of a run; empty if they look healthy."""
    yield from alarms_of_curves(history, remedies)
    if _has_failed(history) or len(history.losses) < LEAST_STEPS:
        return
    yield from _over_fitting(history, remedies)
    yield from _plateau(history, history.windows(), remedies)
    yield from _clipping(history, remedies)


def alarms_of_curves(history: History, remedies: Remedies) -> Iterator[Finding]:
    """Return only the alarms. A running training reports nothing else, and drawing a hundred thousand steps would take
    longer than many steps do.
    """
    if _has_failed(history):
        yield _diverged(history, remedies, f"The run ended with an error: {history.failure}")
        return
    if len(history.losses) < LEAST_STEPS:
        return
    windows = history.windows()
    rising = _rising(history, windows, remedies)
    if rising:
        yield _diverged(history, remedies, rising)
    elif windows[-1] > LEARNT_NOTHING * max(history.first_loss, windows[0]) and (
        history.progress > 0.5
    ):
        yield _learnt_nothing(history, float(windows[-1]), remedies)


def _has_failed(history: History) -> bool:
    return "finite" in history.failure


def from_unseen(history: History, unseen_loss: float, remedies: Remedies) -> Iterator[Finding]:
    """Detect overfitting that no curve shows: on unseen examples, a model that memorized its training set has a
    higher loss than a model that guesses.
    """
    if len(history.losses) < LEAST_STEPS:
        return
    first, last = history.first_loss, float(history.windows()[-1])
    if last < MEMORIZED * first and unseen_loss > history.guessing:
        yield _over_fitted(
            history,
            "alarm",
            f"The training loss fell from {first:.2f} to {last:.2f}; the validation loss is "
            f"{unseen_loss:.2f}, worse than an untrained model.",
            remedies,
            {"training_loss": last, "unseen_loss": unseen_loss, "first_loss": first},
        )


def _rising(history: History, windows: np.ndarray, remedies: Remedies) -> str:
    """Describe how the loss rises; empty if it does not."""
    first, peak, low, last = history.first_loss, windows.max(), windows.min(), windows[-1]
    if peak > ABOVE_GUESSING * history.guessing:
        return (
            f"The mean loss rose to {peak:.3g}, above the {first:.3g} of the first step: the model "
            f"was temporarily worse than an untrained one."
        )
    # With scheduled sampling, the task becomes harder in the course of a run.
    has_own_inputs = remedies.training.scheduled_sampling > 0
    learnt = first - low
    if not has_own_inputs and learnt > 0.1 * first and last - low > LOST * learnt:
        return (
            f"The loss fell from {first:.3g} to {low:.3g} and then rose to {last:.3g}: most of the "
            f"progress is lost."
        )
    return ""


def _diverged(history: History, remedies: Remedies, text: str) -> Finding:
    norms = np.array(history.norms)
    finite = norms[np.isfinite(norms)]
    spikes = float(finite.max() / max(np.median(finite), 1e-30)) if len(finite) else 0.0
    return Finding(
        name="learning rate too high",
        severity="alarm",
        text=text,
        cause=f"Updates overshoot: with a learning rate of up to {history.highest_rate:g}, steps are "
        f"too long for the local gradient. The largest gradient norm was {spikes:.3g} times the "
        f"median.",
        remedy=remedies.warmer(10.0),
        drawing=_losses(history),
        numbers={"learning_rate": history.highest_rate, "norm_spike": spikes},
    )


def _learnt_nothing(history: History, last: float, remedies: Remedies) -> Finding:
    return Finding(
        name="stagnation",
        severity="alarm",
        text=f"The loss went from {history.first_loss:.3g} to {last:.3g}: the model learned almost nothing.",
        cause="The learning rate is too low or far too high, the inputs do not determine the "
        "targets, or the run has too few steps.",
        remedy=remedies.faster(),
        drawing=_losses(history),
        numbers={"first_loss": history.first_loss, "last_loss": last},
    )


def _plateau(history: History, windows: np.ndarray, remedies: Remedies) -> Iterator[Finding]:
    half = windows[len(windows) // 2]
    gained, first = float(half - windows[-1]), history.first_loss
    if len(windows) >= 8 and abs(gained) < STILL * first and windows[-1] < 0.9 * first:
        yield Finding(
            name="plateau",
            severity="note",
            text=f"In the second half of the run, the loss changed by {gained:.2g}, less than 1 % of "
            f"its initial value: the run could have been shorter.",
            cause="The model has learned what its size and the data allow.",
            remedy=remedies.stopping(),
            drawing=_losses(history),
            numbers={"gained": gained},
        )


def _clipping(history: History, remedies: Remedies) -> Iterator[Finding]:
    limit = remedies.training.clip_norm
    norms = np.array(history.norms)[len(history.norms) // 2 :]
    if limit is None or not len(norms):
        return
    share = float((norms > limit).mean())
    if share > ALWAYS_CLIPPED:
        usual = float(np.median(norms))
        yield Finding(
            name="clipping always active",
            severity="note",
            text=f"{share:.0%} of the gradients in the second half of the run were clipped "
            f"(clip_norm={limit:g}); their median norm was {usual:.3g}. Adam normalizes "
            f"gradients, so this does little harm, but clipping no longer separates outliers "
            f"from usual gradients.",
            cause="clip_norm is below the median norm of the gradient.",
            remedy=remedies.looser(usual),
            drawing=_norms(history),
            numbers={"share": share, "usual_norm": usual},
        )


def _over_fitting(history: History, remedies: Remedies) -> Iterator[Finding]:
    """Detect overfitting: validation scores, smoothed over three, fell from their best while the loss kept falling."""
    if len(history.scores) < LEAST_SCORES:
        return
    values = np.array([value for _, value in history.scores])
    signed = values if history.higher_is_better else -values
    smooth = np.convolve(signed, np.ones(3) / 3, "valid")
    best = int(smooth.argmax())
    fall, gain = float(smooth[best] - smooth[-1]), float(smooth[best] - signed[0])
    noise = float(np.median(np.abs(np.diff(signed)[best:]))) if best < len(signed) - 1 else 0.0
    if fall <= max(WORSE * abs(gain), 2 * noise):
        return
    step = history.scores[best + 1][0]
    losses, steps = np.array(history.losses), np.array(history.steps)
    before, after = losses[steps <= step][-LEAST_STEPS:], losses[-LEAST_STEPS:]
    if len(before) and after.mean() < before.mean():
        yield _over_fitted(
            history,
            "warning",
            f"Validation {history.metric} was {abs(smooth[best]):.3g} around step {step:,} and "
            f"{abs(smooth[-1]):.3g} at the end, while the training loss fell from {before.mean():.3g} "
            f"to {after.mean():.3g}. The best weights were kept.",
            remedies,
            {"best": abs(float(smooth[best])), "last": abs(float(smooth[-1])), "step": float(step)},
        )


def _over_fitted(
    history: History,
    severity: str,
    text: str,
    remedies: Remedies,
    numbers: dict[str, float],
) -> Finding:
    return Finding(
        name="over-fitting",
        severity="alarm" if severity == "alarm" else "warning",
        text=text,
        cause="The model overfits: it memorizes the training examples, because it is large for this "
        "amount of data, or trains too long.",
        remedy=remedies.regularized(),
        drawing=_scores(history) or _losses(history),
        numbers=numbers,
    )


def _losses(history: History) -> str:
    points = tuple(zip(history.steps, history.losses, strict=True))
    return curves([Series(name="loss", points=points)], title="Training loss")


def _norms(history: History) -> str:
    points = tuple(zip(history.steps, history.norms, strict=True))
    return curves([Series(name="gradient norm", points=points)], title="Gradient norm")


def _scores(history: History) -> str:
    if not history.scores:
        return ""
    series = Series(name=f"validation {history.metric}", points=tuple(history.scores))
    return curves([series], title=f"Validation {history.metric}")
