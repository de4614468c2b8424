"""Erasing: how much less probable an answer is when one place of the input cannot be read.

    change[s, t] = log p( y_t | y_<t, x with place s unknown ) - log p( y_t | y_<t, x )

All places of an input are erased at once, one in each row of a batch. The answer is that of the
whole input. A symbol that is unknown is still a symbol: the input keeps its length.

Axes: S places of the input, T symbols of the answer, R = S + 1 inputs: the whole one, then those
with one place erased.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...data import BEGIN, END, Example
from ...data.vocabularies._vocabulary import UNKNOWN
from ...errors import ValueRangeError
from ...masking import mask_from_lengths
from ...tasks import AbstractTask, Classification, PairClassification, Transduction


def erased(
    task: AbstractTask[Any], example: Example, tokens: Sequence[str]
) -> Float[np.ndarray, "S T"]:
    """The change of every symbol's log-probability for every place.

    Args:
        task: transduction, or classification of texts, documents or pairs of texts.
        example: the input.
        tokens: the symbols of the answer, the end symbol as "" if it counts too; of classification
            one label.
    """
    with task.answering():
        if isinstance(task, Transduction):
            log_probs = _transduced(task, example, tokens)
        elif isinstance(task, Classification):
            log_probs = _classified(task, example, tokens)
        elif isinstance(task, PairClassification):
            log_probs = _matched(task, example, tokens)
        else:
            raise ValueRangeError(
                f"erased: expected transduction or classification, whose attention is asked about, "
                f"got {task.spec.kind}. Leave the erasing out."
            )
    return (log_probs[1:] - log_probs[:1]).double().cpu().numpy()


def _transduced(
    task: Transduction, example: Example, tokens: Sequence[str]
) -> Float[Tensor, "R T"]:
    target = task.vocabularies.target
    assert target is not None
    written = [
        END if token == "" else number
        for token, number in zip(tokens, target.encode(tokens), strict=True)
    ]
    sources = _without_each(task.read([example]).tokens)
    targets = torch.tensor([written], device=task.device).expand(len(sources), -1)
    before = torch.full_like(targets[:, :1], BEGIN)
    return task.model.score(
        sources, None, torch.cat([before, targets[:, :-1]], 1), targets
    ).log_prob


def _classified(
    task: Classification, example: Example, tokens: Sequence[str]
) -> Float[Tensor, "R T"]:
    numbers = task.vocabularies.source.encode(task.symbols(example)) or [UNKNOWN]
    sources = _without_each(torch.tensor([numbers], device=task.device))
    if not task.is_of_documents:
        return task.model(sources).log_probs[:, _numbers(task, tokens)]
    lengths = [len(words) or 1 for words in task.sentences(example)]
    places = mask_from_lengths(torch.tensor(lengths, device=task.device), max(lengths))
    # A document is as large as all its sentences: one row at a time.
    rows = [
        task.model(sources.new_zeros(places.shape).masked_scatter(places, row)[None], places[None])
        for row in sources
    ]
    return torch.cat([row.log_probs for row in rows])[:, _numbers(task, tokens)]


def _matched(
    task: PairClassification, example: Example, tokens: Sequence[str]
) -> Float[Tensor, "R T"]:
    """The places of the first text, then those of the second."""
    first, second = (
        task.vocabularies.source.encode(symbols) or [UNKNOWN] for symbols in task.texts(example)
    )
    both = _without_each(torch.tensor([[*first, *second]], device=task.device))
    of_first, of_second = both.split([len(first), len(second)], dim=1)
    return task.model(of_first, None, of_second, None).log_probs[:, _numbers(task, tokens)]


def _numbers(task: Classification | PairClassification, tokens: Sequence[str]) -> list[int]:
    """Those of labels."""
    labels = task.vocabularies.labels
    assert labels is not None
    return [labels.number(token) for token in tokens]


def _without_each(source: Int[Tensor, "1 S"]) -> Int[Tensor, "R S"]:
    """The input, and below it the input without each of its places."""
    size = source.shape[1]
    rows = source.repeat(size + 1, 1)
    rows[1:].fill_diagonal_(UNKNOWN)
    return rows
