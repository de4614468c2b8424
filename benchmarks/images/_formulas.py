"""Image to LaTeX: exact match, BLEU, token error rate, and whether the output looks the same.

    results/image_to_latex.json

An output looks the same if it renders to the same pixels as the reference. This applies to rendered
formulas only, which mathtext can draw.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from recipes import image_to_latex
from recipes.rendered import render

from ..results import Results, Sense
from ._scored import Scored, score_cases

NAME = "image_to_latex"
# The other cases of rendered formulas are steps towards the last one. There is no target for the rendered match: formulas
# have one normal form, so no wrong output of any model renders to the right pixels, and both figures are always equal.
AIMS = {"rendered_more: exact_match": 97.0}


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write the results file, and keep the figures of its other cases."""
    data = {
        "manifest.json": image_to_latex.FOLDER / "manifest.json",
        "manifest.json of more": image_to_latex.MORE / "manifest.json",
        "manifest.json of handwritten": image_to_latex.HANDWRITTEN / "manifest.json",
        **{file.name: file for file in image_to_latex.corpus_files()},
        **{
            f"weights of {bundle.name}": bundle / "weights.safetensors"
            for bundle in map(Path, image_to_latex.STARTS.values())
        },
    }
    score_cases(
        NAME,
        image_to_latex.recipe,
        cases,
        seeds,
        (runs, results),
        aims=AIMS,
        more=_rendered_match,
        data=data,
    )


def write_references(results: Path) -> None:
    """Set the targets of the measured rows."""
    path = results / f"{NAME}.json"
    aims: dict[str, tuple[float, Sense]] = {name: (value, ">=") for name, value in AIMS.items()}
    Results.load(path).with_references(aims, ()).save(path)


def _rendered_match(case: str, scored: Scored) -> Mapping[str, tuple[float, str]]:
    if not case.startswith("rendered"):
        return {}
    pairs = zip(scored.found.references, scored.found.predictions, strict=True)
    same = [looks_the_same(reference, prediction.output) for reference, prediction in pairs]
    return {"rendered match": (100 * float(np.mean(same)), "%")}


def looks_the_same(reference: str, output: str) -> bool:
    """Return whether two formulas render to the same image."""
    if reference == output:
        return True
    drawn, ours = render(reference.split()), render(output.split())
    return drawn is not None and ours is not None and np.array_equal(drawn, ours)
