"""TransformerDecoderSpec as JSON, by single settings, with special heads, and in a whole task."""

from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.bundles import load_bundle, save_bundle
from foveal.decoding import sample, stochastic_beam_search
from foveal.errors import ValueRangeError
from foveal.inspection.aligning._forced_attention import forced_traces
from foveal.models import (
    HeadsSpec,
    LocalSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SigmoidSpec,
    TransformerDecoderSpec,
    TransformerEncoderSpec,
)
from foveal.networks import TransformerDecoder
from foveal.specs import from_json, to_json, with_setting
from foveal.tasks import PredictionSpec, Transduction, TransductionSpec
from foveal.tasks.explaining._explanation import Way
from tests.tasks.tiny import train, upper_cased

SEGMENT = HeadsSpec(attention=SegmentSpec(), layers=(2,))
SMALL: dict[str, Any] = {
    "model_size": 16,
    "num_heads": 2,
    "dropout": 0.0,
    "positions": "sinusoidal",
}
EXAMPLES = upper_cased(30, letters="abc", longest=3)


def task_with(**choices: Any) -> Transduction:
    torch.manual_seed(0)
    model = Seq2SeqSpec(
        encoder=TransformerEncoderSpec(**SMALL, num_layers=1),
        decoder=TransformerDecoderSpec(**SMALL, **choices),
    )
    return TransductionSpec(model=model).build_from(EXAMPLES)


def test_a_spec_reads_back() -> None:
    decoder = TransformerDecoderSpec(num_heads=8, special_heads=(SEGMENT,), attention=LocalSpec())
    spec = Seq2SeqSpec(decoder=decoder)
    assert from_json(Seq2SeqSpec, to_json(spec)) == spec


def test_single_settings_choose_a_transformer_and_its_heads() -> None:
    spec = with_setting(Seq2SeqSpec(), "decoder", "transformer")
    spec = with_setting(spec, "decoder.attention", "sigmoid")
    heads = '[{"attention": {"kind": "segment"}, "layers": [2]}]'
    spec = with_setting(spec, "decoder.special_heads", heads)
    expected = TransformerDecoderSpec(attention=SigmoidSpec(), special_heads=(SEGMENT,))
    assert spec.decoder == expected
    assert spec.decoder.attention_kind == "segment+sigmoid"


def test_special_heads_read_the_memory_in_their_layers() -> None:
    spec = TransformerDecoderSpec(model_size=16, special_heads=(SEGMENT,))
    decoder = spec.build(9, 6, 6)
    assert isinstance(decoder, TransformerDecoder)
    counts = [layer.cross.head_counts for layer in decoder.layers_in_order()]
    assert counts == [(4,), (1, 3)]
    assert not spec.is_exclusive
    assert TransformerDecoderSpec(
        special_heads=(HeadsSpec(attention=SegmentSpec(), layers=(1,)),)
    ).is_exclusive


def test_heads_that_do_not_fit_are_refused_in_words() -> None:
    with pytest.raises(ValueRangeError, match="layers from 1 to 1, got 2"):
        TransformerDecoderSpec(num_layers=1, special_heads=(SEGMENT,)).build(9, 6, 6)
    with pytest.raises(ValueRangeError, match="got syntactic, in which the words"):
        TransformerDecoderSpec(special_heads=(HeadsSpec(),)).build(9, 6, 6)
    with pytest.raises(ValueRangeError, match=r"copy needs .* got the attention segment\+softmax"):
        TransformerDecoderSpec(copy=True, special_heads=(SEGMENT,)).build(9, 6, 6)


def test_a_task_learns_predicts_explains_and_loads(tmp_path: Path) -> None:
    task = task_with(num_layers=1)
    train(task, EXAMPLES, epochs=30, rate=1e-2, batch_size=15)
    task.model.eval()
    assert task.evaluate(EXAMPLES).value < 10  # percent of words with an error
    settings = PredictionSpec(beam_size=3, nbest=2, trace=True)
    found = task.predict(EXAMPLES[:9], settings)
    assert found[0] == task.predict(EXAMPLES[:1], settings)[0]  # to the bit
    save_bundle(task, tmp_path)
    assert load_bundle(tmp_path).predict(EXAMPLES[:9], settings) == found
    trace = found[0].trace
    assert trace is not None
    assert trace.kind == "softmax"
    told = task.explain(EXAMPLES[0], Way(beam_size=2))
    assert told.output == found[0].output
    rows = [step.weights for step in told.steps if step.weights is not None]
    torch.testing.assert_close(
        torch.tensor(rows[: len(trace.weights)]), torch.tensor(trace.weights)
    )


def test_traces_of_mixed_heads_name_both_attentions() -> None:
    task = task_with(special_heads=(SEGMENT,))
    task.model.eval()
    (trace,) = forced_traces(task, EXAMPLES[:1])
    assert trace.kind == "segment+softmax"
    assert len(trace.weights) == len(EXAMPLES[0].target or "") + 1


@pytest.mark.parametrize("search", [sample, stochastic_beam_search])
def test_random_searches_report_the_probabilities_of_teacher_forcing(search: Any) -> None:
    model = task_with().model.eval()
    source = torch.randint(4, 7, (3, 5))
    options = {"begin": 2, "end": 3, "max_length": 6, "num_samples": 4}
    generator = torch.Generator().manual_seed(0)
    drawn = search(model.stepper(), model.start(source), generator=generator, **options)
    for n in range(4):
        tokens = drawn.tokens[:, n]
        read = torch.cat([torch.full((3, 1), 2), tokens[:, :-1]], 1)
        with torch.no_grad():
            taught = (
                model(source, None, read).log_probs.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
            )
        real = torch.arange(tokens.shape[1]) < drawn.lengths[:, n, None]
        expected = torch.where(real, taught, 0.0)
        torch.testing.assert_close(drawn.log_probs[:, n], expected, rtol=1e-4, atol=1e-4)
