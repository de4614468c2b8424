"""Classification, tagging and language modeling learn their examples, and every task keeps the laws that
training and serving rely on.
"""

import math
from dataclasses import replace

import pytest
import torch

from foveal.data import Example, SentencePieceSpec, TextPair
from foveal.data._example import Where
from foveal.data.vocabularies._vocabularies import Vocabularies
from foveal.errors import DataError, ValueRangeError
from foveal.models import (
    ClassifierSpec,
    DecomposableAttentionSpec,
    HeadsSpec,
    TaggerSpec,
    TextEncoderSpec,
    TransformerEncoderSpec,
)
from foveal.specs import from_json, to_json
from foveal.tasks import (
    Classification,
    ClassificationSpec,
    LanguageModeling,
    PairClassification,
    PairClassificationSpec,
    PredictionSpec,
    Tagging,
    TaggingSpec,
    TaskSpec,
    supporting_facts,
)
from foveal.tasks.explaining._explanation import Way
from tests.tasks.tiny import (
    ENCODER,
    HEADED,
    Task,
    documents,
    opinions,
    pairs,
    sentences,
    stories,
    tasks,
    train,
    upper_cased,
)

pytestmark = pytest.mark.slow

KINDS = (
    "transduction",
    "classification",
    "documents",
    "pair_classification",
    "tagging",
    "language_modeling",
    "question_answering",
)
EXAMPLES = {
    "transduction": upper_cased(60),
    "classification": opinions(60),
    "documents": documents(60),
    "pair_classification": pairs(60),
    "tagging": sentences(60),
    "language_modeling": upper_cased(60),
    "question_answering": stories(60),
}


@pytest.fixture(scope="module")
def learnt() -> dict[str, Task]:
    """Train every task for a few epochs, and calibrate it."""
    found = tasks()
    for kind in KINDS[1:]:
        size = 8 if kind == "language_modeling" else 20
        train(found[kind], EXAMPLES[kind], epochs=12, rate=2e-2, batch_size=size)
        found[kind].model.eval()
        found[kind].calibrate(EXAMPLES[kind])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_specs_and_vocabularies_go_there_and_back(kind: str) -> None:
    task = tasks()[kind]
    assert from_json(TaskSpec, to_json(task.spec)) == task.spec
    data = task.vocabularies.to_data()
    assert Vocabularies.from_data(data) == task.vocabularies


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_a_sum(kind: str) -> None:
    """The loss of a batch is the sum over its parts, and every parameter has a gradient."""
    task = tasks()[kind]
    task.model.eval()
    encoded = [task.encode(example) for example in EXAMPLES[kind][:6]]
    if kind == "language_modeling":  # texts continue each other, and only the first batch is fresh
        encoded = encoded[:1]
    whole = task.loss(task.collate(encoded))
    parts = [task.loss(task.collate([one])) for one in encoded]
    torch.testing.assert_close(whole.total, sum(p.total for p in parts))
    assert whole.count == sum(p.count for p in parts)
    whole.total.backward()
    assert all(p.grad is not None for p in task.model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_company_changes_no_answer(kind: str, learnt: dict[str, Task]) -> None:
    nothing = Example("\t" if kind == "pair_classification" else "")
    task, examples = learnt[kind], [*EXAMPLES[kind][:9], nothing]
    together = task.predict(examples, PredictionSpec(nbest=2))
    alone = [task.predict([example], PredictionSpec(nbest=2))[0] for example in examples]
    assert [p.output for p in together] == [p.output for p in alone]
    assert [p.score for p in together] == pytest.approx([p.score for p in alone], abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_say_what_was_asked(kind: str, learnt: dict[str, Task]) -> None:
    for prediction in learnt[kind].predict(EXAMPLES[kind][:5], PredictionSpec(nbest=2)):
        assert len(prediction.nbest) == 2 or kind == "tagging"  # one word may have few taggings
        assert prediction.output == prediction.nbest[0].output
        assert all(0 <= one.probability <= 1 for one in prediction.nbest)
        assert math.isfinite(prediction.score)


def test_classification_learns(learnt: dict[str, Task]) -> None:
    task = learnt["classification"]
    assert isinstance(task, Classification)
    evaluation = task.evaluate(EXAMPLES["classification"])
    assert task.main_metric == ("accuracy", True)
    assert evaluation.value >= 95
    assert list(evaluation.metrics) == ["accuracy", "macro_f1"]
    (prediction,) = task.predict([Example("the good old ship")], PredictionSpec(trace=True))
    assert prediction.output == "yes"
    assert prediction.trace is not None
    assert prediction.trace.targets == ("yes",)
    assert prediction.trace.sources == ("the", "good", "old", "ship")
    assert sum(prediction.trace.weights[0]) == pytest.approx(1)


def test_question_answering_learns_and_says_from_which_facts() -> None:
    task = tasks()["question_answering"]
    train(task, stories(300), epochs=15, rate=2e-2)
    task.model.eval()
    evaluation = task.evaluate(EXAMPLES["question_answering"], PredictionSpec(trace=True))
    assert task.main_metric == ("accuracy", True)
    assert evaluation.value >= 95
    found = supporting_facts(evaluation.examples, evaluation.predictions)
    assert found.value >= 90
    trace = evaluation.predictions[0].trace
    assert trace is not None
    assert trace.sources == tuple(EXAMPLES["question_answering"][0].text.split("\n")[:-1])
    assert trace.targets == ("step 1",)
    with pytest.raises(ValueRangeError, match="trace=True"):
        supporting_facts(evaluation.examples, task.predict(evaluation.examples))


def test_facts_too_old_to_be_read_are_counted() -> None:
    """The task reads six of nine facts, and the supporting fact is not among them."""
    facts = [f"Ann went to the {place}." for place in ("hall", "barn", "shop") * 3]
    example = Example("\n".join([*facts, "Where is Ann?"]), "hall", alignment="0-0")
    task = tasks()["question_answering"]
    predictions = task.predict([example], PredictionSpec(trace=True))
    (best,) = [prediction.trace.best for prediction in predictions if prediction.trace]
    assert best is not None
    read = [fact for fact, is_read in enumerate(best[0]) if is_read]
    assert len(best[0]) == 6
    assert supporting_facts([example], predictions).value == 0
    there = replace(example, alignment=f"{read[0] + 3}-0")
    assert supporting_facts([there], predictions).value == 100


def test_documents_are_read_as_sentences(learnt: dict[str, Task]) -> None:
    task = learnt["documents"]
    assert task.evaluate(EXAMPLES["documents"]).value >= 95
    (prediction,) = task.predict(
        [Example("the ship\n\na good old cat")], PredictionSpec(trace=True)
    )
    trace = prediction.trace
    assert prediction.output == "yes"
    assert trace is not None
    assert trace.layout[:3] == ("sentences", 2, 4)
    assert trace.sources == ("the", "ship", "", "", "a", "good", "old", "cat")
    assert sum(trace.weights[0]) == pytest.approx(1)
    assert trace.weights[0][2:4] == (0, 0)


def test_a_document_is_not_its_words_in_a_row(learnt: dict[str, Task]) -> None:
    """A document model reads the ends of sentences."""
    texts = ["the ship a good old cat", "the ship\na good old cat"]
    one, two = learnt["documents"].predict([Example(text) for text in texts])
    assert one.score != two.score


def test_pairs_are_learnt(learnt: dict[str, Task]) -> None:
    task = learnt["pair_classification"]
    assert isinstance(task, PairClassification)
    assert task.evaluate(EXAMPLES["pair_classification"]).value >= 95
    (prediction,) = task.predict([Example("a good ship\tgood ship")], PredictionSpec(trace=True))
    trace = prediction.trace
    assert prediction.output == "yes"
    assert trace is not None
    assert trace.targets == ("a", "good", "ship")
    assert trace.sources == ("good", "ship")
    assert all(sum(row) == pytest.approx(1) for row in trace.weights)


def test_words_of_a_pair_read_their_heads(learnt: dict[str, Task]) -> None:
    task = learnt["pair_classification"]
    assert isinstance(task, PairClassification)
    (trace,) = task.self_attentions("the good old ship")
    assert trace.best is not None
    heads = [sum(row) for row in trace.best]
    assert sorted(heads) == [0, 1, 1, 1]  # one word is the root
    plain = PairClassificationSpec(model=DecomposableAttentionSpec(hidden_size=8)).build_from(
        pairs(10)
    )
    assert plain.self_attentions("the good old ship") == ()


def test_heads_of_a_transformer_reach_the_explanation_of_a_pair() -> None:
    encoder = TransformerEncoderSpec(
        model_size=16, num_heads=4, special_heads=(HeadsSpec(layers=(1,)),)
    )
    model = DecomposableAttentionSpec(encoder=encoder, hidden_size=8)
    task = PairClassificationSpec(model=model).build_from(pairs(10))
    first, *_ = pairs(1)
    explanation = task.explain(first, Way())
    own = task.self_attentions(first.input_as(TextPair).first)
    assert [trace.kind for trace in own] == ["syntactic", "softmax", "softmax"]
    assert explanation.others[1:4] == own
    tree, mean, _ = own
    assert tree.best is not None
    assert sorted(sum(row) for row in tree.best) == [0, *[1] * (len(tree.best) - 1)]
    assert mean.best is None
    assert all(sum(row) == pytest.approx(1, abs=1e-5) for row in mean.weights)


def test_a_pair_of_one_text_is_refused() -> None:
    task = PairClassificationSpec(
        model=DecomposableAttentionSpec(encoder=HEADED, hidden_size=8)
    ).build_from(pairs(10))
    alone = Example("a good ship", "yes", where=Where("train.tsv", 3))
    with pytest.raises(
        DataError, match=r"train.tsv, line 3: one text, expected two, in 'a good sh"
    ):
        task.encode(alone)


def test_probabilities_of_all_labels_are_one(learnt: dict[str, Task]) -> None:
    (prediction,) = learnt["classification"].predict([Example("a cat")], PredictionSpec(nbest=5))
    assert sum(one.probability for one in prediction.nbest) == pytest.approx(1)


@pytest.mark.parametrize("kind", ["classification", "tagging"])
def test_words_begin_with_small_vectors(kind: str) -> None:
    assert tasks()[kind].model.encoder.embedding.weight.abs().max() <= 0.1


def test_labels_are_smoothed() -> None:
    for smoothing in (0.0, 0.2):
        torch.manual_seed(0)
        spec = ClassificationSpec(
            model=ClassifierSpec(encoder=ENCODER, dropout=0.0), label_smoothing=smoothing
        )
        task = spec.build_from(opinions(20))
        batch = task.collate([task.encode(example) for example in opinions(20)])
        loss = task.loss(batch).total
        scores = task.model(batch.tokens, batch.mask).log_probs
        expected = torch.nn.functional.cross_entropy(
            scores, batch.labels, label_smoothing=smoothing, reduction="sum"
        )
        torch.testing.assert_close(loss, expected)


def test_an_unseen_label_is_wrong_in_a_test_and_an_error_in_training() -> None:
    task = ClassificationSpec(model=ClassifierSpec(encoder=ENCODER)).build_from(opinions(20))
    strange = Example("a cat", "maybe", where=Where("train.tsv", 7))
    with pytest.raises(DataError, match=r"train.tsv, line 7: the label 'maybe' does not occur"):
        task.encode(strange)
    assert task.evaluate([strange]).value == 0
    task.calibrate([strange, *opinions(10)])


def test_tagging_learns(learnt: dict[str, Task]) -> None:
    task = learnt["tagging"]
    assert isinstance(task, Tagging)
    evaluation = task.evaluate(EXAMPLES["tagging"])
    assert task.main_metric == ("accuracy", True)
    assert evaluation.value >= 98
    assert "exact_match" in evaluation.metrics
    (prediction,) = task.predict([Example("the good ship")])
    assert prediction.output == "DET ADJ NOUN"
    assert len(prediction.token_probabilities) == 3
    assert min(prediction.token_probabilities) > 0.5


def test_spans_are_scored_as_spans() -> None:
    examples = [Example("a b c", "B-X I-X O"), Example("b c", "I-X O")]
    task = TaggingSpec(model=TaggerSpec(encoder=ENCODER)).build_from(examples)
    assert task.main_metric == ("span_f1", True)
    assert next(iter(task.evaluate(examples).metrics)) == "span_f1"


def test_words_and_tags_must_pair_up() -> None:
    task = TaggingSpec(model=TaggerSpec(encoder=ENCODER)).build_from(sentences(10))
    uneven = Example("the cat", "DET", where=Where("x.tsv", 3))
    with pytest.raises(DataError, match=r"x.tsv, line 3: 2 words and 1 tags.*Separate words"):
        task.encode(uneven)


def test_independent_tags_are_possible() -> None:
    task = TaggingSpec(model=TaggerSpec(encoder=ENCODER, crf=False)).build_from(sentences(30))
    train(task, sentences(30), epochs=12, rate=2e-2)
    assert task.evaluate(sentences(30)).value > 90


def test_language_modeling_learns(learnt: dict[str, Task]) -> None:
    """Letters are random, but the model can learn the alphabet and the ends of words."""
    task = learnt["language_modeling"]
    assert isinstance(task, LanguageModeling)
    perplexity = task.evaluate(EXAMPLES["language_modeling"]).value
    assert (
        perplexity
        < 0.8 * tasks()["language_modeling"].evaluate(EXAMPLES["language_modeling"]).value
    )
    outputs = [p.output for p in task.predict([Example("")], PredictionSpec(nbest=5, beam_size=5))]
    assert all(set(output) <= set("abcde") for output in outputs)


def test_perplexity_is_that_of_the_text_read_in_one_go(learnt: dict[str, Task]) -> None:
    """The perplexity does not depend on the cuts: the state carries over from one stretch to the
    next.
    """
    task = learnt["language_modeling"]
    examples = EXAMPLES["language_modeling"][:8]  # too short for parallel streams
    loss = task.loss(task.collate([task.encode(example) for example in examples]))
    expected = math.exp(loss.total.item() / loss.count.item())
    assert task.evaluate(examples).value == pytest.approx(expected, rel=1e-5)


def test_the_state_goes_on_and_gradients_do_not(learnt: dict[str, Task]) -> None:
    task = learnt["language_modeling"]
    batch = task.collate([task.encode(example) for example in EXAMPLES["language_modeling"][:4]])
    first = task.loss(batch)
    assert not first.state.layers[0].hidden.requires_grad
    later = type(batch)(batch.tokens, batch.targets, batch.mask, False)
    assert task.loss(later, first.state).total != first.total
    assert task.loss(later, None).total == first.total
    assert task.loss(batch, first.state).total == first.total  # the batch is marked as fresh


def test_continuations_are_continuations(learnt: dict[str, Task]) -> None:
    """The score of a continuation is the probability that the model gives it after the prompt."""
    task = learnt["language_modeling"]
    (prediction,) = task.predict([Example("ab")])
    (other,) = task.predict([Example("ab")])
    assert prediction == other  # the seed is the same
    with torch.no_grad():
        numbers = [3, *task.vocabularies.source.encode("ab" + prediction.output), 3]
        tokens = torch.tensor([numbers])
        log_probs = task.model.score(tokens[:, :-1], tokens[:, 1:]).log_prob[0, 2:]
    assert prediction.score == pytest.approx(log_probs.sum().item(), abs=1e-4)
    assert len(prediction.output) <= task.spec.max_length


def test_unknown_symbols_are_told_apart_in_slices(learnt: dict[str, Task]) -> None:
    examples = [*EXAMPLES["classification"][:8], Example("the green cat", "no")]
    names = [one.name for one in learnt["classification"].evaluate(examples).slices]
    assert "with unknown tokens" in names


def test_subwords_are_learnt_with_the_vocabulary() -> None:
    spec = ClassificationSpec(
        source=SentencePieceSpec(num_pieces=300),
        model=ClassifierSpec(encoder=TextEncoderSpec(embedding_size=4, hidden_size=4)),
    )
    task = spec.build_from(opinions(60))
    assert isinstance(task.spec.source, SentencePieceSpec)
    assert task.spec.source.model
    assert task.predict([Example("the catship")])
