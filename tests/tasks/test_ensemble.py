"""Ensembles of transductions: copies of one model change nothing, and different models combine their step
distributions.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from foveal.bundles import load_bundle
from foveal.data import END, CharacterSpec, Example, FeaturesSpec, Vocabulary, WhitespaceSpec
from foveal.errors import ValueRangeError
from foveal.metrics._calibration import Calibration, Scaling
from foveal.models import LatentHardSpec, SegmentSpec, Seq2SeqSpec
from foveal.tasks import (
    Prediction,
    PredictionSpec,
    Transduction,
    TransductionEnsemble,
    TransductionSpec,
)
from tests.tasks.stored import BUNDLES
from tests.tasks.tiny import DECODER, ENCODER, train, transduction, upper_cased

pytestmark = pytest.mark.slow

EXAMPLES = upper_cased(260)
TRAIN, TEST = EXAMPLES[:200], EXAMPLES[200:]
COMBINE: tuple[Literal["mixture", "product"], ...] = ("mixture", "product")
WAYS = [
    PredictionSpec(nbest=4, trace=True),
    PredictionSpec(beam_size=1, trace=True),
    PredictionSpec(nbest=2, length_penalty=1.0),
]


def taught(seed: int, **changes: Any) -> Transduction:
    """Train a model for a short time; it makes many errors."""
    torch.manual_seed(seed)
    task = transduction(**changes)
    train(task, TRAIN, epochs=8, rate=1e-2)
    task.model.eval()
    return task


@pytest.fixture(scope="module")
def soft() -> Transduction:
    task = taught(0)
    task.calibration = Calibration((Scaling(temperature=0.7, others=-1.0),))
    return task


@pytest.fixture(scope="module")
def hard() -> Transduction:
    return taught(1, decoder=replace(DECODER, attention=LatentHardSpec()))


@pytest.fixture(scope="module")
def other() -> Transduction:
    return taught(2)


def same(one: list[Prediction], other: list[Prediction], tolerance: float = 1e-5) -> None:
    for left, right in zip(one, other, strict=True):
        assert [c.output for c in left.nbest] == [c.output for c in right.nbest]
        for a, b in zip(left.nbest, right.nbest, strict=True):
            assert a[1:] == pytest.approx(b[1:], abs=tolerance)
        assert left.token_probabilities == pytest.approx(right.token_probabilities, abs=tolerance)
        assert (left.trace is None) == (right.trace is None)
        if left.trace is not None and right.trace is not None:
            assert left.trace.kind == right.trace.kind
            weights = [np.array(trace.weights) for trace in (left.trace, right.trace)]
            np.testing.assert_allclose(weights[0], weights[1], atol=tolerance)


@pytest.mark.parametrize("combine", COMBINE)
@pytest.mark.parametrize("settings", WAYS)
def test_one_member_is_itself(
    soft: Transduction, settings: PredictionSpec, combine: Literal["mixture", "product"]
) -> None:
    one = TransductionEnsemble([soft], combine=combine)
    assert one.predict(TEST, settings) == soft.predict(TEST, settings)
    assert one.calibration == soft.calibration
    assert one.main_metric == soft.main_metric


@pytest.mark.parametrize("combine", COMBINE)
@pytest.mark.parametrize("settings", WAYS)
def test_copies_are_one(
    hard: Transduction, settings: PredictionSpec, combine: Literal["mixture", "product"]
) -> None:
    copies = TransductionEnsemble([hard, hard, hard], combine=combine)
    same(copies.predict(TEST, settings), hard.predict(TEST, settings))


def mixed(each: Tensor) -> Tensor:
    return each.exp().mean(0).log()


def multiplied(each: Tensor) -> Tensor:
    return each.mean(0).log_softmax(-1)


def by_hand(
    members: list[Transduction], source: str, output: str, combined: Callable[[Tensor], Tensor]
) -> Tensor:
    """Compute log p(w | output so far) for every token w at each step; the last row follows the
    whole output.
    """
    rows = []
    for member in members:
        batch = member.collate([member.encode(Example(source, output))])
        with torch.no_grad():
            rows.append(
                member.model(batch.source, batch.source_mask, batch.tokens, None).log_probs[0]
            )
    return combined(torch.stack(rows))


@pytest.mark.parametrize(("combine", "combined"), [("mixture", mixed), ("product", multiplied)])
def test_scores_are_those_of_the_combined_steps(
    soft: Transduction,
    hard: Transduction,
    combine: Literal["mixture", "product"],
    combined: Callable[[Tensor], Tensor],
) -> None:
    members = [soft, hard]
    ensemble, target = TransductionEnsemble(members, combine=combine), soft.vocabularies.target
    assert target is not None
    found = ensemble.predict(TEST[:12], PredictionSpec(nbest=5))
    for example, prediction in zip(TEST, found, strict=False):
        for candidate in prediction.nbest:
            table = by_hand(members, example.text, candidate.output, combined)
            numbers = torch.tensor([*target.encode(list(candidate.output)), END])
            total = table.gather(1, numbers[:, None]).sum().item()
            assert candidate.score == pytest.approx(total, abs=1e-4)
    alone = [member.predict(TEST[:12]) for member in members]
    assert all(found[n].score != pytest.approx(one[n].score) for one in alone for n in range(12))


def test_greedy_takes_what_the_mixture_likes_most(soft: Transduction, hard: Transduction) -> None:
    ensemble, target = TransductionEnsemble([soft, hard]), soft.vocabularies.target
    assert target is not None
    for example, found in zip(
        TEST[:12], ensemble.predict(TEST[:12], PredictionSpec(beam_size=1)), strict=True
    ):
        table = by_hand([soft, hard], example.text, found.output, mixed)
        table[:, :END] = -torch.inf  # padding, unknown and begin are not outputs
        assert table.argmax(1).tolist() == [*target.encode(list(found.output)), END]


def test_evaluation_is_that_of_any_task(soft: Transduction, hard: Transduction) -> None:
    ensemble = TransductionEnsemble([soft, hard])
    found, predictions = ensemble.evaluate(TEST), ensemble.predict(TEST)
    wrong = sum(p.output != e.target for p, e in zip(predictions, TEST, strict=True))
    assert found.value == pytest.approx(100 * wrong / len(TEST))
    assert found.main == soft.main_metric
    assert list(found.metrics) == ["wer", "cer"]
    assert found.slices
    assert found.reliability is not None


@pytest.mark.parametrize("combine", COMBINE)
def test_the_order_of_members_changes_nothing(
    soft: Transduction,
    hard: Transduction,
    other: Transduction,
    combine: Literal["mixture", "product"],
) -> None:
    settings = PredictionSpec(nbest=3, trace=True)
    some = TransductionEnsemble([soft, hard, other], combine=combine)
    turned = TransductionEnsemble([other, soft, hard], combine=combine)
    turned.calibration = some.calibration
    same(turned.predict(TEST, settings), some.predict(TEST, settings), tolerance=1e-4)


def test_the_trace_is_the_mean(soft: Transduction, hard: Transduction, other: Transduction) -> None:
    settings, example = PredictionSpec(trace=True), Example("abcde")
    (prediction,) = TransductionEnsemble([soft, other]).predict([example], settings)
    weights = []
    for member in (soft, other):
        batch = member.collate([member.encode(Example("abcde", prediction.output))])
        with torch.no_grad():
            model = member.model(batch.source, batch.source_mask, batch.tokens, None)
        weights.append(model.weights[0, :-1].numpy())
    assert prediction.trace is not None
    assert prediction.trace.kind == "softmax"
    assert prediction.trace.sources == tuple("abcde")
    np.testing.assert_allclose(prediction.trace.weights, np.mean(weights, 0), atol=1e-5)
    (prediction,) = TransductionEnsemble([soft, hard]).predict([example], settings)
    assert prediction.trace is not None
    assert prediction.trace.kind == "latent_hard+softmax"
    assert [sum(row) for row in prediction.trace.weights] == pytest.approx(
        [1.0] * len(prediction.output)
    )


def test_without_attention_in_one_there_is_no_trace(soft: Transduction) -> None:
    blind = transduction(decoder=replace(DECODER, attention=None))
    segments = transduction(decoder=replace(DECODER, attention=SegmentSpec()))
    settings = PredictionSpec(trace=True)
    assert TransductionEnsemble([soft, blind]).predict(TEST[:1], settings)[0].trace is None
    trace = TransductionEnsemble([soft, segments]).predict(TEST[:1], settings)[0].trace
    assert trace is not None
    assert trace.kind == "segment+softmax"


def test_members_may_read_by_other_numbers(soft: Transduction) -> None:
    """One member knows z and not a; each member uses its vocabulary."""
    torch.manual_seed(3)
    spelt = [Example(e.text.replace("a", "z"), e.target) for e in TRAIN]
    stranger = soft.spec.build_from(spelt)
    train(stranger, spelt, epochs=8, rate=1e-2)
    assert stranger.vocabularies.source != soft.vocabularies.source
    ensemble, target = TransductionEnsemble([soft, stranger]), soft.vocabularies.target
    assert target is not None
    stranger.model.eval()
    for word in ("abz", "zzb", "a"):
        (found,) = ensemble.predict([Example(word)])
        table = by_hand([soft, stranger], word, found.output, mixed)
        numbers = torch.tensor([*target.encode(list(found.output)), END])
        assert found.score == pytest.approx(
            table.gather(1, numbers[:, None]).sum().item(), abs=1e-4
        )


def test_outputs_may_be_as_long_as_any_member_allows(soft: Transduction) -> None:
    """The limit is the maximum over the members, in any order."""
    torch.manual_seed(0)
    shorter = replace(soft.vocabularies, lengths=replace(soft.vocabularies.lengths, ratio=0.1))
    brief = soft.spec.build(replace(shorter, lengths=replace(shorter.lengths, slack=0.0)))
    brief.model.load_state_dict(soft.model.state_dict())
    longest = max(len(p.output) for p in brief.predict(TEST))
    expected = soft.predict(TEST, PredictionSpec(nbest=5))
    for members in ([soft, brief], [brief, soft]):
        ensemble = TransductionEnsemble(members)
        ensemble.calibration = soft.calibration
        found = ensemble.predict(TEST, PredictionSpec(nbest=5))
        same(found, expected)
        assert max(len(p.output) for p in found) > longest


def test_confidence_is_fitted_for_all_together(soft: Transduction, hard: Transduction) -> None:
    ensemble = TransductionEnsemble([soft, hard])
    assert ensemble.calibration == soft.calibration
    before = soft.calibration
    ensemble.calibrate(TEST)
    assert ensemble.calibration != before
    assert soft.calibration == before
    found = ensemble.predict(TEST, PredictionSpec(nbest=5))
    sure = np.mean([sum(c.probability for c in p.nbest) for p in found])
    rows = zip(found, TEST, strict=True)
    right = np.mean([e.target in {c.output for c in p.nbest} for p, e in rows])
    assert sure == pytest.approx(right, abs=0.05)  # the fitted mass of "none of these" is right


def test_members_are_left_as_they_were(soft: Transduction, hard: Transduction) -> None:
    hard.model.train()
    TransductionEnsemble([soft, hard]).predict(TEST[:2])
    assert hard.model.training
    assert not soft.model.training
    hard.model.eval()


def test_nothing_asked_is_nothing_answered(soft: Transduction, other: Transduction) -> None:
    ensemble = TransductionEnsemble([soft, other])
    assert ensemble.predict([]) == []
    for prediction in ensemble.predict([Example(""), Example("züü")]):
        assert 0 <= prediction.confidence <= 1


def test_a_stored_bundle_together_with_itself_answers_as_alone() -> None:
    tasks = [load_bundle(BUNDLES / "0.1.0" / "transduction") for _ in range(2)]
    members = [task for task in tasks if isinstance(task, Transduction)]
    examples = [Example(text) for text in ("abc", "edcba", "a", "", "xyz")]
    settings = PredictionSpec(nbest=3, trace=True)
    same(
        TransductionEnsemble(members).predict(examples, settings),
        members[0].predict(examples, settings),
    )


def vocabulary(task: Transduction, tokens: str) -> Transduction:
    """Return the vocabularies with another target vocabulary."""
    changed = replace(task.vocabularies, target=Vocabulary(tuple(tokens)))
    return task.spec.build(changed)


def spec(**changes: Any) -> Transduction:
    model = Seq2SeqSpec(encoder=ENCODER, decoder=DECODER)
    return TransductionSpec(model=model, **changes).build_from(TRAIN)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: spec(source=WhitespaceSpec()), "source of member 3 .*got 'whitespace', expected"),
        (lambda: spec(target=WhitespaceSpec()), "target of member 3 .*expected 'characters'"),
        (
            lambda: spec(source=CharacterSpec(normalization="NFC")),
            "source of member 3 .*got normalization 'NFC', expected 'none'",
        ),
        (
            lambda: spec(features=FeaturesSpec()),
            "features of member 3 .*got 'features', expected none",
        ),
        (lambda: spec(outputs="texts"), "outputs of member 3 .*got 'texts', expected 'words'"),
        (
            lambda: vocabulary(transduction(), "ABXYZ"),
            "got 5 tokens, including 'X', 'Y', 'Z' only in it, expected 5 tokens, including",
        ),
        (
            lambda: vocabulary(transduction(), "ABCDEFGHIJK"),
            "including 'F', .*'J', ... only in it, expected 5",
        ),
        (lambda: vocabulary(transduction(), "ABCDE"), "tokens in another order"),
    ],
)
def test_members_must_write_and_cut_alike(
    soft: Transduction, other: Transduction, make: Callable[[], Transduction], said: str
) -> None:
    member = make()
    with pytest.raises(ValueRangeError, match=rf"TransductionEnsemble: .*{said}") as raised:
        TransductionEnsemble([soft, other, member])
    assert re.search(
        r"Train the members on the same files.*or remove this member\.$", str(raised.value)
    )


def test_there_must_be_a_member() -> None:
    with pytest.raises(ValueRangeError, match=r"at least one member, got none.*load_bundle"):
        TransductionEnsemble([])
