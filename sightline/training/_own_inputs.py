"""Scheduled sampling: some of what a decoder reads in training is its own guess.

    y'_t = argmax p( . | y_<t, x)  with probability s,  y_t  otherwise

so that it learns to go on after an error, as it has to when it decodes freely. With s = 0 this is
teacher forcing. The guesses are made with the true tokens before them, all at once, in a forward pass
without gradients, rather than one after another.

References: Bengio et al. 2015; Duckworth et al. 2019 (guesses in parallel).

Axes: B examples, T target places.
"""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from ..data import SequenceBatch
from ..errors import SpecError
from ..models import Seq2Seq
from ..tasks import AbstractTask, Transduction


def with_own_inputs(task: AbstractTask[Any], batch: SequenceBatch, share: float) -> SequenceBatch:
    """The batch with a share of what the decoder reads replaced by its guesses; the begin symbol
    and what it should say stay.
    """
    guesses = _guesses(checked_for_own_inputs(task).model, batch)
    before = torch.cat([batch.tokens[:, :1], guesses[:, :-1]], 1)
    own = torch.rand(batch.tokens.shape) < share
    own[:, 0] = False
    return replace(batch, tokens=torch.where(own & batch.mask, before, batch.tokens))


def checked_for_own_inputs(task: AbstractTask[Any]) -> Transduction:
    """The task, if it has a decoder that could read its own guesses."""
    if not isinstance(task, Transduction):
        raise SpecError(
            f"TrainingSpec: own_inputs is about decoders that read what they have written, got a "
            f"{type(task).__name__}, which does not. Set own_inputs to 0."
        )
    return task


@torch.no_grad()
def _guesses(model: Seq2Seq, batch: SequenceBatch) -> Int[Tensor, "B T"]:
    """The likeliest token at every place, after the true ones."""
    source, source_mask = batch.source, batch.source_mask
    if batch.features is not None and batch.features_mask is not None:
        source, source_mask = model.with_features(
            batch.features, batch.features_mask, source, source_mask
        )
    return model(source, source_mask, batch.tokens, batch.mask).log_probs.argmax(-1)
