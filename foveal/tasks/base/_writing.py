"""Shared parts of tasks that generate a text from any input: loss, search, tokens.

    loss = - sum over t of log p(y_t | y_<t, x)  (smoothed)  + weight * auxiliary losses

A subclass defines the encoder input of examples and batches.

Axes: B examples, T target positions, S positions of the memory.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from torch import Tensor
from typing_extensions import override

from ...attention import Layout
from ...data import END, Example, Seq2SeqBatch, TokenizerSpec, Vocabulary
from ...data._batches import move
from ...data.vocabularies._vocabularies import Vocabularies, required_target
from ...decoding import Automaton, allowed_tokens
from ...errors import SpecError
from ...metrics._calibration import Calibration
from ...models import AbstractDecoderSpec
from ...models._encoder_decoder import AbstractEncoderDecoder, Prepared
from ...networks.decoders._steps import TokenLosses
from ._answering import AbstractAnsweringTask, Search
from ._prediction import Loss, PredictionSpec
from ._searching import Reading, searcher
from ._speaking import Speaking

Writer = TypeVar("Writer", bound=AbstractEncoderDecoder)


class Weighted(NamedTuple):
    """An auxiliary loss and its weight."""

    weight: float
    loss: Tensor


@runtime_checkable
class WritingModelSpec(Protocol):
    """Shared fields of the model specs."""

    @property
    def decoder(self) -> AbstractDecoderSpec:
        """The spec of the decoder."""
        ...


@runtime_checkable
class WritingSpec(Protocol):
    """Shared fields of the specs of tasks that generate a text."""

    @property
    def kind(self) -> str:
        """The name of the task."""
        ...

    @property
    def target(self) -> TokenizerSpec:
        """The tokenizer of the target."""
        ...

    @property
    def model(self) -> WritingModelSpec:
        """The spec of the encoder and the decoder."""
        ...

    @property
    def label_smoothing(self) -> float:
        """The probability that label smoothing spreads over all tokens."""
        ...

    @property
    def prediction(self) -> PredictionSpec:
        """Default search settings."""
        ...


Spec = TypeVar("Spec", bound=WritingSpec)


class AbstractWriting(AbstractAnsweringTask[Writer], Generic[Writer, Spec]):
    """A task that generates a text with an encoder, a decoder and attention."""

    is_complete = False

    def __init__(self, spec: Spec, vocabularies: Vocabularies, model: Writer) -> None:
        self._spec, self.vocabularies, self.model = spec, vocabularies, model
        self._target: Vocabulary = vocabularies.target_of(type(self).__name__)
        self.prediction, self.calibration = spec.prediction, Calibration()

    @property
    @override
    def spec(self) -> Spec:
        return self._spec

    @property
    @override
    def attends(self) -> bool:
        return self.spec.model.decoder.attention is not None

    @override
    def output_symbols(self, text: str) -> list[str]:
        return self.spec.target.encode(text)

    @abstractmethod
    def source_of(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Return the encoder input of a batch and its mask."""

    @abstractmethod
    def text_of(self, batch: Any) -> Seq2SeqBatch:
        """Return the text of a batch: tokens, targets and their mask."""

    @abstractmethod
    def with_text(self, batch: Any, text: Seq2SeqBatch) -> Any:
        """Return the batch with another text to generate."""

    @abstractmethod
    def read(self, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        """Return the encoder input of examples and its mask."""

    @abstractmethod
    def reading(self, examples: Sequence[Example], settings: PredictionSpec) -> Reading:
        """Return the encoder input of examples of one size class and the maximum output lengths."""

    @abstractmethod
    def places(self, example: Example) -> tuple[str, ...]:
        """Return a label for every position that the encoder produces."""

    @abstractmethod
    def layout(self, example: Example) -> Layout:
        """Return the layout of the positions that the encoder produces."""

    def shape_class(self, example: Example) -> tuple[int, ...]:
        """Return the size classes of further axes of the input; only inputs that are equal in all share a batch."""
        del example
        return ()

    @abstractmethod
    def limit(self, example: Example, settings: PredictionSpec | None = None) -> int:
        """Return the maximum output length, including the end token."""

    @override
    def loss(self, batch: Any, state: Any = None) -> Loss:
        """Compute the loss, summed over target tokens, including the end token."""
        batch = move(batch, self.device)
        text = self.text_of(batch)
        scored = self.model.score(
            *self.source_of(batch),
            text.tokens,
            text.targets,
            text.mask,
            label_smoothing=self.spec.label_smoothing,
        )
        total, count, others = scored.loss.sum(), text.mask.sum(), self._others(batch, scored)
        if not others:
            return Loss(total, count)
        parts = {"likelihood": total, **{name: other.loss for name, other in others.items()}}
        for other in others.values():
            total = total + other.weight * other.loss
        return Loss(total, count, {name: part.detach() for name, part in parts.items()})

    def _others(self, batch: Any, scored: TokenLosses) -> Mapping[str, Weighted]:
        """Return the auxiliary losses of a batch, by name."""
        return {}

    @override
    def reference(self, example: Example) -> str:
        target = self.spec.target
        return target.decode(target.encode(required_target(example)))

    def named(self, example: Example) -> str:
        """Return a name for the input of an example: the text itself, or the name of a file."""
        return str(example.source)

    def decode(self, tokens: Iterable[int], example: Example) -> list[str]:
        """Return the tokens of an output for an example, up to its end."""
        del example  # only tokens that were copied depend on it
        return self._target.decode(tokens)

    def text(self, symbols: Sequence[str]) -> str:
        """Return the text of the tokens of an output."""
        return self.spec.target.decode(symbols)

    @property
    def attention(self) -> str | None:
        """The kind of attention in the decoder, if any."""
        return self.spec.model.decoder.attention_kind

    def constraints(self, settings: PredictionSpec) -> tuple[Automaton, ...]:
        """Return the constraints on an output."""
        return (self._allowed(settings.inventory),) if settings.inventory else ()

    def _allowed(self, inventory: Sequence[str]) -> Automaton:
        """Allow outputs of these tokens. The model cannot write those that its vocabulary lacks."""
        known = [token for token in inventory if token in self._target]
        if not known:
            raise SpecError(
                f"prediction.inventory: expected tokens of the outputs of this model, for example "
                f"{' '.join(self._target.tokens[:5])}, got {' '.join(inventory)[:80]}. Use the tokens of its training data."
            )
        return allowed_tokens(self._target.encode(known), num_tokens=self.model.num_tokens, end=END)

    def stepper(self, prepared: Prepared) -> Speaking:
        """Return the decoding steps, which never produce a reserved token."""
        return Speaking(prepared.stepper)

    def _limit(self, num_symbols: int, settings: PredictionSpec) -> int:
        if settings.max_length is not None:
            return settings.max_length + 1
        return self.vocabularies.lengths.limit(num_symbols)

    @override
    def searcher(self) -> Search:
        return searcher([self])
