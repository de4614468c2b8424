"""The training loop of the sequence-to-sequence examples."""

import sys
from itertools import count

import pytest
import torch

from examples.support.transduction import Budget, parse_budget, train
from foveal.data import Encoded, Seq2SeqBatch, collate_seq2seq
from foveal.models import DecoderSpec, Seq2Seq, Seq2SeqSpec, TextEncoderSpec

PAIRS = [Encoded([4, 5], [5, 4]), Encoded([5, 6, 4], [6])]


def small_model() -> Seq2Seq:
    torch.manual_seed(0)
    return Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=8, hidden_size=8, dropout=0.0),
        decoder=DecoderSpec(embedding_size=8, hidden_size=8, dropout=0.0),
    ).build(source_vocabulary=7, target_vocabulary=7)


def loss_of(model: Seq2Seq, batch: Seq2SeqBatch) -> float:
    scored = model.score(batch.source, batch.source_mask, batch.tokens, batch.targets, batch.mask)
    return (scored.loss.sum() / batch.mask.sum()).item()


def test_training_takes_one_batch_for_each_update_and_lowers_the_loss() -> None:
    batch, taken, model = collate_seq2seq(PAIRS), count(), small_model()
    before = loss_of(model, batch)
    trained = train(model, (batch for _ in taken), 60, learning_rate=0.05)
    assert trained is model
    assert not model.training
    assert loss_of(model, batch) < before / 10
    assert next(taken) == 60


def test_the_loss_that_is_printed_is_the_mean_over_real_tokens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    batch, model = collate_seq2seq(PAIRS), small_model()
    expected = loss_of(model, batch)
    train(model, [batch], 1, learning_rate=1e-3)
    assert f"update 1, loss {expected:.3f}," in capsys.readouterr().out


def test_the_command_line_says_how_long_and_from_what_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["example.py", "--seed", "3"])
    assert parse_budget(updates=7) == Budget(updates=7, seed=3)
    drawn = torch.rand(())
    monkeypatch.setattr(sys, "argv", ["example.py", "--updates", "2"])
    assert parse_budget(updates=7) == Budget(updates=2, seed=0)
    assert torch.equal(drawn, torch.rand((), generator=torch.Generator().manual_seed(3)))
