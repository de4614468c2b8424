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
        'stopped after step 5: reached the configured length'
    """
    step = f"stopped after step {at.step:,}"
    match reason:
        case "length":
            return f"{step}: reached the configured length"
        case "time":
            return f"{step}: reached the time limit (minutes={spec.minutes}, scoring included)"
        case "patience":
            return (
                f"{step}: {metric} has not improved on {at.best_value:.4g} (step {at.best_step:,}) "
                f"for {at.unimproved} validations"
            )
        case "interrupted":
            return f"{step}: interrupted; run the same command again to resume"
