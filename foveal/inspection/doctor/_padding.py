"""Padding invariance: the content and the amount of padding must not change any result.

    more     largest change of log p(answer) when every text gets three more positions of padding
    holds    largest change of log p(answer) when all padding, old and new, is another token
    marked   fraction of positions that are marked as real but hold the padding token

Axes: B examples.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ...data import Seq2SeqBatch
from ...data._batches import LabeledBatch, PairBatch, TaggedBatch, TextBatch
from ...data.vocabularies._vocabulary import PADDING, UNKNOWN
from ...tasks import AbstractTask

_MORE = 3  # positions
Batch = Seq2SeqBatch | LabeledBatch | PairBatch | TaggedBatch | TextBatch


@torch.no_grad()
def padding(task: AbstractTask[Any], batch: Any, log_prob: Tensor) -> dict[str, float]:
    """Measure the effect of padding on the likelihoods of a batch; `log_prob` is computed from the unchanged batch."""
    if not isinstance(batch, Batch):
        return {}
    wider = _with_more(batch)
    padded = task.forced(wider).log_prob
    other = task.forced(_with_other_symbols(wider)).log_prob
    num_marked, num_real = 0, 0
    for tokens, mask in _read(batch):
        num_marked += int(((tokens == PADDING) & mask).sum())
        num_real += int(mask.sum())
    return {
        "more": float((padded - log_prob).abs().max()),
        "holds": float((padded - other).abs().max()),
        "marked": num_marked / max(1, num_real),
    }


def _read(batch: Batch) -> tuple[tuple[Tensor, Tensor], ...]:
    """Return the input tokens and their mask; for a pair, of both texts."""
    if isinstance(batch, Seq2SeqBatch):
        return ((batch.source, batch.source_mask),)
    if isinstance(batch, PairBatch):
        return (batch.first, batch.first_mask), (batch.second, batch.second_mask)
    return ((batch.tokens, batch.mask),)


def _with_other_symbols(batch: Batch) -> Batch:
    """Replace the padding token. Every vocabulary has the unknown token, and no text is padded with it."""
    if isinstance(batch, Seq2SeqBatch):
        return replace(
            batch,
            source=batch.source.masked_fill(~batch.source_mask, UNKNOWN),
            tokens=batch.tokens.masked_fill(~batch.mask, UNKNOWN),
            targets=batch.targets.masked_fill(~batch.mask, UNKNOWN),
        )
    if isinstance(batch, PairBatch):
        return replace(
            batch,
            first=batch.first.masked_fill(~batch.first_mask, UNKNOWN),
            second=batch.second.masked_fill(~batch.second_mask, UNKNOWN),
        )
    return replace(batch, tokens=batch.tokens.masked_fill(~batch.mask, UNKNOWN))


def _with_more(batch: Batch) -> Batch:
    if isinstance(batch, Seq2SeqBatch):
        names = ("source", "source_mask", "tokens", "targets", "mask")
        return replace(batch, **_wider(batch, names), alignment=None)
    if isinstance(batch, LabeledBatch):
        return replace(batch, **_wider(batch, ("tokens", "mask")))
    if isinstance(batch, PairBatch):
        return replace(batch, **_wider(batch, ("first", "first_mask", "second", "second_mask")))
    if isinstance(batch, TaggedBatch):
        spelling = batch.spelling
        wider = None if spelling is None else pad(spelling, (0, 0, 0, _MORE))
        return replace(batch, **_wider(batch, ("tokens", "tags", "mask")), spelling=wider)
    return replace(batch, **_wider(batch, ("tokens", "targets", "mask")))


def _wider(batch: Batch, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: pad(getattr(batch, name), (0, _MORE)) for name in names}
