"""How a model came to one answer: the search again, with everything about it kept.

    alternatives of step t = the largest of p( . | y_<t, x )
    weights of step t      = what was read to choose y_t

Axes: K hypotheses, S places, W tokens of the vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from ...data import BEGIN, END, Example
from ...data._example import read_pair
from ...decoding import Hypotheses, LengthPenalty, beam_search
from ...errors import ValueRangeError
from ...models.parts._attention_specs import is_exclusive
from ...networks.search._stepping_state import SteppingState
from ...tasks import (
    AbstractTask,
    Captioning,
    Classification,
    LanguageModeling,
    PairClassification,
    Prediction,
    Tagging,
    VideoClassification,
    VisualQuestionAnswering,
)
from ...tasks.base._labeling import AbstractLabeling
from ...tasks.base._prediction import Candidate
from ...tasks.base._speaking import Speaking
from ...tasks.base._writing import AbstractWriting
from ._explanation import Alternative, Branch, ExplainedStep, Explanation
from ._forcing import forced_rows, prefix_numbers
from ._watching import Kept, Watched, WatchedState, branch_of

Writing: TypeAlias = AbstractWriting[Any, Any]


def explain(
    task: AbstractTask[Any],
    example: Example,
    *,
    beam_size: int = 5,
    alternatives: int = 5,
    prefix: Sequence[str] = (),
    forced: Mapping[int, Sequence[float | int]] | None = None,
) -> Explanation:
    """The answer of a task to one example, with what else might have been, step by step.

    Args:
        task: with its trained model.
        example: its target, if it has one, is not looked at.
        beam_size: candidates kept in search, and answers given.
        alternatives: how many symbols to list at each step; classification lists all labels.
        prefix: symbols that the output must begin with, where one is written.
        forced: for some steps, from 0 on, weights over all places to read with instead of the
            model's own, and the search goes on from what it reads then. Where weights are a
            distribution they are normalized; of sigmoid and segment attention they are taken as they
            are, each from 0 to 1. Only where an output is written.
    """
    if beam_size < 1 or alternatives < 1:
        raise ValueRangeError(
            f"explain: beam_size and alternatives must be at least 1, got {beam_size} and {alternatives}."
        )
    if isinstance(task, AbstractWriting):
        return _written(task, example, beam_size, alternatives, prefix, forced or {})
    if prefix or forced:
        raise ValueRangeError(
            f"explain: a prefix and forced attention are for outputs that are written symbol by "
            f"symbol, got {task.spec.kind}. Leave prefix and forced out."
        )
    if isinstance(task, Classification):
        return _classification(task, example)
    if isinstance(task, PairClassification):
        return _pair_classification(task, example)
    if isinstance(task, VisualQuestionAnswering | VideoClassification):
        return _pictured(task, example)
    if isinstance(task, Tagging):
        return _tagging(task, example, beam_size, alternatives)
    if isinstance(task, LanguageModeling):
        return _language_modeling(task, example, alternatives)
    raise ValueRangeError(
        f"explain: expected a task of this library, got {type(task).__name__}. "
        f"Use Transduction, Captioning, Classification, PairClassification, Tagging, "
        f"LanguageModeling, VisualQuestionAnswering or VideoClassification."
    )


class _Replayed(NamedTuple):
    """The steps of one output, and the segments that each chose."""

    steps: tuple[ExplainedStep, ...]
    best: tuple[tuple[bool, ...], ...] | None


def _written(
    task: Writing,
    example: Example,
    beam_size: int,
    alternatives: int,
    prefix: Sequence[str],
    forced: Mapping[int, Sequence[float | int]],
) -> Explanation:
    attention, sources = task.spec.decoder.attention, task.places(example)
    first = prefix_numbers(task, prefix)
    rows = forced_rows(task, forced, len(sources))
    with task.answering():
        prepared = task.model.prepare()
        stepper, state = task.stepper(prepared), prepared.start(*task.read([example]))
        watched = Watched(stepper, rows)
        longest = max(task.limit(example), len(first) + 1)
        found = _search(task, watched, state, beam_size, longest, first)
        lists = found.token_lists(END)[0]
        replayed = _replay(task, stepper, state, [*lists[0], END], rows, alternatives)
    real = [n for n, length in enumerate(found.lengths[0].tolist()) if length > 0]
    totals = found.totals[0].tolist()
    nbest = _candidates(task, [lists[n] for n in real], found.scores[0].tolist(), totals)
    ends = [(lists[n], found.log_probs[0, n, len(lists[n])].item()) for n in real]
    return Explanation(
        task=task.spec.kind,
        input=task.named(example),
        output=nbest[0].output,
        score=nbest[0].score,
        confidence=nbest[0].probability,
        nbest=nbest,
        sources=sources,
        steps=replayed.steps,
        attention=None if attention is None else attention.kind,
        exclusive=attention is not None and is_exclusive(attention),
        best=replayed.best,
        tree=_tree(task, watched.kept, ends),
        layout=task.layout(example),
        picture=picture_seen(task, example),
    )


def picture_seen(task: AbstractTask[Any], example: Example) -> UInt8[np.ndarray, "h w c"] | None:
    """The picture that a task was given, channels last, and the frames of a clip side by side; None for
    a task that reads texts.
    """
    if not isinstance(task, Captioning | VisualQuestionAnswering | VideoClassification):
        return None
    picture = task.picture(example).movedim(-3, -1).numpy()
    return np.concatenate(picture, axis=1) if picture.ndim == 4 else picture


def _search(
    task: Writing,
    watched: Watched,
    state: SteppingState,
    beam_size: int,
    longest: int,
    prefix: list[int],
) -> Hypotheses:
    """The search of a prediction, of one input."""
    alpha, device = task.prediction.length_penalty, task.device
    return beam_search(
        watched,
        WatchedState(state),
        begin=torch.tensor([BEGIN], device=device),
        end=END,
        max_length=longest,
        beam_size=beam_size,
        nbest=beam_size,
        length_penalty=LengthPenalty(alpha=alpha) if alpha else None,
        constraints=task.constraints,
        prefix=torch.tensor([prefix], device=device) if prefix else None,
    )


def _candidates(
    task: Writing, lists: list[list[int]], scores: list[float], totals: list[float]
) -> tuple[Candidate, ...]:
    """The answers with calibrated probabilities, as a prediction gives them."""
    probabilities = task.calibration.probabilities(np.array([totals[: len(lists)]]))[0].tolist()
    outputs = [task.spec.target.decode(task.decode(tokens)) for tokens in lists]
    rows = zip(outputs, scores, probabilities, strict=False)
    return tuple(Candidate(*row) for row in rows)


def _replay(
    task: Writing,
    stepper: Speaking,
    state: SteppingState,
    tokens: list[int],
    forced: Mapping[int, Float[Tensor, " S"]],
    alternatives: int,
) -> _Replayed:
    """The steps that lead to an output, each with all that might have come."""
    steps, best = list[ExplainedStep](), list[tuple[bool, ...]]()
    before = BEGIN
    for number, token in enumerate(tokens):
        last, row = torch.tensor([[before]], device=task.device), forced.get(number)
        selection = stepper.selection(state, last)
        if selection is not None:
            # Where the weights were given, no segments were chosen.
            chosen = selection[0, 0] if row is None else torch.zeros_like(selection[0, 0])
            best.append(tuple(chosen.tolist()))
        state, log_probs, weights = stepper.step(
            state, last, None if row is None else row.expand(1, 1, -1)
        )
        probabilities = log_probs[0, 0].exp()
        steps.append(
            ExplainedStep(
                _symbol(task, token),
                probabilities[token].item(),
                _alternatives(task, probabilities, alternatives),
                None if weights is None else tuple(weights[0, 0].tolist()),
                row is not None,
            )
        )
        before = token
    return _Replayed(tuple(steps), tuple(best) or None)


def _symbol(task: Writing, token: int) -> str:
    """The text of a token; the end symbol has none."""
    return "".join(task.decode([token]))


def _alternatives(
    task: Writing, probabilities: Float[Tensor, " W"], number: int
) -> tuple[Alternative, ...]:
    top = probabilities.topk(min(number, len(probabilities)))
    rows = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return tuple(Alternative(_symbol(task, token), value) for token, value in rows if value > 0)


def _tree(
    task: Writing, kept: Sequence[Kept], ends: Sequence[tuple[list[int], float]]
) -> tuple[Branch, ...]:
    """What the beam kept, with the ends of the answers."""
    last = [branch_of(kept, tokens) for tokens, _ in ends]
    answered = set[int]()
    for end in last:
        at = end
        while at >= 0:
            answered.add(at)
            at = kept[at].parent
    branches = [
        Branch(_symbol(task, each.token), each.parent, math.exp(each.log_prob), number in answered)
        for number, each in enumerate(kept)
    ]
    branches += [
        Branch("", at, math.exp(log_prob), True)
        for at, (_, log_prob) in zip(last, ends, strict=True)
    ]
    return tuple(branches)


def _classification(task: Classification, example: Example) -> Explanation:
    """All labels, and the words that decided."""
    found, explanation = _labeled(task, example)
    trace, pooling = found.trace, task.spec.pooling
    if trace is None:
        return explanation
    # A document has empty places after the words of a sentence, which nobody reads.
    rows = zip(trace.sources, trace.weights[0], strict=True)
    weights = tuple(weight for word, weight in rows if word) or trace.weights[0]
    return replace(
        explanation,
        steps=(explanation.steps[0]._replace(weights=weights),),
        attention=trace.kind,
        exclusive=not isinstance(pooling, str) and is_exclusive(pooling),
        others=(trace,) if task.is_of_documents else (),
    )


def _pictured(task: VisualQuestionAnswering | VideoClassification, example: Example) -> Explanation:
    """All labels, and where in the picture, or at which frames, was looked."""
    found, explanation = _labeled(task, example)
    return replace(
        explanation,
        input=task.named(example),
        others=() if found.trace is None else (found.trace,),
        picture=picture_seen(task, example),
    )


def _pair_classification(task: PairClassification, example: Example) -> Explanation:
    """All labels, which words of one text read which of the other, and the tree of either."""
    found, explanation = _labeled(task, example)
    assert found.trace is not None
    trees = [task.self_attention(text) for text in read_pair(example)]
    return replace(
        explanation,
        sources=(*found.trace.targets, *found.trace.sources),
        others=(found.trace, *(tree for tree in trees if tree is not None)),
    )


class _Labeled(NamedTuple):
    """The prediction with its trace, and what it says without it."""

    found: Prediction
    explanation: Explanation


def _labeled(task: AbstractLabeling[Any, Any], example: Example) -> _Labeled:
    """One step: all labels."""
    labels = task.vocabularies.labels
    assert labels is not None
    size = len(labels)
    settings = replace(task.prediction, nbest=size, beam_size=size, trace=True)
    (found,) = task.predict([example], settings)
    ranked = tuple(Alternative(each.output, math.exp(each.score)) for each in found.nbest)
    explanation = Explanation(
        task=task.spec.kind,
        input=example.source,
        output=found.output,
        score=found.score,
        confidence=found.confidence,
        nbest=found.nbest,
        sources=tuple(task.symbols(example) or [""]),
        steps=(ExplainedStep(found.output, ranked[0].probability, ranked),),
    )
    return _Labeled(found, explanation)


def _tagging(task: Tagging, example: Example, beam_size: int, alternatives: int) -> Explanation:
    """One step for each word: how probable each tag is there, whatever the others are."""
    (found,) = task.predict(
        [example], replace(task.prediction, nbest=beam_size, beam_size=beam_size)
    )
    words, labels = task.symbols(example), task.vocabularies.labels
    assert labels is not None
    rows: list[list[float]] = []
    if words:
        batch = task.collate([task.encode_source(example)])
        with task.answering():
            rows = task.taggings(batch).marginals()[0].tolist()
    steps = list[ExplainedStep]()
    for tag, row in zip(found.output.split(), rows, strict=True):
        ranked = sorted(zip(row, labels.names, strict=True), reverse=True)[:alternatives]
        listed = tuple(Alternative(name, probability) for probability, name in ranked)
        steps.append(ExplainedStep(tag, row[labels.number(tag)], listed))
    return Explanation(
        task=task.spec.kind,
        input=example.source,
        output=found.output,
        score=found.score,
        confidence=found.confidence,
        nbest=found.nbest,
        sources=tuple(words),
        steps=tuple(steps),
    )


def _language_modeling(task: LanguageModeling, example: Example, alternatives: int) -> Explanation:
    """One step for each symbol of the text and for the end of its line. The text is not continued:
    the output is the text itself.
    """
    vocabulary = task.vocabularies.source
    numbers = task.encode(example).source
    with task.answering():
        tokens = torch.tensor([[END, *numbers[:-1]]], device=task.device)
        log_probs = task.model(tokens).log_probs[0]
    steps, total = list[ExplainedStep](), 0.0
    symbols = [*task.spec.source.encode(example.source), ""]
    for symbol, number, row in zip(symbols, numbers, log_probs, strict=True):
        top = row.exp().topk(min(alternatives, len(row)))
        listed = tuple(
            Alternative("".join(vocabulary.decode([token])), value)
            for token, value in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        )
        total += row[number].item()
        steps.append(ExplainedStep(symbol, row[number].exp().item(), listed))
    return Explanation(
        task=task.spec.kind,
        input=example.source,
        output=example.source,
        score=total,
        confidence=math.exp(total / len(steps)),
        nbest=(),
        sources=tuple(symbols[:-1]),
        steps=tuple(steps),
    )
