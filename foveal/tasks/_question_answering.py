"""Question answering: a question over facts, answered by one label; attention shows the facts that the model used.

    loss = - log p(answer | facts, question)

The source is `Facts`, as `babi` reads them. Words are in lower case, without the full stop or question mark
at the end.

Axes: B questions, n facts, K steps, C answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from torch.nn.functional import one_hot, pad
from typing_extensions import override

from ..attention import AttentionTrace, Layout
from ..data import END, Encoded, Example, Facts, WhitespaceSpec
from ..data._batches import QuestionBatch, collate_questions, move
from ..data._example import read_alignment
from ..data.vocabularies._tally import Symbols, Tally
from ..data.vocabularies._vocabularies import Vocabularies, numbered
from ..errors import ValueRangeError
from ..metrics import AbstractMetricSpec
from ..metrics._statistics import Statistics
from ..models import MemoryNetwork, MemoryNetworkSpec
from ..specs import setting
from .base._labeling import AbstractLabeling, Labeled, label_of
from .base._prediction import Loss, Prediction, PredictionSpec
from .base._size_classes import settled_rows
from .base._text_spec import AbstractTextSpec

# A chain that never reads a fact twice in a row needs at least two facts.
FEWEST = 2


@final
class QuestionAnswering(AbstractLabeling[MemoryNetwork, "QuestionAnsweringSpec"]):
    """Question answering over facts."""

    @override
    def encode(self, example: Example) -> Encoded:
        return self._encode_source(example, self._label(example))

    @override
    def collate(self, examples: Sequence[Encoded]) -> QuestionBatch:
        return collate_questions(examples)

    @override
    def loss(self, batch: QuestionBatch, state: Any = None) -> Loss:
        """Compute the loss, summed over questions."""
        batch = move(batch, self.device)
        answered = self.model(batch.facts, batch.facts_mask, batch.question, batch.mask)
        return self._loss(answered.log_probs, batch.answers)

    @override
    def symbols(self, example: Example) -> list[str]:
        return self.spec.symbols(example.input_as(Facts))

    def facts(self, example: Example) -> list[str]:
        """Return the facts that the model reads: the latest ones if there are too many, preceded by empty ones if there
        are too few.

        Args:
            example: Example whose source contains facts and a question.

        Returns:
            At most `max_facts` facts, in order.
        """
        told = list(example.input_as(Facts).facts)
        if self.spec.model.max_facts is not None:
            told = told[-self.spec.model.max_facts :]
        return [""] * (FEWEST - len(told)) + told

    def _encode_source(self, example: Example, label: int) -> Encoded:
        vocabulary, facts = self.vocabularies.source, list[int]()
        for fact in self.facts(example):
            facts += [*numbered(vocabulary, self.spec.words(fact)), END]
        question = self.spec.words(example.input_as(Facts).question)
        return Encoded(facts, question=numbered(vocabulary, question), target=[label])

    @override
    def _shape(self, example: Example) -> tuple[int, ...]:
        facts, question = self.facts(example), example.input_as(Facts).question
        longest = max(len(self.spec.words(text)) for text in (*facts, question))
        return len(facts), longest

    @override
    def _labeled(self, examples: Sequence[Example]) -> Labeled:
        encoded = [self._encode_source(example, 0) for example in examples]
        batch = move(collate_questions(encoded), self.device)
        facts, facts_mask = settled_rows(batch.facts, batch.facts_mask)
        more = (0, facts.shape[-1] - batch.question.shape[-1])
        answered = self.model(facts, facts_mask, pad(batch.question, more), pad(batch.mask, more))
        chains = answered.facts()

        def trace(number: int, _label: str) -> AttentionTrace:
            """Return the attention of each step."""
            told = self.facts(examples[number])
            chosen = one_hot(chains[number], len(told)).bool()
            return AttentionTrace(
                kind=f"{self.spec.model.steps.kind} steps",
                sources=tuple(told),
                targets=tuple(f"step {n}" for n in range(1, self.spec.model.num_steps + 1)),
                weights=_rows(answered.weights[number, :, : len(told)].tolist()),
                layout=Layout("facts", rows=len(told)),
                best=_rows(chosen.tolist()),
            )

        return Labeled(answered.log_probs, trace)


def supporting_facts(examples: Sequence[Example], predictions: Sequence[Prediction]) -> Statistics:
    """Return the fraction of questions for which the facts read, over all steps, are the supporting facts. The
    alignment of the example lists them, `i-0` for each fact i, as in `babi`.

    Args:
        examples: Examples with alignments.
        predictions: Predictions for the examples, with traces.

    Returns:
        The statistics of each question.

    Raises:
        ValueRangeError: A prediction has no trace.
    """
    rows = list[tuple[bool, int]]()
    for example, prediction in zip(examples, predictions, strict=True):
        if prediction.trace is None or prediction.trace.best is None:
            raise ValueRangeError(
                "supporting_facts: expected predictions with a trace, got one without. Predict with "
                "PredictionSpec(trace=True)."
            )
        best = prediction.trace.best
        # The trace omits facts that are too old to be read; its last fact is the last one of the story.
        before = len(example.input_as(Facts).facts) - len(best[0])
        read = {fact + before for step in best for fact, is_read in enumerate(step) if is_read}
        rows.append((read == set(read_alignment(example)[::2]), 1))
    return Statistics(
        name="supporting_facts",
        rows=np.array(rows, dtype=np.float64),
        score=lambda sums: 100 * sums[:, 0] / np.maximum(sums[:, 1], 1),
        signature="questions for which exactly the supporting facts were read",
        higher_is_better=True,
        share=True,
    )


def _rows(table: list[list[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(map(tuple, table))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionAnsweringSpec(AbstractTextSpec[QuestionAnswering]):
    """Question answering over facts."""

    kind: Literal["question_answering"] = "question_answering"
    source: WhitespaceSpec = setting(WhitespaceSpec(), "tokenizer of a fact")
    min_count: int = setting(
        1, "words that are rarer in the training set become unknown", at_least=1
    )
    model: MemoryNetworkSpec = setting(
        MemoryNetworkSpec(), "the model that reads the facts and answers"
    )
    metrics: tuple[AbstractMetricSpec, ...] = setting((), "additional metrics")
    prediction: PredictionSpec = setting(PredictionSpec(), "settings of prediction")

    def words(self, fact: str) -> list[str]:
        """Return the words of a fact or a question.

        Args:
            fact: Text of a fact or a question.

        Returns:
            The words in lowercase, without final punctuation.

        Examples:
            >>> QuestionAnsweringSpec().words("Where is Mary?")
            ['where', 'is', 'mary']
        """
        return self.source.encode(fact.lower().rstrip(" .?"))

    def symbols(self, source: Facts) -> list[str]:
        """Return the words of all facts and of the question.

        Args:
            source: Facts and a question.

        Returns:
            The words of the facts, in order, then the words of the question.
        """
        texts = (*source.facts, source.question)
        return [word for text in texts for word in self.words(text)]

    def answer_words(self, answer: str) -> list[str]:
        """Return the words of an answer, which may be a list such as "apple,milk".

        Args:
            answer: An answer.

        Returns:
            The words in lowercase.

        Examples:
            >>> QuestionAnsweringSpec().answer_words("apple,milk")
            ['apple', 'milk']
        """
        return self.words(answer.replace(",", " "))

    @override
    def build(self, vocabularies: Vocabularies) -> QuestionAnswering:
        """Build the task with fresh weights."""
        source, labels = vocabularies.source, vocabularies.labels_of("QuestionAnswering")
        model = self.model.build(
            vocabulary=len(source),
            num_answers=len(labels),
            answers=[numbered(source, self.answer_words(label)) for label in labels.names],
        )
        return QuestionAnswering(self, vocabularies, model)

    @override
    def counted(self, example: Example) -> Symbols:
        symbols, answer = self.symbols(example.input_as(Facts)), label_of(example)
        if self.model.tie_output:  # an answer may be in no fact, such as the number of objects
            symbols += self.answer_words(answer)
        return Symbols(symbols, labels=[answer])

    @override
    def vocabularies(self, tally: Tally) -> Vocabularies:
        return tally.vocabularies(min_count=self.min_count)
