"""Explain a generated output: repeat the search and record its steps, alternatives and attention.

    alternatives of step t = the largest of p( . | y_<t, x )
    weights of step t      = attention that the model used to choose y_t

Axes: K hypotheses, S positions, W tokens of the vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from ...data import BEGIN, END, Example
from ...decoding import Hypotheses, LengthPenalty, beam_search
from ...networks.search._stepping_state import SteppingState
from ..base._prediction import Candidate
from ..base._speaking import Speaking
from ..base._writing import AbstractWriting, Spec, Writer
from ._documents import of_words, real_places, spread
from ._explanation import Alternative, Branch, ExplainedStep, Explanation, Way
from ._forcing import forced_rows, prefix_numbers
from ._watching import Kept, Watched, WatchedState, branch_of

Writing: TypeAlias = AbstractWriting[Any, Any]


class AbstractExplainedWriting(AbstractWriting[Writer, Spec], Generic[Writer, Spec]):
    """A task that generates a text and explains it."""

    @property
    @override
    def is_forcible(self) -> bool:
        return True

    @override
    def explain(self, example: Example, way: Way) -> Explanation:
        return _written(self, example, way)


class _Replayed(NamedTuple):
    """The steps of one output, and the segments that each step selected."""

    steps: tuple[ExplainedStep, ...]
    best: tuple[tuple[bool, ...], ...] | None


def _written(task: Writing, example: Example, way: Way) -> Explanation:
    decoder, sources = task.spec.model.decoder, task.places(example)
    first, layout = prefix_numbers(task, way.prefix), task.layout(example)
    real = real_places(sources, layout)
    given = forced_rows(task, way.forced, len(real))
    rows = {step: spread(row, real, len(sources)) for step, row in given.items()}
    with task.answering():
        prepared = task.model.prepare()
        stepper, state = task.stepper(prepared), prepared.start(*task.read([example]))
        watched = Watched(stepper, rows)
        longest = max(task.limit(example), len(first) + 1)
        found = _search(task, watched, state, way.beam_size, longest, first)
        lists = found.token_lists(END)[0]
        replayed = _replay(task, example, stepper, state, [*lists[0], END], rows, way.alternatives)
    real = [n for n, length in enumerate(found.lengths[0].tolist()) if length > 0]
    totals = found.totals[0].tolist()
    outputs = [task.decode(lists[n], example) for n in real]
    nbest = _candidates(task, outputs, found.scores[0].tolist(), totals)
    ends = [(lists[n], found.log_probs[0, n, len(lists[n])].item()) for n in real]
    explanation = Explanation(
        task=task.spec.kind,
        input=task.named(example),
        output=nbest[0].output,
        score=nbest[0].score,
        confidence=nbest[0].probability,
        nbest=nbest,
        sources=sources,
        steps=replayed.steps,
        attention=decoder.attention_kind,
        exclusive=decoder.is_exclusive,
        best=replayed.best,
        tree=_tree(task, example, watched.kept, ends),
        layout=layout,
        picture=task.picture_seen(example),
    )
    return of_words(explanation)


def _search(
    task: Writing,
    watched: Watched,
    state: SteppingState,
    beam_size: int,
    longest: int,
    prefix: list[int],
) -> Hypotheses:
    """Repeat the search of a prediction for one input."""
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
        no_repeat_ngram=task.prediction.no_repeat_ngram,
        constraints=task.constraints(task.prediction),
        prefix=torch.tensor([prefix], device=device) if prefix else None,
    )


def _candidates(
    task: Writing, symbols: list[list[str]], scores: list[float], totals: list[float]
) -> tuple[Candidate, ...]:
    """Return the answers with calibrated probabilities, as in a prediction."""
    probabilities = task.calibration.probabilities(np.array([totals[: len(symbols)]]))[0].tolist()
    outputs = [task.text(each) for each in symbols]
    rows = zip(outputs, scores, probabilities, strict=False)
    return tuple(Candidate(*row) for row in rows)


def _replay(
    task: Writing,
    example: Example,
    stepper: Speaking,
    state: SteppingState,
    tokens: list[int],
    forced: Mapping[int, Float[Tensor, " S"]],
    alternatives: int,
) -> _Replayed:
    """Return the steps that lead to an output, each with its alternatives."""
    steps, best = list[ExplainedStep](), list[tuple[bool, ...]]()
    before = BEGIN
    for number, token in enumerate(tokens):
        last, row = torch.tensor([[before]], device=task.device), forced.get(number)
        selection = stepper.selection(state, last)
        if selection is not None:
            # No segments are chosen where the weights were forced.
            chosen = selection[0, 0] if row is None else torch.zeros_like(selection[0, 0])
            best.append(tuple(chosen.tolist()))
        copied = stepper.copy_probability(state, last)
        state, log_probs, weights = stepper.step(
            state, last, None if row is None else row.expand(1, 1, -1)
        )
        probabilities = log_probs[0, 0].exp()
        steps.append(
            ExplainedStep(
                _symbol(task, example, token),
                probabilities[token].item(),
                _alternatives(task, example, probabilities, alternatives),
                None if weights is None else tuple(weights[0, 0].tolist()),
                row is not None,
                None if copied is None else copied[0, 0].item(),
            )
        )
        before = token
    return _Replayed(tuple(steps), tuple(best) or None)


def _symbol(task: Writing, example: Example, token: int) -> str:
    """Return the text of a token; the end token has none."""
    return "".join(task.decode([token], example))


def _alternatives(
    task: Writing, example: Example, probabilities: Float[Tensor, " W"], number: int
) -> tuple[Alternative, ...]:
    top = probabilities.topk(min(number, len(probabilities)))
    rows = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return tuple(
        Alternative(_symbol(task, example, token), value) for token, value in rows if value > 0
    )


def _tree(
    task: Writing, example: Example, kept: Sequence[Kept], ends: Sequence[tuple[list[int], float]]
) -> tuple[Branch, ...]:
    """Return the beam search tree with the ends of the answers."""
    last = [branch_of(kept, tokens) for tokens, _ in ends]
    answered = set[int]()
    for end in last:
        at = end
        while at >= 0:
            answered.add(at)
            at = kept[at].parent
    branches = [
        Branch(
            _symbol(task, example, each.token),
            each.parent,
            math.exp(each.log_prob),
            number in answered,
        )
        for number, each in enumerate(kept)
    ]
    branches += [
        Branch("", at, math.exp(log_prob), True)
        for at, (_, log_prob) in zip(last, ends, strict=True)
    ]
    return tuple(branches)
