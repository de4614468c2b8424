"""Memory network: answer a question about a list of facts in K steps of attention.

    x_i = A(fact i),   c_i = C(fact i),   q = A(question)
    u = K steps of attention to c with keys x, from q,      p(answer) = softmax( W u + b )

A and C are bags of words, weighted by position, with a vector for the age of the fact. The question counts
as the newest fact, so facts and question share one table.

    layer-wise    all steps have the keys A and the values C
    adjacent      step k has the keys A_k and the values A_{k+1}, with K + 1 tables

References: Sukhbaatar et al. 2015; Kim et al. 2017, section 4.3.

Axes: B items of a batch, n facts of w words, v words of the question, K steps, C answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

from ..attention import Attended, Layout, Memory
from ..batch_invariant import Linear, linear
from ..errors import ValueRangeError
from ..networks import FactsEncoder
from ..specs import check, setting
from ._checks import check_batch, check_mask, check_sizes, checked_tokens
from ._reading_steps import AbstractSteps, SoftStepsSpec, StepsSpec


class Answered(NamedTuple):
    """The answer probabilities, and the attention of each step."""

    log_probs: Float[Tensor, "B C"]
    attended: tuple[Attended, ...]

    @property
    def weights(self) -> Float[Tensor, "B K n"]:
        """Return the attention weights of each step over the facts."""
        return torch.cat([read.weights for read in self.attended], -2)

    def facts(self) -> Int[Tensor, "B K"]:
        """Return the fact of each step.

        Returns:
            The argmax of each softmax, or the best sequence of a chain.
        """
        return torch.cat([read.distribution.argmax() for read in self.attended], -1)


@final
class MemoryNetwork(nn.Module):
    """Computes log-probabilities of the answers from facts and a question.

    Args:
        keys: Encodes the facts and, as one more fact, the question, to decide which facts are read.
        values: Encodes the content of the facts.
        steps: Attends to the facts.
        output: Computes the scores of the answers from the result of the steps and the word vectors of the values.
        vocabulary: Number of tokens.
        num_steps: Number of steps.
        between: For adjacent tying, an encoder after each step but the last: the values of the step and the keys
            of the next. None: all steps have the same keys and values.

    Examples:
        >>> reader = MemoryNetworkSpec().build(vocabulary=30, num_answers=4)
        >>> answered = reader(torch.randint(30, (2, 5, 7)), None, torch.randint(30, (2, 4)), None)
        >>> answered.log_probs.shape, answered.weights.shape
        (torch.Size([2, 4]), torch.Size([2, 2, 5]))
    """

    def __init__(
        self,
        keys: FactsEncoder,
        values: FactsEncoder,
        steps: AbstractSteps,
        output: "WordScores | MatrixScores",
        *,
        vocabulary: int,
        num_steps: int,
        between: Sequence[FactsEncoder] | None = None,
    ) -> None:
        super().__init__()
        self.keys, self.values, self.steps, self.output = keys, values, steps, output
        self.vocabulary, self.num_steps = vocabulary, num_steps
        self.between = None if between is None else nn.ModuleList(between)

    def forward(
        self,
        facts: Int[Tensor, "B n w"],
        facts_mask: Bool[Tensor, "B n w"] | None,
        question: Int[Tensor, "B v"],
        question_mask: Bool[Tensor, "B v"] | None,
    ) -> Answered:
        """Answer each question from its facts; a fact without a real word is padding.

        Args:
            facts: Token ids of the facts, the oldest fact first.
            facts_mask: True on real words; None if all words are real.
            question: Token ids of the questions.
            question_mask: True on real words; None if all words are real.

        Returns:
            The log-probabilities of the answers and the attention of each step.
        """
        check_mask("MemoryNetwork", "facts", facts, facts_mask)
        check_mask("MemoryNetwork", "question", question, question_mask)
        check_batch("MemoryNetwork", facts=facts.shape[:-2], question=question.shape[:-1])
        facts_mask = _mask_of(facts, facts_mask)
        both = _joined(facts, question)
        both_mask = _joined(facts_mask, _mask_of(question, question_mask))
        with checked_tokens("MemoryNetwork", self.vocabulary, both_mask, facts_and_question=both):
            # Values first: an error about too many facts then reports their number without the question.
            last = self.values(facts, facts_mask).values
            encoded = self.keys(both, both_mask).values
        first = encoded[..., :-1, :]
        if self.between is None:
            keys, values = [first] * self.num_steps, [last] * self.num_steps
        else:
            between = [encoder(facts, facts_mask).values for encoder in self.between]
            keys, values = [first, *between], [*between, last]
        layout, real = Layout("facts", rows=facts.shape[-2]), facts_mask.any(-1)
        memories = [Memory(each, real, layout=layout) for each in keys]
        vector, attended = self.steps(encoded[..., -1, :], memories, values)
        scores = self.output(vector, self.values.embedding.weight)
        return Answered(scores.log_softmax(-1), attended)


@final
class WordScores(nn.Module):
    """Scores each answer by the vectors of its words, which it shares with the facts.

        score of answer a = u . sum of C[w] over the words w of a, + b_a

    A fact that contains the answer scores it without training, so the attention learns from the start which fact to
    read. With a separate matrix, a network learns the answers of the training questions first.

    Args:
        answers: Tokens of each answer.
        vocabulary: Number of tokens.

    Examples:
        >>> output = WordScores([[3], [5, 6]], vocabulary=9)
        >>> output(torch.zeros(2, 4), torch.rand(9, 4)).shape
        torch.Size([2, 2])
    """

    def __init__(self, answers: Sequence[Sequence[int]], vocabulary: int) -> None:
        super().__init__()
        counts = torch.zeros(len(answers), vocabulary)
        for row, words in zip(counts, answers, strict=True):
            row.index_add_(0, torch.tensor(words), torch.ones(len(words)))
        self.register_buffer("counts", counts, persistent=False)
        self.counts: Tensor
        self.bias = nn.Parameter(torch.zeros(len(answers)))

    @override
    def forward(
        self, vector: Float[Tensor, "B D"], table: Float[Tensor, "V D"]
    ) -> Float[Tensor, "B C"]:
        return linear(vector, self.counts @ table, self.bias)


@final
class MatrixScores(nn.Module):
    """Scores each answer by a separate matrix.

    Args:
        size: Width of the vector.
        num_answers: Number of answers.
    """

    def __init__(self, size: int, num_answers: int) -> None:
        super().__init__()
        layer = Linear(size, num_answers)
        self.weight, self.bias = layer.weight, layer.bias

    @override
    def forward(
        self, vector: Float[Tensor, "B D"], table: Float[Tensor, "V D"]
    ) -> Float[Tensor, "B C"]:
        return linear(vector, self.weight, self.bias)


def _mask_of(tokens: Tensor, mask: Tensor | None) -> Tensor:
    return torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask


def _joined(facts: Tensor, question: Tensor) -> Tensor:
    """Append the question as a fact, padded to the same width; works for tokens and for masks."""
    width = max(facts.shape[-1], question.shape[-1])
    rows = [pad(part, (0, width - part.shape[-1])) for part in (facts, question.unsqueeze(-2))]
    return torch.cat(rows, -2)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryNetworkSpec:
    """A model that answers questions about a list of facts."""

    kind: Literal["memory_network"] = "memory_network"
    embedding_size: int = setting(32, "width of a fact", at_least=1)
    num_steps: int = setting(
        2, "number of facts that are read, one after the other", at_least=1, at_most=1000
    )
    steps: StepsSpec = setting(SoftStepsSpec(), "how a step depends on the one before")
    max_facts: int | None = setting(
        50,
        "facts that are read at most, the latest, each age with its vector; none: all, without age",
        at_least=2,
    )
    random_noise: float = setting(
        0.0,
        "chance in training that a fact counts for two, and all before it seem older",
        at_least=0,
        at_most=1,
    )
    init_std: float | None = setting(
        None,
        "standard deviation of the initial word and age vectors; none: 2 / sqrt(embedding_size)",
        above=0,
    )
    tying: Literal["layer_wise", "adjacent"] = setting(
        "layer_wise",
        "layer_wise: one table for keys and one for values; adjacent: a table for each step, whose values have the "
        "table of the next step's keys",
    )
    tie_output: bool = setting(
        False, "score answers by the vectors of their words; false: by a separate matrix"
    )
    positions: bool = setting(True, "weight words by their position; false: plain bags of words")

    def build(
        self,
        *,
        vocabulary: int,
        num_answers: int,
        answers: Sequence[Sequence[int]] | None = None,
    ) -> MemoryNetwork:
        """Build the model with new weights.

        Args:
            vocabulary: Number of tokens.
            num_answers: Number of answers.
            answers: Tokens of each answer, which `tie_output` needs.

        Returns:
            The model, in training mode.

        Raises:
            ValueRangeError: `tie_output` is set, and there are no tokens of the answers.
        """
        check(self)
        check_sizes("MemoryNetwork", vocabulary=vocabulary, num_answers=num_answers)
        keys = self._facts(vocabulary, None if self.max_facts is None else self.max_facts + 1)
        adjacent = self.tying == "adjacent"
        # Drawn only where they are used: layer-wise tying keeps its initial weights for each seed.
        more = self.num_steps - 1 if adjacent else 0
        between = [self._facts(vocabulary, self.max_facts) for _ in range(more)]
        values = self._facts(vocabulary, self.max_facts)
        steps = self.steps.build(self.embedding_size, self.num_steps, adjacent=adjacent)
        return MemoryNetwork(
            keys,
            values,
            steps,
            self._output(vocabulary, num_answers, answers),
            vocabulary=vocabulary,
            num_steps=self.num_steps,
            between=between if adjacent else None,
        )

    def _output(
        self, vocabulary: int, num_answers: int, answers: Sequence[Sequence[int]] | None
    ) -> "WordScores | MatrixScores":
        if not self.tie_output:
            return MatrixScores(self.embedding_size, num_answers)
        if answers is None or len(answers) != num_answers:
            raise ValueRangeError(
                f"MemoryNetworkSpec: tie_output needs the tokens of all {num_answers} answers, got "
                f"{'none' if answers is None else len(answers)}. Pass answers, or set tie_output to false."
            )
        return WordScores(answers, vocabulary)

    def _facts(self, vocabulary: int, max_facts: int | None) -> FactsEncoder:
        embedding = nn.Embedding(vocabulary, self.embedding_size)
        encoder = FactsEncoder(
            embedding, positions=self.positions, max_facts=max_facts, random_noise=self.random_noise
        )
        # With this deviation, a word with a position weight of about a half has a length of about 1, so the
        # scores count shared words. Unit normals saturate the softmax. The papers' 0.1 learns late, but with
        # 1,000 training questions a chain then generalizes to new questions; larger values overfit.
        deviation = self.init_std or 2 / self.embedding_size**0.5
        for table in encoder.parameters():
            nn.init.normal_(table, std=deviation)
        return encoder
