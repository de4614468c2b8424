"""One sentence under softmax, sigmoid and segment attention, next to its gold alignment.

    foveal fit --recipe recipes/side_by_side.py:segment --out runs/segment
    python -m benchmarks.lectures fit side_by_side --runs runs                    three models, one seed
    python -m benchmarks.lectures score side_by_side --runs runs

The three models are the cases of `recipes/segment_translation.py` that read words, after two epochs instead of six, at a
third of the cost. After so few epochs, their attention does not follow the words yet. The gold alignments are of another domain, Kyoto
articles of Wikipedia; `foveal data get align_gold_jaen` gets them.
"""

from dataclasses import replace
from functools import partial

from foveal.training import Run
from recipes import segment_translation

CASES = ("simple", "sigmoid", "segment")


def recipe(case: str = "segment") -> Run:
    """Return a run of two epochs with one kind of attention: about four minutes."""
    run = segment_translation.recipe(f"words_{case}")
    return replace(run, training=replace(run.training, epochs=2.0))


simple, sigmoid, segment = (partial(recipe, case) for case in CASES)
