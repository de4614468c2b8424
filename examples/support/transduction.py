"""Training of the sequence-to-sequence examples, which generate their data."""

import argparse
from collections.abc import Iterable
from time import perf_counter
from typing import NamedTuple

import torch

from foveal.data import Seq2SeqBatch
from foveal.models import Seq2Seq

from .texts import Descent


class Budget(NamedTuple):
    """The length of training of every model of an example, and the random seed."""

    updates: int
    seed: int


def parse_budget(*, updates: int) -> Budget:
    """Read the command line, seed torch, and use one thread: a step is too small for more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=updates, help="batches to train on")
    parser.add_argument("--seed", type=int, default=0)
    budget = Budget(**vars(parser.parse_args()))
    torch.manual_seed(budget.seed)
    torch.set_num_threads(1)
    return budget


def train(
    model: Seq2Seq, batches: Iterable[Seq2SeqBatch], num_updates: int, *, learning_rate: float
) -> Seq2Seq:
    """Minimize -log p of the target tokens, with one training step for each batch.

    Args:
        model: the model to train.
        batches: the batches, at least `num_updates`.
        num_updates: the number of training steps.
        learning_rate: the maximum of the one-cycle schedule.
    """
    descent = Descent(model, learning_rate=learning_rate, num_steps=num_updates)
    every, total, began = max(1, num_updates // 5), 0.0, perf_counter()
    for update, batch in zip(range(1, num_updates + 1), batches, strict=False):
        scored = model.score(
            batch.source, batch.source_mask, batch.tokens, batch.targets, batch.mask
        )
        total += descent.step(scored.loss.sum() / batch.mask.sum())
        if update % every == 0:
            seconds = perf_counter() - began
            print(f"update {update}, loss {total / every:.3f}, {seconds:.0f} s", flush=True)
            total = 0.0
    return model.eval()
