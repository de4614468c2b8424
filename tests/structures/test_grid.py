"""Every distribution, verb and kind of inputs against enumeration, on the path that FOVEAL_KERNELS
chooses; `test_paths.py` runs this file on every other path.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from foveal.errors import ImpossibleError, NonFiniteError
from tests.structures.inputs import BATCH, REGULAR, Case, case
from tests.structures.structures import KINDS
from tests.structures.verbs import NUM_RANKS, SELECTING, VERBS, has, values_of

pytestmark = pytest.mark.slow

Mode = Callable[[], contextlib.AbstractContextManager[Any]]
MODES: tuple[Mode, ...] = (contextlib.nullcontext, torch.inference_mode)
PAIRS = [(name, verb) for name in KINDS for verb in VERBS if has(verb, case(name, "ordinary"))]


def answers(of: Case, verb: str, mode: Mode) -> Any:
    with mode():
        potentials, others = ([part.clone() for part in p] for p in (of.potentials, of.others))
        return VERBS[verb].run(of.make(potentials), of.make(others), values_of(of))


@pytest.mark.parametrize("inputs", REGULAR)
@pytest.mark.parametrize(("name", "verb"), PAIRS)
def test_a_verb_is_enumeration(name: str, verb: str, inputs: str) -> None:
    of = case(name, inputs)
    for mode in MODES:
        VERBS[verb].check(answers(of, verb, mode), of.own_truths, of.other_truths)


@pytest.mark.parametrize(("name", "verb"), PAIRS)
def test_where_nothing_is_possible(name: str, verb: str) -> None:
    of = case(name, "impossible")
    nothing = not any(truth.possible.any() for truth in of.own_truths)
    assert nothing == (name != "Subset")  # the empty set is always possible
    for mode in MODES:
        if nothing and verb in ("argmax", "sample"):
            with pytest.raises(ImpossibleError):
                answers(of, verb, mode)
        else:
            VERBS[verb].check(answers(of, verb, mode), of.own_truths, of.other_truths)


@pytest.mark.parametrize(("name", "verb"), PAIRS)
def test_a_score_that_is_not_a_number(name: str, verb: str) -> None:
    """NaN affects its item only, whose results are NaN; search and sampling raise an error."""
    of = case(name, "NaN")
    for mode in MODES:
        if verb in SELECTING:
            with pytest.raises(NonFiniteError, match="NaN"):
                answers(of, verb, mode)
            continue
        found = answers(of, verb, mode)
        for answer in found if isinstance(found, tuple) else (found,):
            items = answer.movedim(1, 0) if verb == "log_prob" else answer
            assert items[0].isnan().any(), f"{verb} hides NaN: {answer}"
            assert not items[1:].isnan().any(), f"{verb}: NaN reaches other items: {answer}"


def empty(of: Case, batch: tuple[int, ...]) -> Case:
    def without(parts: list[torch.Tensor], shared: tuple[int, ...] = ()) -> list[torch.Tensor]:
        return [
            part if n in shared else part[:1].expand(*batch, *part.shape[1:]).clone()
            for n, part in enumerate(parts)
        ]

    potentials, others = (without(p, of.kind.shared) for p in (of.potentials, of.others))
    return Case(of.kind, potentials, others, without(of.masks), given=True)


@pytest.mark.parametrize("batch", [(0,), (2, 0)], ids=str)
@pytest.mark.parametrize(("name", "verb"), PAIRS)
def test_an_empty_batch(name: str, verb: str, batch: tuple[int, ...]) -> None:
    of = empty(case(name, "ordinary"), batch)
    kind = of.kind
    values = torch.zeros(2, *batch, *kind.event, dtype=torch.bool if kind.boolean else torch.long)
    shape = {
        "marginals": (*batch, *kind.shape_of_marginals()),
        "argmax": (*batch, *kind.event),
        "topk": (NUM_RANKS, *batch, *kind.event),
        "sample": (300, *batch, *kind.event),
        "log_prob": (2, *batch),
    }.get(verb, batch)
    for mode in MODES:
        with mode():
            found = VERBS[verb].run(of.make(of.potentials), of.make(of.others), values)
        first, *rest = found if isinstance(found, tuple) else (found,)
        assert first.shape == shape
        assert [each.shape for each in rest] == [
            (NUM_RANKS, *batch) if verb == "topk" else batch
        ] * len(rest)


@pytest.mark.parametrize("name", KINDS)
def test_no_samples(name: str) -> None:
    of = case(name, "ordinary")
    assert of.make(of.potentials).sample((0,)).shape == (0, BATCH, *of.kind.event)
