"""Task: a model together with its data format, loss, metrics and prediction.

    example -> encode -> collate -> loss                       training
    examples -> predict -> predictions                         use
    examples with targets -> evaluate -> scores, free-running  validation

A task consists of a spec, vocabularies and a model; nothing else is saved.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from ...data import BatchStream, Encoded, Example, Source
from ...data.streams._prepared import PreparedCorpus
from ...data.streams._stream import AbstractStream
from ...data.vocabularies._vocabularies import Vocabularies
from ...metrics._calibration import Calibration
from ..explaining._explanation import (
    Alternative,
    ExplainedStep,
    Explanation,
    Way,
    explanation_of,
)
from ._answerer import AbstractPredicting, Answered, ignore
from ._evaluation import Evaluation, MainMetric
from ._forced import Forced
from ._prediction import Loss, Prediction, PredictionSpec
from ._task_spec import Inputs

Model = TypeVar("Model", bound=nn.Module)
OutputKind: TypeAlias = Literal["text", "label", "labels"]


@contextmanager
def at_rest(model: nn.Module) -> Iterator[None]:
    """Disable dropout and gradients of a model, and restore its mode afterwards."""
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(was_training)


class AbstractTask(AbstractPredicting, Generic[Model]):
    """The interface of a task for training, evaluation and serving."""

    vocabularies: Vocabularies
    model: Model
    prediction: PredictionSpec  # default search settings
    calibration: Calibration

    @property
    @abstractmethod
    def spec(self) -> Any:
        """The spec from which the task was built."""

    @property
    @abstractmethod
    def main_metric(self) -> MainMetric:
        """The score that ranks models."""

    @abstractmethod
    def encode(self, example: Example) -> Encoded:
        """Encode a training example.

        Args:
            example: Example with a target.

        Returns:
            The example as ids.
        """

    @abstractmethod
    def collate(self, examples: Sequence[Encoded]) -> Any:
        """Collate encoded examples into a batch of tensors.

        Args:
            examples: Encoded examples of one batch.

        Returns:
            A batch, the argument of `loss`.
        """

    @abstractmethod
    def loss(self, batch: Any, state: Any = None) -> Loss:
        """Compute the loss of a batch.

        Args:
            batch: Batch that `collate` made, on any device.
            state: State after the previous batch of running text; None at its beginning, and for tasks without a state.

        Returns:
            The summed loss and the number of tokens or examples in the sum.
        """

    @abstractmethod
    def evaluate(
        self,
        examples: Sequence[Example],
        settings: PredictionSpec | None = None,
        *,
        answered: Answered = ignore,
    ) -> Evaluation:
        """Score free-running predictions against the targets of the examples.

        Args:
            examples: Examples with targets.
            settings: Search settings; defaults to `prediction`.
            answered: Called with the number of finished examples.

        Returns:
            The scores and predictions.
        """

    @abstractmethod
    def calibrate(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> None:
        """Fit the calibration of the confidence on held-out examples.

        Args:
            examples: Examples with targets that were not in the training set.
            settings: Search settings; defaults to `prediction`.
        """

    @property
    def inputs(self) -> Inputs:
        """The fields of an input of the task."""
        return self.spec.inputs

    @property
    def output_kind(self) -> OutputKind:
        """The kind of output: a text, one label, or a label for every token."""
        return "text"

    @property
    def has_one_answer(self) -> bool:
        """True if an output that differs from its reference is wrong. A text can have several correct wordings."""
        return True

    @property
    def attends(self) -> bool:
        """True if the steps of an explanation have attention weights."""
        return False

    @property
    def can_erase(self) -> bool:
        """True if the task can erase a position of its input; see `without_each`."""
        return False

    @property
    def is_bridged(self) -> bool:
        """True if the input reaches the output by a path other than a recurrence: by attention, or by pooling over all
        positions.
        """
        return self.attends

    @property
    def is_forcible(self) -> bool:
        """True if the task writes its output token by token; you can then force its prefix and its attention."""
        return False

    @property
    def guessing_loss(self) -> float:
        """The loss per token of a uniform guess; 0 if the number of outputs is unknown."""
        return 0.0

    def named(self, example: Example) -> str:
        """Return a name for the input of an example.

        Args:
            example: Example of this task.

        Returns:
            The written form of the source.
        """
        return str(example.source)

    def output_symbols(self, text: str) -> list[str]:
        """Return the tokens of an output.

        Args:
            text: An output of the task.

        Returns:
            The tokens; by default the output is split on whitespace.
        """
        return text.split()

    def explain(self, example: Example, way: Way) -> Explanation:
        """Explain an answer: the steps of `explained_steps` and the attention of the prediction.

        Args:
            example: Example to answer.
            way: Beam size, number of alternatives, and the prefix and attention to force.

        Returns:
            The answer, its alternatives and its steps.
        """
        return explanation_of(self, example, way)

    def explained_steps(
        self, example: Example, found: Prediction, alternatives: int
    ) -> Sequence[ExplainedStep]:
        """Return the steps that lead to an answer. By default, the whole answer is one step, and the rest of the n-best
        list are its alternatives.

        Args:
            example: The input.
            found: The prediction, with its n-best list and its trace.
            alternatives: The number of alternatives to list at a step.

        Returns:
            The steps, in order.
        """
        ranked = tuple(Alternative(one.output, one.probability) for one in found.nbest)
        return (ExplainedStep(found.output, found.confidence, ranked),)

    def forced(self, batch: Any) -> Forced:
        """Evaluate the right answers of a batch under the model; by default only their total loss.

        Args:
            batch: Batch that `collate` made.

        Returns:
            The log-probability of the answers; by default one number for the whole batch.
        """
        loss = self.loss(batch)
        return Forced(-loss.total.unsqueeze(0), int(loss.count), None)

    def without_each(self, example: Example, tokens: Sequence[str]) -> Float[Tensor, "R T"] | None:
        """Return the log-probability of every token of an answer, given the whole input and then the input without each
        of its positions; None if the task does not support this.

        Args:
            example: The input.
            tokens: The tokens of the answer, with "" for the end token.

        Returns:
            Log-probabilities with one row for each input, or None.
        """
        return None

    def picture_seen(self, example: Example) -> UInt8[np.ndarray, "h w c"] | None:
        """Return the picture of an example as the model sees it. The frames of a clip are side by side.

        Args:
            example: Example of this task.

        Returns:
            Pixels, channels last, with values from 0 to 255; None for a task that reads texts.
        """
        return None

    def batches(
        self,
        source: Source | PreparedCorpus,
        *,
        budget: int | None = None,
        batch_size: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> AbstractStream[Any]:
        """Return training batches; see `BatchStream`.

        Args:
            source: Training examples, or a corpus that was encoded before.
            budget: Maximum number of padded positions of a batch of all processes.
            batch_size: Number of rows of a batch of all processes, instead of a budget.
            seed: Seed of the random order, together with the epoch.
            rank: Rank of this process.
            world_size: Number of processes.

        Returns:
            A stream of batches.
        """
        return BatchStream(
            source,
            self.encode,
            self.collate,
            budget=budget,
            batch_size=batch_size,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.model.parameters()).device

    def answering(self) -> AbstractContextManager[None]:
        """Disable dropout and gradients of the model inside a `with` block.

        Returns:
            A context manager, which restores the mode of the model afterwards.
        """
        return at_rest(self.model)
