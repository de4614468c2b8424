"""The table of docs/shelf.md: the models of the shelf, from its index, which the cards are the source of."""

from pathlib import Path

from foveal.shelf._index import ShelfModel, read_index

SHELF = Path(__file__).resolve().parent.parent / "shelf/foveal_shelf"


def shelf_table() -> str:
    """Return a row for each model, and the total size."""
    models = read_index(SHELF)
    lines = [
        "| model | from, to | score | MB | inputs/s | license |",
        "|---|---|---|---:|---:|---|",
        *map(_row, models),
    ]
    total = sum(model.size for model in models) / 1e6
    return "\n".join([*lines, "", f"{len(models)} models, {total:.1f} MB together."])


def _row(model: ShelfModel) -> str:
    score, speed = model.score, model.words_per_second
    shown = (
        ""
        if score is None
        else f"{score.metric} {score.value:.1f} ({score.low:.1f} to {score.high:.1f})"
    )
    cells = (
        f"`{model.name}`",
        model.about,
        shown,
        f"{model.size / 1e6:.2f}",
        "" if speed is None else f"{speed:,.0f}",
        model.license,
    )
    return f"| {' | '.join(cells)} |"
