"""Language modeling with self-attention: pieces of a text, continuations, explanations, settings."""

import pytest
import torch

from foveal.data import Example, InMemory
from foveal.errors import ValueRangeError
from foveal.models import (
    DotSpec,
    HeadsSpec,
    SegmentSpec,
    SyntacticSpec,
    TransformerLanguageModelSpec,
)
from foveal.specs import from_json, to_json, with_setting
from foveal.tasks import LanguageModeling, LanguageModelingSpec, PredictionSpec
from foveal.tasks.explaining._explanation import END_NAME, Way
from foveal.testing import check_model

from .tiny import upper_cased

EXAMPLES = upper_cased(40)
SEGMENTS = HeadsSpec(attention=SegmentSpec(scorer=DotSpec()), layers=(2,))
MODEL = TransformerLanguageModelSpec(
    model_size=16, num_layers=2, num_heads=2, context=8, dropout=0.0, special_heads=(SEGMENTS,)
)


def language_modeling(bptt_length: int = 5) -> LanguageModeling:
    torch.manual_seed(0)
    spec = LanguageModelingSpec(model=MODEL, bptt_length=bptt_length, max_length=12)
    task = spec.build_from(EXAMPLES)
    task.model.eval()
    return task


def test_the_model_obeys_the_laws() -> None:
    torch.manual_seed(0)
    check_model(MODEL.build(vocabulary=9), torch.randint(9, (4, 5)), aligned=0)


def test_a_spec_read_back_builds_the_same_model() -> None:
    again = from_json(LanguageModelingSpec, to_json(LanguageModelingSpec(model=MODEL)))
    assert again.model == MODEL
    chosen = with_setting(LanguageModelingSpec(), "model", "transformer")
    assert isinstance(chosen.model, TransformerLanguageModelSpec)
    assert with_setting(chosen, "model.context", "64").model == TransformerLanguageModelSpec(
        context=64
    )


def test_the_pieces_of_a_text_give_the_perplexity_of_the_text() -> None:
    size = sum(len(example.text) + 1 for example in EXAMPLES)
    whole = language_modeling(size).evaluate(EXAMPLES).value
    # Pieces of a third: shorter ones would be read in parallel, each part from an empty context.
    pieces = language_modeling(size // 3).evaluate(EXAMPLES).value
    assert pieces == pytest.approx(whole, rel=1e-5)


def test_it_learns_across_pieces() -> None:
    task = language_modeling()
    before = task.evaluate(EXAMPLES).value
    optimizer, state = torch.optim.Adam(task.model.parameters(), lr=1e-2), None
    for _ in range(3):
        for batch in task.batches(InMemory(tuple(EXAMPLES)), batch_size=4):
            loss = task.loss(batch, state)
            optimizer.zero_grad()
            loss.total.backward()
            optimizer.step()
            state = loss.state
    assert task.evaluate(EXAMPLES).value < 0.7 * before


def test_a_continuation_does_not_depend_on_the_rest_of_the_batch() -> None:
    task, settings = language_modeling(), PredictionSpec(beam_size=2, nbest=2)
    texts = [Example(text) for text in ("a", "bc", "edcba", "abcdeabcdeabcde", "abcdeabcdeabcdx")]
    together = task.predict(texts, settings)
    assert together == [task.predict([text], settings)[0] for text in texts]
    assert len({each.output for each in together}) > 1


def test_an_explanation_has_the_tokens_that_each_prediction_reads() -> None:
    found = language_modeling().explain(Example("abcab"), Way())
    assert [trace.kind for trace in found.others] == ["softmax", "segment", "softmax"]
    for trace in found.others:
        assert trace.sources == (END_NAME, "a", "b", "c", "a", "b")
        assert trace.targets == ("a", "b", "c", "a", "b", END_NAME)
        weights = torch.tensor(trace.weights)
        assert not weights.triu(1).any()
        if trace.kind == "softmax":
            torch.testing.assert_close(weights.sum(-1), torch.ones(6))


def test_heads_with_a_tree_of_the_whole_text_are_refused() -> None:
    spec = TransformerLanguageModelSpec(special_heads=(HeadsSpec(attention=SyntacticSpec()),))
    with pytest.raises(ValueRangeError, match="got special_heads with syntactic, which chooses"):
        spec.build(vocabulary=9)
