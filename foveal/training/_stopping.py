"""The reason why a run stopped, as a sentence."""

from ._spec import TrainingSpec
from .checkpoints._position import Position
from .events._events import StopReason


def why_stopped(reason: StopReason, spec: TrainingSpec, at: Position, metric: str) -> str:
    """Return the message for the user.

    Args:
        reason: Reason for the end of training.
        spec: Settings of the run.
        at: Position at the end.
        metric: Name of the main metric.

    Returns:
        One sentence, without a period.

    Examples:
        >>> why_stopped("length", TrainingSpec(steps=5), Position(step=5), "wer")
        'stopped after step 5: that was the length of the run'
    """
    step = f"stopped after step {at.step:,}"
    match reason:
        case "length":
            return f"{step}: that was the length of the run"
        case "time":
            return f"{step}: the time is over (minutes={spec.minutes:g}, scoring included)"
        case "patience":
            return (
                f"{step}: {metric} has not been better than {at.best_value:.4g}, of step "
                f"{at.best_step:,}, for {at.unimproved} validations"
            )
        case "interrupted":
            return f"{step}: interrupted; the same command goes on from here"
