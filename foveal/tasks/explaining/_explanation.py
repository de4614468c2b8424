"""Explanation of one answer: its steps, alternatives and attention, as plain data.

Pages, servers, browsers and tests read this data without torch.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import UInt8

from ...attention import AttentionTrace, Layout
from ...data import Example
from ...views._beam import Hypothesis
from ...views._png import data_uri
from ..base._prediction import Candidate, Prediction, PredictionSpec

# The label of the end token in a view; its token is "", and the plain word "end" may occur in a text.
END_NAME = "⟨end⟩"
_IN_A_ROW = Layout()


class Way(NamedTuple):
    """Settings of an explanation; see `foveal.inspection.explain`."""

    beam_size: int = 5
    alternatives: int = 5
    prefix: Sequence[str] = ()
    forced: Mapping[int, Sequence[float | int]] = MappingProxyType({})


class Alternative(NamedTuple):
    """A token that the model considered at a step of an explanation, with its probability."""

    token: str
    probability: float


class ExplainedStep(NamedTuple):
    """One token of an answer in an explanation; the end token is ""."""

    token: str
    probability: float  # given the tokens before it
    alternatives: tuple[Alternative, ...]  # the most probable tokens, usually including this one
    weights: tuple[float, ...] | None = None  # attention weight of each position
    forced: bool = False  # True if the caller set the weights
    copied: float | None = None  # probability of copying at this step, for decoders that copy


class Branch(NamedTuple):
    """A token that a beam search kept, after its prefix; the end token is ""."""

    token: str
    parent: int  # index of the previous branch in the list; -1 for a first token
    probability: float  # given the tokens before it
    kept: bool  # True if it leads to an answer, False if the beam dropped it


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The answer to one input and its explanation. `score` and the probabilities of steps are uncalibrated model
    outputs; `confidence` and the probabilities of `nbest` are calibrated.
    """

    task: str
    input: str
    output: str
    score: float
    confidence: float
    nbest: tuple[Candidate, ...]
    sources: tuple[str, ...]  # a label for each position
    steps: tuple[ExplainedStep, ...]
    attention: str | None = None  # the kind of attention
    exclusive: bool = False  # True if the weights of a step sum to 1
    best: tuple[tuple[bool, ...], ...] | None = None  # the most probable segments of each step
    tree: tuple[Branch, ...] | None = None
    # Further attention: the sentences of a document, attention between two texts, and the tree of each text.
    others: tuple[AttentionTrace, ...] = ()
    layout: Layout = _IN_A_ROW  # layout of the positions
    # The picture that the model saw, channels last, the frames of a clip side by side.
    picture: UInt8[np.ndarray, "h w c"] | None = field(default=None, compare=False, repr=False)

    @property
    def trace(self) -> AttentionTrace | None:
        """The attention of each step, for a heat map; None without attention."""
        rows = tuple(step.weights for step in self.steps if step.weights is not None)
        if self.attention is None or len(rows) < len(self.steps):
            return None
        copied = tuple(step.copied for step in self.steps if step.copied is not None)
        return AttentionTrace(
            kind=self.attention,
            sources=self.sources,
            targets=tuple(step.token or END_NAME for step in self.steps),
            weights=rows,
            layout=self.layout,
            best=self.best,
            copied=copied or None,
        )

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The paths of the search, for `beam_tree`: answers and dropped hypotheses."""
        branches = self.tree or ()
        inner = {branch.parent for branch in branches}
        scores = [candidate.score for candidate in self.nbest]
        found = list[Hypothesis]()
        for number, branch in enumerate(branches):
            if number in inner:
                continue
            path = list[Branch]()
            at = number
            while at >= 0:
                path.append(branches[at])
                at = branches[at].parent
            logs = [math.log(max(step.probability, 1e-300)) for step in reversed(path)]
            finished, total = branch.token == "", sum(logs)
            tokens = tuple(step.token or END_NAME for step in reversed(path))
            # An answer is ranked by its score, which a length penalty may have changed.
            score = min(scores, key=lambda score: abs(score - total)) if finished else total
            found.append(
                Hypothesis(tokens=tokens, log_probs=tuple(logs), score=score, finished=finished)
            )
        return tuple(found)

    def to_data(self) -> dict[str, Any]:
        """Convert to JSON values.

        Returns:
            A dictionary that `json.dumps` accepts.
        """
        return {
            "task": self.task,
            "input": self.input,
            "output": self.output,
            "score": self.score,
            "confidence": self.confidence,
            "nbest": [candidate._asdict() for candidate in self.nbest],
            "sources": list(self.sources),
            "steps": [
                {
                    "token": step.token,
                    "probability": step.probability,
                    "alternatives": [each._asdict() for each in step.alternatives],
                    "weights": None if step.weights is None else list(step.weights),
                    "forced": step.forced,
                    "copied": step.copied,
                }
                for step in self.steps
            ],
            "attention": self.attention,
            "exclusive": self.exclusive,
            "best": None if self.best is None else [list(row) for row in self.best],
            "tree": None if self.tree is None else [branch._asdict() for branch in self.tree],
            "others": [json.loads(trace.to_json()) for trace in self.others],
            "layout": self.layout._asdict(),
            "picture": None if self.picture is None else data_uri(self.picture),
        }


@runtime_checkable
class Explained(Protocol):
    """The interface that an explanation needs from a task."""

    @property
    def spec(self) -> Any:
        """The spec from which the task was built."""
        ...

    @property
    def prediction(self) -> PredictionSpec:
        """Default search settings."""
        ...

    def named(self, example: Example) -> str:
        """Return a name for the input of an example."""
        ...

    def predict(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Prediction]:
        """Predict for each example."""
        ...

    def explained_steps(
        self, example: Example, found: Prediction, alternatives: int
    ) -> Sequence[ExplainedStep]:
        """Return the steps that lead to an answer."""
        ...


def explanation_of(task: Explained, example: Example, way: Way) -> Explanation:
    """Explain the answer of a task with its steps and its trace."""
    size = way.beam_size
    settings = replace(task.prediction, nbest=size, beam_size=size, trace=True)
    (found,) = task.predict([example], settings)
    trace = found.trace
    return Explanation(
        task=task.spec.kind,
        input=task.named(example),
        output=found.output,
        score=found.score,
        confidence=found.confidence,
        nbest=found.nbest,
        sources=() if trace is None else trace.sources,
        steps=tuple(task.explained_steps(example, found, way.alternatives)),
        others=() if trace is None or not trace.targets else (trace,),  # an empty text has no rows
    )
