"""When a decoder attends: after the step, after it with input feeding, or before it.

    foveal fit --recipe recipes/attending.py:ice_before --out runs/ice_before
    python -m benchmarks.lectures fit attending --runs runs              all cases, three seeds
    python -m benchmarks.lectures score attending --runs runs

Each case is the recipe of its corpus with softmax attention and one form of the decoder; nothing else differs.
Icelandic has 800 words, Bulgarian 8,000, the Tanaka corpus 50,000 pairs of sentences.

References: Luong et al. 2015 (after, input feeding), Bahdanau et al. 2015 (before, deep output).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from foveal.models import SoftmaxSpec
from foveal.tasks import TransductionSpec
from foveal.training import Run
from recipes import g2p_low, g2p_medium, ja_en

CORPORA: dict[str, Callable[[], Run]] = {
    "ice": g2p_low.ice,
    "bul": g2p_medium.bul,
    "ja_en": ja_en.recipe,
}
FORMS: dict[str, dict[str, Any]] = {
    "after": {},
    "fed": {"input_feeding": True},
    "before": {"attend": "before"},
    "deep": {"attend": "before", "deep_output": True},
}
CASES = tuple(f"{corpus}_{form}" for corpus in CORPORA for form in FORMS)


def recipe(case: str = "ice_before") -> Run:
    """Return the recipe of a corpus, with the decoder of a form."""
    corpus, _, form = case.rpartition("_")
    run = CORPORA[corpus]()
    assert isinstance(run.task, TransductionSpec)
    model = run.task.model
    decoder = replace(model.decoder, attention=SoftmaxSpec(), **FORMS[form])
    return replace(run, task=replace(run.task, model=replace(model, decoder=decoder)))


ice_after, ice_fed, ice_before, ice_deep = (partial(recipe, f"ice_{form}") for form in FORMS)
bul_after, bul_fed, bul_before, bul_deep = (partial(recipe, f"bul_{form}") for form in FORMS)
ja_en_after, ja_en_fed, ja_en_before, ja_en_deep = (
    partial(recipe, f"ja_en_{form}") for form in FORMS
)
