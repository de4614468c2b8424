"""Scheduled sampling: some of what a decoder reads in training is its own guess.

    y'_t = argmax p( . | y_<t, x)  with probability s,  y_t  otherwise

so that it learns to go on after an error, as it has to when it decodes freely. With s = 0 this is
teacher forcing. The guesses are made with the true tokens before them, all at once, in a forward pass
without gradients, rather than one after another.

References: Bengio et al. 2015; Duckworth et al. 2019 (guesses in parallel).

Axes: B examples, T target places.
"""

from dataclasses import replace
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from ..data import Seq2SeqBatch
from ..data._batches import PictureBatch
from ..errors import SpecError
from ..tasks import AbstractTask
from ..tasks.base._writing import AbstractWriting

Batch = TypeVar("Batch", Seq2SeqBatch, PictureBatch)


def with_own_inputs(task: AbstractTask[Any], batch: Batch, share: float) -> Batch:
    """The batch with a share of what the decoder reads replaced by its guesses; the begin symbol
    and what it should say stay.
    """
    writing = checked_for_own_inputs(task)
    text = writing.text_of(batch)
    guesses = _guesses(writing, batch)
    before = torch.cat([text.tokens[:, :1], guesses[:, :-1]], 1)
    own = torch.rand(text.tokens.shape) < share
    own[:, 0] = False
    tokens = torch.where(own & text.mask, before, text.tokens)
    return writing.with_text(batch, replace(text, tokens=tokens))


def checked_for_own_inputs(task: AbstractTask[Any]) -> AbstractWriting[Any, Any]:
    """The task, if it has a decoder that could read its own guesses."""
    if not isinstance(task, AbstractWriting):
        raise SpecError(
            f"TrainingSpec: scheduled_sampling is about decoders that read what they have written, got a "
            f"{type(task).__name__}, which does not. Set scheduled_sampling to 0."
        )
    return task


@torch.no_grad()
def _guesses(task: AbstractWriting[Any, Any], batch: Any) -> Int[Tensor, "B T"]:
    """The likeliest token at every place, after the true ones."""
    text = task.text_of(batch)
    return task.model(*task.source_of(batch), text.tokens, text.mask).log_probs.argmax(-1)
