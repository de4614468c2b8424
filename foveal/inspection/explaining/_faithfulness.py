"""Faithfulness: whether the answer of a model depends on the positions that it attends to.

Attention weights are not an explanation: a model may attend to a position that its answer does not depend on.
This test erases the position that each step attends to most (makes it unknown), and compares the change of the
log-probability of the step's token with the change from erasing another, random position:

    attended = mean over steps t of change[s_t, t],          s_t the position that t attends to most
    random   = mean over steps t of mean over s != s_t of change[s, t]
    share    = mean over steps t of the fraction of s != s_t whose erasure changes less

The mean over all other positions is the expected value for a random position, without sampling noise.
Meaningless attention would have a share of 0.5. The change of the whole answer is measured too, but is less
informative: every position matters to some token of it.

A model may never have seen an unknown token, and its answer then may differ from its answer to an input without
the token. This is a test that attention can fail, not a proof.

References: Jain and Wallace 2019; Serrano and Smith 2019; Jacovi and Goldberg 2020.

Axes: N examples, S positions, T tokens.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ...data import Example
from ...errors import ValueRangeError
from ...metrics import Statistics, measure
from ...tasks import AbstractTask
from ._erasure import erased


class Estimate(NamedTuple):
    """A mean over steps, with its 95 % bootstrap interval over examples."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Faithfulness:
    """The change of an answer's log-probability when a position is erased."""

    num_examples: int
    num_steps: int
    attended: Estimate  # change of the step's token when the position it attends to most is erased
    random: Estimate  # change when another position is erased
    difference: Estimate  # attended - random; below 0: attended positions matter more
    share: Estimate  # fraction of other positions that matter less than the attended one; 0.5 by chance
    whole_attended: (
        Estimate  # change of the whole answer, when the most attended position is erased
    )
    whole_random: Estimate
    word_dropout: float  # fraction of tokens that were made unknown in training

    def text(self) -> str:
        """Describe the result in words, without claiming more than was measured."""
        more = (
            "more than"
            if self.difference.high < 0
            else "less than"
            if self.difference.low > 0
            else "not significantly more than"
        )
        met = (
            f"like {self.word_dropout:.0%} of the tokens in training (word dropout)"
            if self.word_dropout
            else "which did not happen in training (no word dropout), so the prediction may differ "
            "from one without the token"
        )
        return (
            f"Erasing the position that a step attends to most changes the log-probability of its "
            f"token by {_said(self.attended)}; erasing a random other position changes it by "
            f"{_said(self.random)}. So the attended position matters {more} a random one; it matters "
            f"more than {self.share.value:.0%} of the other positions ({self.share.low:.0%} to "
            f"{self.share.high:.0%}; 50% is chance). {self.num_steps:,} steps of "
            f"{self.num_examples:,} examples; intervals are 95 %. Attention weights are not an "
            f"explanation: this test checks whether the output depends on the attended positions. "
            f"Erasing replaces a token by the unknown token, {met}."
        )


def faithfulness(
    task: AbstractTask[Any], examples: Sequence[Example], *, seed: int = 0
) -> Faithfulness:
    """Measure whether a task's own answers depend on the positions it attends to; targets are ignored.

    Examples with a single position, or without an answer, carry no information and are left out.

    Args:
        task: A transduction or classification with attention.
        examples: Tens of examples are enough to see a difference, hundreds to measure it.
        seed: The seed of the bootstrap intervals.

    Returns:
        The change of log-probabilities for attended and for random positions, with 95 % intervals.

    Raises:
        ValueRangeError: No example has an answer with attention and at least two positions.
    """
    rows = np.array(list(_rows(task, examples)), np.float64).reshape(-1, 6)
    if not len(rows):
        raise ValueRangeError(
            f"faithfulness: expected examples with at least two input positions and attention, got "
            f"none among {len(examples)}. Use longer inputs, or a model with attention."
        )

    def estimate(score: Callable[[np.ndarray], np.ndarray]) -> Estimate:
        statistics = Statistics(
            name="", rows=rows, score=score, signature="", higher_is_better=False
        )
        return Estimate(*measure(statistics, seed=seed)[:3])

    means = [estimate(lambda sums, n=n: sums[:, n] / sums[:, -1]) for n in range(5)]
    attended, random, share, whole_attended, whole_random = means
    return Faithfulness(
        num_examples=len(rows),
        num_steps=int(rows[:, -1].sum()),
        attended=attended,
        random=random,
        difference=estimate(lambda sums: (sums[:, 0] - sums[:, 1]) / sums[:, -1]),
        share=share,
        whole_attended=whole_attended,
        whole_random=whole_random,
        word_dropout=getattr(task.spec, "word_dropout", 0.0),
    )


def _rows(
    task: AbstractTask[Any], examples: Sequence[Example]
) -> Iterator[Float[np.ndarray, " 6"]]:
    """Return sums over the steps of each example, and the number of steps."""
    predictions = task.predict(examples, replace(task.prediction, trace=True))
    for example, prediction in zip(examples, predictions, strict=True):
        trace = prediction.trace
        if trace is None or not trace.targets or len(trace.sources) < 2:
            continue
        weights = np.array(trace.weights)
        if trace.layout.kind == "sentences":  # shorter sentences are padded with empty positions
            weights = weights[:, [bool(word) for word in trace.sources]]
        yield step_sums(weights, erased(task, example, trace.targets))


def step_sums(
    weights: Float[np.ndarray, "T S"], change: Float[np.ndarray, "S T"]
) -> Float[np.ndarray, " 6"]:
    """Return the sums of attended, random, share, and the first two for the whole answer; and the number of steps."""
    num_steps, num_places = weights.shape
    steps, most = np.arange(num_steps), weights.argmax(1)
    of_symbol = change.T  # (T, S)
    whole = np.broadcast_to(change.sum(1), of_symbol.shape)
    attended = of_symbol[steps, most]
    less = of_symbol > attended[:, None]  # a smaller fall
    same = of_symbol == attended[:, None]
    same[steps, most] = False
    share = (less.sum(1) + 0.5 * same.sum(1)) / (num_places - 1)
    sums = [attended.sum(), _others(of_symbol, most).sum(), share.sum()]
    sums += [whole[steps, most].sum(), _others(whole, most).sum(), num_steps]
    return np.array(sums)


def _others(
    changes: Float[np.ndarray, "T S"], most: Int[np.ndarray, " T"]
) -> Float[np.ndarray, " T"]:
    """Return the mean over the positions that a step does not attend to most."""
    own = changes[np.arange(len(most)), most]
    return (changes.sum(1) - own) / (changes.shape[1] - 1)


def _said(estimate: Estimate) -> str:
    return f"{estimate.value:+.2f} ({estimate.low:+.2f} to {estimate.high:+.2f})"
