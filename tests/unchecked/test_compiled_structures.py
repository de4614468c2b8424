"""Compiled verbs of every distribution match enumeration, with and without gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.structures.inputs import Case, case
from tests.structures.structures import KINDS
from tests.structures.truth import Truth
from tests.structures.verbs import DENSE_ONLY, VERBS, has, near, values_of

COMPILED = ("log_partition", "log_prob", "marginals", "entropy", "cross_entropy", "kl")
# Orders other than 1.5 and 2 need an iterative search, which does not compile.
NAMES = [name for name in KINDS if name != "Entmax 1.3"]


def answers(of: Case, verbs: list[str], potentials: list[Tensor], *rest: Any) -> list[Any]:
    """Call the verbs, those of two distributions in one direction: both trace the same code."""
    others, masks, values = rest
    distribution, other = of.make(potentials, masks), of.make(others, masks)
    return [
        getattr(distribution, verb)(other)
        if verb in DENSE_ONLY
        else VERBS[verb].run(distribution, other, values)
        for verb in verbs
    ]


def check(verb: str, answer: Any, truths: list[Truth], others: list[Truth]) -> None:
    if verb in DENSE_ONLY:
        pairs = zip(truths, others, strict=True)
        near(answer, torch.stack([getattr(p, verb)(q) for p, q in pairs]), verb)
    else:
        VERBS[verb].check(answer, truths, others)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from torch's compiler
@pytest.mark.parametrize("name", NAMES)
def test_compiled_verbs_are_enumeration(name: str) -> None:
    """One graph serves masked and sentinel inputs, first without gradients, then with."""
    torch._dynamo.reset()
    first = case(name, "masked")
    verbs = [verb for verb in COMPILED if has(verb, first)]
    compiled = torch.compile(answers, fullgraph=True, backend="aot_eager")
    for wanted in (False, True):
        for inputs in ("masked", "sentinel -1e+09"):
            of = case(name, inputs)
            potentials = [part.clone().requires_grad_(wanted) for part in of.potentials]
            with torch.set_grad_enabled(wanted):
                found = compiled(first, verbs, potentials, of.others, of.masks, values_of(of))
            for verb, answer in zip(verbs, found, strict=True):
                check(verb, answer, of.own_truths, of.other_truths)
