"""Searches with real models, compared with teacher forcing."""

from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.decoding import CoveragePenalty, beam_search, greedy, sample
from foveal.models import (
    DecoderSpec,
    LanguageModelSpec,
    SegmentSpec,
    Seq2Seq,
    Seq2SeqSpec,
    SoftmaxSpec,
    TransformerDecoderSpec,
)

pytestmark = pytest.mark.slow

BEGIN, END = 2, 3
SIZES: dict[str, Any] = {"embedding_size": 16, "hidden_size": 16}
DECODERS = {
    "softmax": DecoderSpec(**SIZES, attention=SoftmaxSpec()),
    "segment": DecoderSpec(**SIZES, attention=SegmentSpec()),
    "input feeding": DecoderSpec(**SIZES, attention=SoftmaxSpec(), input_feeding=True),
    "before": DecoderSpec(**SIZES, attention=SoftmaxSpec(), attend="before", deep_output=True),
    "no attention": DecoderSpec(**SIZES, attention=None),
    "Transformer": TransformerDecoderSpec(model_size=16, num_heads=2),
}
HOW: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": 9}


def model_of(name: str) -> Seq2Seq:
    """Build a model with large weights: its outputs differ from item to item, and end."""
    torch.manual_seed(0)
    spec = Seq2SeqSpec(decoder=DECODERS[name])
    model = spec.build(source_vocabulary=20, target_vocabulary=12).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.7)
    return model


def sources() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    mask = torch.tensor([6, 3, 5, 1, 4, 6]).unsqueeze(-1) > torch.arange(6)
    return torch.randint(20, (6, 6), generator=generator), mask


@pytest.mark.parametrize("name", DECODERS)
def test_outputs_are_what_teacher_forcing_says(name: str) -> None:
    model, (source, mask) = model_of(name), sources()
    state = model.start(source, mask)
    found = beam_search(model.stepper(), state, beam_size=4, nbest=3, with_weights=True, **HOW)
    assert len(found.tokens.flatten(0, 1).unique(dim=0)) > 6, "a test of few outputs"
    for n in range(3):
        targets = found.tokens[:, n]
        read = torch.cat([torch.full((6, 1), BEGIN), targets[:, :-1]], 1)
        real = torch.arange(targets.shape[1]) < found.lengths[:, n, None]
        with torch.no_grad():
            taught = model(source, mask, read, real)
        expected = taught.log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(found.log_probs[:, n], expected, rtol=1e-4, atol=1e-4)
        if taught.weights is None:
            assert found.weights is None
        else:
            assert found.weights is not None
            weights = torch.where(real.unsqueeze(-1), taught.weights, 0.0)
            torch.testing.assert_close(found.weights[:, n], weights, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.scores, found.log_probs.sum(-1))


@pytest.mark.parametrize("name", DECODERS)
def test_greedy_is_the_most_probable_next_token(name: str) -> None:
    model, (source, mask) = model_of(name), sources()
    found = greedy(model.stepper(), model.start(source, mask), **HOW)
    tokens = torch.full((6, 1), BEGIN)
    for t in range(found.tokens.shape[2] - 1):
        with torch.no_grad():
            following = model(source, mask, tokens).log_probs[:, -1].argmax(-1)
        going = t < found.lengths[:, 0] - 1
        assert torch.equal(found.tokens[going, 0, t], following[going])
        tokens = torch.cat([tokens, found.tokens[:, 0, t, None]], 1)


@pytest.mark.parametrize("name", DECODERS)
def test_an_item_alone_is_an_item_in_a_batch(name: str) -> None:
    model, (source, mask) = model_of(name), sources()
    together = beam_search(model.stepper(), model.start(source, mask), nbest=3, **HOW)
    for item in range(6):
        length = int(mask[item].sum())
        alone = model.start(source[item : item + 1, :length], mask[item : item + 1, :length])
        by_itself = beam_search(model.stepper(), alone, nbest=3, **HOW)
        assert by_itself.token_lists(END)[0] == together.token_lists(END)[item]
        torch.testing.assert_close(by_itself.scores[0], together.scores[item], rtol=1e-4, atol=1e-4)


def test_coverage_counts_the_places_of_a_source() -> None:
    model, (source, mask) = model_of("softmax"), sources()
    state, stepper = model.start(source, mask), model.stepper()
    penalty = CoveragePenalty(beta=0.5, mask=mask)
    found = beam_search(stepper, state, coverage_penalty=penalty, with_weights=True, **HOW)
    assert found.weights is not None
    read = found.weights.sum(2)
    expected = found.totals + penalty.score(read)
    torch.testing.assert_close(found.scores, expected, rtol=1e-4, atol=1e-4)


def test_a_language_model_writes() -> None:
    torch.manual_seed(0)
    model = LanguageModelSpec(embedding_size=8).build(vocabulary=12).eval()
    drawn = sample(
        model.stepper(),
        model.start(3),
        num_samples=5,
        generator=torch.Generator().manual_seed(0),
        **HOW,
    )
    tokens = drawn.tokens.flatten(0, 1)
    read = torch.cat([torch.full((15, 1), BEGIN), tokens[:, :-1]], 1)
    with torch.no_grad():
        taught = model(read).log_probs.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    real = torch.arange(tokens.shape[1]) < drawn.lengths.flatten().unsqueeze(-1)
    expected = torch.where(real, taught, 0.0).unflatten(0, (3, 5))
    torch.testing.assert_close(drawn.log_probs, expected, rtol=1e-4, atol=1e-4)
