r"""Alignments of the tokens of a text with the positions of a recording, by CTC.

    path        = argmax over paths that spell y of prod over s of p(path_s)      the span of each token
    confidence  = mean over s in the span of p(path_s)
    p(s, l | y) = sum over paths that spell y and emit label l at s of p(path) / p(y)

The confidence does not assume that the text is right, so it is low for a word that the recording does not contain. The posterior p(s, l | y)
does assume it.

Axes: S positions, W tokens, L labels.
Reference: Graves et al. 2006, section 4.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...distributions import Alignment
from ...inference import ctc_log_partition
from ...models._transcriber import BLANK, num_needed

IMPOSSIBLE = -1e4  # log-probability of a text that has more labels than positions


class Span(NamedTuple):
    """The time span of a token or a word in a recording."""

    token: str
    start: float  # in seconds
    end: float
    confidence: float  # mean probability of the token during the span


def num_positions(labels: Int[Tensor, " L"]) -> int:
    """Return the least number of positions of an alignment with these labels."""
    return int(num_needed(labels[None], torch.ones_like(labels[None], dtype=torch.bool)))


def ctc_log_prob(log_probs: Float[Tensor, "S W"], labels: Int[Tensor, " L"]) -> float:
    """Return the log-probability of a text by CTC, `IMPOSSIBLE` if it has more labels than positions."""
    found = ctc_log_partition(log_probs.unsqueeze(0), labels.unsqueeze(0), blank=BLANK)
    return max(IMPOSSIBLE, found.item())


def emissions(log_probs: Float[Tensor, "S W"], labels: Int[Tensor, " L"]) -> Float[Tensor, "S L"]:
    """Return the posterior probability that each position emits each label of a text."""
    return _states(_aligned(log_probs, labels).marginals())


def token_spans(
    log_probs: Float[Tensor, "S W"],
    tokens: Sequence[str],
    labels: Int[Tensor, " L"],
    seconds: float,
) -> list[Span]:
    """Return the span of each token on the most probable path; a position takes some seconds."""
    # An unknown token is a reserved token, which CTC never emits.
    log_probs = log_probs.clone()
    log_probs[:, labels] = log_probs[:, labels].clamp(min=IMPOSSIBLE)
    path = _states(_aligned(log_probs, labels).argmax())
    probabilities, found = log_probs[:, labels].exp(), list[Span]()
    for number, token in enumerate(tokens):
        (at,) = path[:, number].nonzero(as_tuple=True)
        first, last = int(at[0]), int(at[-1])
        confidence = probabilities[first : last + 1, number].mean().item()
        found.append(Span(token, first * seconds, (last + 1) * seconds, confidence))
    return found


def word_spans(
    spans: Sequence[Span], words: Sequence[str], of_token: Sequence[int | None]
) -> list[Span]:
    """Join the spans of the tokens of each word: from its first to its last token, with their mean confidence.

    Args:
        spans: Spans of all tokens.
        words: Words of the text.
        of_token: For each token the index of its word, or None for a token between words.

    Returns:
        A span for each word that has a token.

    Examples:
        >>> spans = [Span("n", 0.0, 0.1, 0.9), Span("o", 0.2, 0.3, 0.7), Span(" ", 0.4, 0.5, 0.5)]
        >>> word_spans(spans, ["no"], [0, 0, None])
        [Span(token='no', start=0.0, end=0.3, confidence=0.8)]
    """
    found = list[Span]()
    for number, word in enumerate(words):
        own = [span for span, owner in zip(spans, of_token, strict=True) if owner == number]
        if own:
            confidence = sum(span.confidence for span in own) / len(own)
            found.append(Span(word, own[0].start, own[-1].end, confidence))
    return found


def _aligned(log_probs: Float[Tensor, "S W"], labels: Int[Tensor, " L"]) -> Alignment:
    return Alignment.ctc(log_probs, labels, blank=BLANK)


def _states(moves: Tensor) -> Tensor:
    """Return for each position and label whether, or with which probability, the label is emitted."""
    return (moves[1:, :-1, 1] + moves[1:, 1:, 0])[:, 1::2]
