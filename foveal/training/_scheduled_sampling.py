"""Scheduled sampling: during training, the decoder reads some of its predictions.

    y'_t = argmax p( . | y_<t, x)  with probability s,  y_t  otherwise

The decoder thereby learns to continue after an error, as it must in free decoding. With s = 0, this is teacher forcing.
The predictions are computed in parallel from the true prefixes, in one forward pass without gradients, rather than one
after another.

References: Bengio et al. 2015; Duckworth et al. 2019 (parallel predictions).

Axes: B examples, T target positions.
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
    """Replace a fraction of the decoder inputs of a batch by predictions; the begin token and the targets stay."""
    writing = checked_for_own_inputs(task)
    text = writing.text_of(batch)
    guesses = _guesses(writing, batch)
    before = torch.cat([text.tokens[:, :1], guesses[:, :-1]], 1)
    own = torch.rand(text.tokens.shape, device=text.tokens.device) < share
    own[:, 0] = False
    tokens = torch.where(own & text.mask, before, text.tokens)
    return writing.with_text(batch, replace(text, tokens=tokens))


def checked_for_own_inputs(task: AbstractTask[Any]) -> AbstractWriting[Any, Any]:
    """Return the task if it has a decoder that can read its predictions; otherwise raise `SpecError`."""
    if not isinstance(task, AbstractWriting):
        raise SpecError(
            f"TrainingSpec: scheduled_sampling needs a decoder that reads its own outputs, got a "
            f"{type(task).__name__}. Set scheduled_sampling to 0."
        )
    return task


@torch.no_grad()
def _guesses(task: AbstractWriting[Any, Any], batch: Any) -> Int[Tensor, "B T"]:
    """Return the most probable token at every position, given the true prefix."""
    text = task.text_of(batch)
    return task.model(*task.source_of(batch), text.tokens, text.mask).log_probs.argmax(-1)
