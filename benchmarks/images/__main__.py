"""Fit the models of an experiment on images, or score the fitted models.

    python -m benchmarks.images fit easy_vqa --runs runs                         all cases, seed 1
    python -m benchmarks.images fit image_to_latex --runs runs --cases rendered_soft
    python -m benchmarks.images score scene_captions --runs runs                 writes results/
    python -m benchmarks.images references image_to_latex                        targets only

Existing runs are not repeated, hence a queue can be stopped and started again. Only `score` reads test
examples.
"""

from collections.abc import Sequence

from recipes import clips, easy_vqa, image_to_latex, residual_depth, scene_captions

from ..experiments import Experiment, command
from . import _captions, _clips, _depth, _formulas, _questions, _scenes

EXPERIMENTS = {
    _formulas.NAME: Experiment(
        image_to_latex.recipe,
        image_to_latex.CASES,
        (1,),
        _formulas.score,
        _formulas.write_references,
    ),
    _scenes.NAME: Experiment(scene_captions.recipe, scene_captions.CASES, (1,), _scenes.score),
    _questions.NAME: Experiment(easy_vqa.recipe, easy_vqa.CASES, (1,), _questions.score),
    _clips.NAME: Experiment(clips.recipe, clips.CASES, (1,), _clips.score),
    _captions.NAME: Experiment(scene_captions.recipe, _captions.CASES, (1,), _captions.score),
    _depth.NAME: Experiment(residual_depth.recipe, residual_depth.CASES, (1, 2, 3), _depth.score),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the subcommand that the first argument names."""
    command(EXPERIMENTS, __doc__, arguments)


if __name__ == "__main__":
    main()
