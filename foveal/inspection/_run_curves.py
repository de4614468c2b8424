"""The section of a report that shows the curves of a run."""

from pathlib import Path

from ..training.events._curves import run_curves
from ..views import Section, series_table

_GREEDY = (
    "The validation curve uses greedy search ({metric} with beam size 1) to save time. The scores "
    "above use beam size {beam_size}, so the last point of the curve and the validation score may "
    "differ."
)


def curves_section(log: Path, *, beam_size: int = 1) -> Section:
    """Build the section with the curves of a run, or with a sentence if the log is empty.

    Args:
        log: The log of a run.
        beam_size: The beam size with which the scores of the report are measured.

    Returns:
        A section for `page`.
    """
    found = run_curves(log)
    if not found.loss.points:
        return Section(title="Curves", text="The folder has no training log.")
    is_greedy = bool(found.scores.points) and beam_size > 1
    text = _GREEDY.format(metric=found.scores.name, beam_size=beam_size) if is_greedy else ""
    table = series_table(found, caption="Values of the curves")
    return Section(title="Curves", text=text, drawings=tuple(found.drawings()), tables=(table,))
