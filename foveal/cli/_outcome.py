"""The summary of a trained model."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..training._outputs import scores_of


def say_outcome(console: Console, out: Path) -> None:
    """Print the scores of the model, and the command to use it. A model without scores is not ready."""
    scored = scores_of(out)
    table = Table("", "score", "value", "95 % interval", "", box=None, padding=(0, 2, 0, 0))
    for name, metrics in scored.items():
        for score, metric in metrics.items():
            interval = f"{metric.low:.2f} to {metric.high:.2f}"
            table.add_row(name, score, f"{metric.value:.2f}", interval, metric.signature)
    if table.row_count:
        Console(highlight=False).print(table)  # a result, which --quiet keeps
    else:
        console.print(
            f"The model in {out} was not scored on any example. Score it before you use it: foveal evaluate {out} "
            f"FILE",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
        return
    console.print(
        f"{out} is ready. Predict with: foveal predict {out} < words.txt",
        markup=False,
        soft_wrap=True,
    )
