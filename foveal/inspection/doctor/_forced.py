"""What a model says of the right answers: likelihoods, guesses and attention under teacher forcing.

    log p(y | x) = sum over t of log p(y_t | y_<t, x)

Axes: B examples, T target symbols (for a classifier one), S source places, C classes, N rows of any
kind.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...data import Seq2SeqBatch
from ...data._batches import LabeledBatch, PairBatch, TaggedBatch, TextBatch, move
from ...tasks import (
    AbstractTask,
    Classification,
    LanguageModeling,
    PairClassification,
    Tagging,
    Transduction,
)


class Looked(NamedTuple):
    """Weights of attention, and which queries and places are real."""

    weights: Float[Tensor, "N T S"]  # several heads are several rows
    queries: Bool[Tensor, "N T"]
    places: Bool[Tensor, "N S"]


class Forced(NamedTuple):
    """The right answers under a model. A task of another kind has its loss in one piece."""

    log_prob: Float[Tensor, " B"]  # of each answer, with its gradient
    num_symbols: int
    num_right: int | None  # symbols that the model would have guessed; None where nobody asks
    looked: Looked | None = None


def forced(task: AbstractTask[Any], batch: Any) -> Forced:
    """Read a batch with its right answers; the model is as the caller has set it."""
    if isinstance(task, Transduction):
        return _transduced(task, move(batch, task.device))
    if isinstance(task, Classification):
        return _classified(task, move(batch, task.device))
    if isinstance(task, PairClassification):
        return _matched(task, move(batch, task.device))
    if isinstance(task, Tagging):
        return _tagged(task, move(batch, task.device))
    if isinstance(task, LanguageModeling):
        return _continued(task, move(batch, task.device))
    loss = task.loss(batch)
    return Forced(-loss.total.unsqueeze(0), int(loss.count), None)


def guessing(task: AbstractTask[Any]) -> float:
    """The loss, for each symbol, of a guess that gives all outputs the same probability; 0 where
    nobody knows how many there are.
    """
    if isinstance(task, Transduction | LanguageModeling):
        return math.log(task.model.num_tokens)
    labels = task.vocabularies.labels
    is_labelled = isinstance(task, Classification | PairClassification | Tagging)
    if is_labelled and labels is not None:
        return math.log(len(labels.names))
    return 0.0


def _transduced(task: Transduction, batch: Seq2SeqBatch) -> Forced:
    source = task.source_of(batch)
    unrolled = task.model(source.tokens, source.mask, batch.tokens, batch.mask)
    chosen = unrolled.log_probs.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1)
    right = (unrolled.log_probs.argmax(-1) == batch.targets) & batch.mask
    weights = unrolled.weights
    return Forced(
        (chosen * batch.mask).sum(-1),
        int(batch.mask.sum()),
        int(right.sum()),
        None if weights is None else _looked(weights, batch.mask, source.mask),
    )


def _classified(task: Classification, batch: LabeledBatch) -> Forced:
    classified = task.model(batch.tokens, batch.mask)
    weights, looked = classified.weights, None
    if weights is not None:
        # The words of a document are places like those of a text.
        once = torch.ones_like(batch.labels, dtype=torch.bool).unsqueeze(-1)
        looked = _looked(weights.flatten(1).unsqueeze(-2), once, batch.mask.flatten(1))
    return _labeled(classified.log_probs, batch.labels, looked)


def _matched(task: PairClassification, batch: PairBatch) -> Forced:
    matched = task.model(batch.first, batch.first_mask, batch.second, batch.second_mask)
    looked = _looked(matched.first.weights, batch.first_mask, batch.second_mask)
    return _labeled(matched.log_probs, batch.labels, looked)


def _labeled(
    log_probs: Float[Tensor, "B C"], labels: Int[Tensor, " B"], looked: Looked | None
) -> Forced:
    chosen = log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return Forced(chosen, len(labels), int((log_probs.argmax(-1) == labels).sum()), looked)


def _tagged(task: Tagging, batch: TaggedBatch) -> Forced:
    taggings = task.taggings(batch)
    right = (taggings.argmax() == batch.tags) & batch.mask
    return Forced(taggings.log_prob(batch.tags), int(batch.mask.sum()), int(right.sum()))


def _continued(task: LanguageModeling, batch: TextBatch) -> Forced:
    # The loss of each symbol has a gradient, its log-probability in `TokenLosses` has none.
    scored = task.model.score(batch.tokens, batch.targets, batch.mask)
    return Forced(-scored.loss.sum(-1), int(batch.mask.sum()), None)


def _looked(weights: Tensor, queries: Tensor, places: Tensor) -> Looked:
    """Weights (B, T, S), or (B, H, T, S) of several heads."""
    if weights.ndim == 4:
        heads = weights.shape[1]
        queries, places = (mask.repeat_interleave(heads, 0) for mask in (queries, places))
        weights = weights.flatten(0, 1)
    return Looked(weights.detach(), queries, places)
