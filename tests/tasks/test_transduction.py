"""Transduction learns in seconds, is batch-invariant, and attends to the given alignments."""

import json
from dataclasses import replace

import pytest
import torch

from foveal.attention import AttentionTrace
from foveal.data import Example, FeaturesSpec, InMemory, Seq2SeqBatch, WhitespaceSpec
from foveal.errors import DataError, SpecError, ValueRangeError
from foveal.models import MultiHeadSpec, SegmentSpec, Seq2SeqSpec, SoftmaxSpec
from foveal.tasks import PredictionSpec, Transduction, TransductionSpec
from foveal.tasks.base._losses import alignment_loss
from tests.tasks.tiny import DECODER, ENCODER, train, transduction, upper_cased

pytestmark = pytest.mark.slow

EXAMPLES = upper_cased(260)
TRAIN, TEST = EXAMPLES[:200], EXAMPLES[200:]


@pytest.fixture(scope="module")
def learnt() -> Transduction:
    torch.manual_seed(0)
    task = transduction(label_smoothing=0.05)
    train(task, TRAIN, epochs=14, rate=1e-2)
    train(task, TRAIN, epochs=3, rate=2e-3)
    task.calibrate(TEST[:30])
    return task


def test_it_learns_to_write_capitals(learnt: Transduction) -> None:
    evaluation = learnt.evaluate(TEST[30:])
    assert evaluation.main == learnt.main_metric == ("wer", False)
    assert evaluation.value <= 10
    assert evaluation.metrics["cer"].low <= evaluation.metrics["cer"].value
    assert evaluation.reliability is not None
    assert evaluation.risk_coverage is not None
    assert sum(one.num_examples for one in evaluation.slices[-1:]) <= 30
    assert [sample.source for sample in evaluation.samples(3)] == [
        TEST[30].source,
        TEST[44].source,
        TEST[59].source,
    ]


def test_company_changes_no_answer(learnt: Transduction) -> None:
    """Answers are bit-identical for a single example, in any batch, and in any order."""
    together = learnt.predict(TEST, PredictionSpec(nbest=3))
    assert learnt.predict(TEST, PredictionSpec(nbest=3, batch_size=1)) == together
    assert learnt.predict(TEST[::-1], PredictionSpec(nbest=3, batch_size=7))[::-1] == together


def test_answers_are_the_best_of_the_list(learnt: Transduction) -> None:
    for prediction in learnt.predict(TEST, PredictionSpec(nbest=4)):
        outputs = [candidate.output for candidate in prediction.nbest]
        assert len(set(outputs)) == len(outputs) == 4
        scores = [candidate.score for candidate in prediction.nbest]
        assert scores == sorted(scores, reverse=True)
        assert prediction[:3] == prediction.nbest[0]
        assert sum(candidate.probability for candidate in prediction.nbest) <= 1 + 1e-6
        assert len(prediction.token_probabilities) == len(prediction.output)
        assert prediction.trace is None


def test_scores_are_those_of_teacher_forcing(learnt: Transduction) -> None:
    """The log-probability of an output equals its log-probability in training."""
    prediction = learnt.predict([Example("abc")])[0]
    batch = learnt.collate([learnt.encode(Example("abc", prediction.output))])
    free = replace(learnt.spec, label_smoothing=0.0).build(learnt.vocabularies)
    free.model.load_state_dict(learnt.model.state_dict())
    assert -free.loss(batch).total.item() == pytest.approx(prediction.score, abs=1e-4)


def test_greedy_finds_what_it_can(learnt: Transduction) -> None:
    greedy = learnt.predict(TEST, PredictionSpec(beam_size=1))
    beam = learnt.predict(TEST, PredictionSpec(beam_size=5))
    assert all(len(prediction.nbest) == 1 for prediction in greedy)
    assert all(g.score <= b.score + 1e-4 for g, b in zip(greedy, beam, strict=True))


def test_the_trace_has_every_symbol(learnt: Transduction) -> None:
    short, long = learnt.predict([Example("ab"), Example("bcdea")], PredictionSpec(trace=True))
    for prediction, source in ((short, "ab"), (long, "bcdea")):
        trace = prediction.trace
        assert isinstance(trace, AttentionTrace)
        assert trace.kind == "softmax"
        assert trace.sources == tuple(source)
        assert trace.targets == tuple(prediction.output)
        assert [sum(row) for row in trace.weights] == pytest.approx([1.0] * len(trace.targets))


def test_what_cannot_be_known_is_answered_all_the_same(learnt: Transduction) -> None:
    for prediction in learnt.predict([Example(""), Example("züü"), Example("a" * 300)]):
        assert 0 <= prediction.confidence <= 1
        assert "\N{REPLACEMENT CHARACTER}" not in prediction.output
    assert learnt.predict([]) == []


def test_outputs_end_where_they_must(learnt: Transduction) -> None:
    outputs = [p.output for p in learnt.predict(TEST, PredictionSpec(max_length=2))]
    assert max(map(len, outputs)) == 2
    torch.manual_seed(0)
    untrained = transduction()
    longest = untrained.vocabularies.lengths.limit(5)
    assert all(len(p.output) <= longest for p in untrained.predict(TEST))


def test_prediction_leaves_training_mode_and_gradients_alone(learnt: Transduction) -> None:
    learnt.model.train()
    learnt.predict(TEST[:2])
    assert learnt.model.training
    batch = learnt.collate([learnt.encode(example) for example in TEST[:4]])
    learnt.loss(batch).total.backward()
    learnt.model.zero_grad()
    learnt.model.eval()


def test_phones_are_scored_by_symbols_and_texts_by_bleu() -> None:
    pairs = [Example("ab", "x y"), Example("ba", "y x")]
    words = TransductionSpec(
        target=WhitespaceSpec(), model=Seq2SeqSpec(encoder=ENCODER, decoder=DECODER)
    )
    assert set(words.build_from(pairs).evaluate(pairs).metrics) == {"wer", "per"}
    texts = replace(words, outputs="texts").build_from(pairs)
    evaluation = texts.evaluate(pairs)
    assert list(evaluation.metrics) == ["bleu", "chrf", "exact_match"]
    assert "tok:none" in evaluation.metrics["bleu"].signature
    assert texts.main_metric == ("bleu", True)


def test_features_are_read() -> None:
    """The same word has two forms: only the feature decides which one is right."""
    torch.manual_seed(0)
    words = [example.text for example in upper_cased(60)]
    examples = [
        Example(word, word + ("x" if feature == "PL" else "y"), features=f"N;{feature}")
        for word in words
        for feature in ("PL", "SG")
    ]
    spec = TransductionSpec(
        features=FeaturesSpec(), model=Seq2SeqSpec(encoder=ENCODER, decoder=DECODER)
    )
    task = spec.build_from(examples)
    train(task, examples, epochs=16, rate=1e-2)
    endings = [p.output[-1:] for p in task.predict(examples)]
    wanted = [example.target[-1] for example in examples if example.target]
    right = sum(one == other for one, other in zip(endings, wanted, strict=True))
    assert right >= 0.95 * len(wanted)
    traces = [
        p.trace
        for p in task.predict(examples[:2], PredictionSpec(trace=True))
        if p.trace is not None
    ]
    assert traces[0].sources == ("N", "PL", *words[0])
    assert task.predict([Example("abc", features="N;DUAL")])[0].output  # unseen feature


def aligned(size: int) -> list[Example]:
    """Return words to be reversed, with the source position of each letter."""
    return [
        Example(
            word,
            word[::-1].upper(),
            alignment=" ".join(f"{len(word) - 1 - t}-{t}" for t in range(len(word))),
        )
        for word in (example.text for example in upper_cased(size))
    ]


@pytest.mark.parametrize("attention", [SoftmaxSpec(), SegmentSpec()])
def test_supervised_attention_looks_where_it_is_told(
    attention: SoftmaxSpec | SegmentSpec,
) -> None:
    examples = aligned(40)
    on_place = {}
    for weight in (0.0, 1.0):
        torch.manual_seed(0)
        decoder = replace(DECODER, attention=attention)
        task = transduction(alignment_weight=weight, decoder=decoder)
        train(task, examples, epochs=50, rate=2e-2, batch_size=40)
        encode = replace(task.spec, alignment_weight=1.0).build(task.vocabularies).encode
        batch = task.collate([encode(example) for example in examples])
        with torch.no_grad():
            weights = task.model(batch.source, batch.source_mask, batch.tokens, batch.mask).weights
        shares = weights / weights.sum(-1, keepdim=True).clamp(min=1e-6)
        on_place[weight] = shares[batch.alignment].mean().item()
    assert on_place[1.0] > max(0.6, on_place[0.0])


def test_the_alignment_loss_by_hand() -> None:
    """Weights have a floor of 0.01; the third token has no source position."""
    weights = torch.tensor([[[0.49, 0.25, 0.26], [0.1, 0.79, 0.11], [0.2, 0.2, 0.6]]])
    alignment = torch.tensor([[[True, False, False], [False, True, True], [False] * 3]])
    log = torch.tensor([0.5, 0.8, 0.12]).log()
    torch.testing.assert_close(alignment_loss(weights, alignment), -(log[0] + log[1:].mean()))
    left = torch.tensor([0.76, 0.75, 0.91]).log()
    torch.testing.assert_close(
        alignment_loss(weights, alignment, exclusive=False), -(log.sum() + left.sum())
    )


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_the_alignment_loss_is_finite_where_attention_is_certain(
    value: float, *, exclusive: bool
) -> None:
    weights = torch.full((1, 2, 3), value, requires_grad=True)
    alignment = torch.tensor([[[True, False, True], [False] * 3]])
    loss = alignment_loss(weights, alignment, exclusive=exclusive)
    loss.backward()
    assert loss.isfinite()
    assert weights.grad is not None
    assert weights.grad.isfinite().all()


def test_parts_of_the_loss_are_told() -> None:
    task = transduction(alignment_weight=2.0)
    batch = task.collate([task.encode(example) for example in aligned(5)])
    loss = task.loss(batch)
    parts = loss.parts["likelihood"] + 2.0 * loss.parts["alignment"]
    torch.testing.assert_close(loss.total.detach(), parts)
    assert isinstance(batch, Seq2SeqBatch)
    assert loss.count == batch.mask.sum()


def test_the_heads_of_attention_learn_alignments_together() -> None:
    decoder = replace(DECODER, attention=MultiHeadSpec(num_heads=2))
    task = transduction(alignment_weight=1.0, decoder=decoder)
    loss = task.loss(task.collate([task.encode(example) for example in aligned(5)]))
    assert loss.parts["alignment"] > 0


def test_alignments_need_attention() -> None:
    task = transduction(alignment_weight=1.0, decoder=replace(DECODER, attention=None))
    batch = task.collate([task.encode(example) for example in aligned(3)])
    with pytest.raises(ValueRangeError, match=r"with attention, got one without.*softmax"):
        task.loss(batch)


def test_hidden_symbols_teach_what_to_do_about_unknown_ones() -> None:
    """Word dropout hides source tokens in training only."""
    task = transduction(word_dropout=0.5)
    batch = task.collate([task.encode(example) for example in TRAIN[:20]])
    task.model.train()
    torch.manual_seed(0)
    assert task.loss(batch).total != task.loss(batch).total
    task.model.eval()
    assert task.loss(batch).total == task.loss(batch).total


def test_examples_without_a_target_cannot_be_learnt_from() -> None:
    task = transduction()
    with pytest.raises(DataError, match=r"no target.*second column"):
        task.encode(Example("abc"))
    with pytest.raises(DataError, match="no target"):
        task.evaluate([Example("abc")])


def test_more_answers_than_candidates_are_refused() -> None:
    with pytest.raises(SpecError, match=r"nbest=9 and beam_size=5. Set beam_size=9"):
        PredictionSpec(nbest=9)


def test_batches_are_those_of_the_stream() -> None:
    task = transduction()
    assert isinstance(task, Transduction)
    batch = next(iter(task.batches(InMemory(tuple(TRAIN)), budget=64)))
    assert batch.source.numel() + batch.tokens.numel() <= 64
    assert json.dumps(task.batches(InMemory(tuple(TRAIN)), batch_size=8).state())
