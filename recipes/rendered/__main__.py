"""The command: `python -m recipes.rendered formulas|scenes|clips OUT --count N --seed S`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from .clips import draw_clips
from .formulas import SIZES, draw_formulas
from .scenes import draw_scenes
from .writing import Item, write_pictures

What = Literal["formulas", "scenes", "clips"]


def main(
    what: Annotated[What, tyro.conf.Positional],
    out: Annotated[Path, tyro.conf.Positional],
    count: int = 10_000,
    held_out: int = 1000,
    seed: int = 1,
) -> None:
    """Draw pictures, and write what is on them.

    Args:
        what: formulas, scenes of shapes, or clips of shapes that move.
        out: the folder to write.
        count: how many to train on.
        held_out: how many to choose by, to test on, and of scenes with each thing that was held out.
        seed: what is drawn follows from it.
    """
    if count < 1 or held_out < 1:
        raise SystemExit(
            f"rendered: --count and --held-out must be at least 1, got {count} and {held_out}."
        )
    parts = {
        name: (items, count if name == "train" else held_out)
        for name, items in drawn(what, seed).items()
    }
    about = {"what": what, "seed": seed}
    manifest = write_pictures(out, parts, about, sizes=SIZES[:-1] if what == "formulas" else ())
    counts = ", ".join(f"{number:,} {name}" for name, number in manifest["counts"].items())
    Console(stderr=True).print(f"{out}: {what}, {counts}")


def drawn(what: What, seed: int) -> Mapping[str, Iterator[Item]]:
    """Return the stream of each part. Formulas of all parts come from one stream without duplicates."""
    names = ("test", "dev", "train")
    match what:
        case "formulas":
            return dict.fromkeys(names, draw_formulas(seed))
        case "scenes":
            return {
                name: draw_scenes(seed, name) for name in (*names, "held_out", "held_out_pairs")
            }
        case "clips":
            return {name: draw_clips(seed, name) for name in names}


if __name__ == "__main__":
    tyro.cli(main)
