"""What tasks that write a text have in common, whatever they read: loss, search, symbols.

    loss = - sum over t of log p(y_t | y_<t, x)  (smoothed)  + weight * what else is to be learnt

A subclass says what the encoder reads of examples and of batches.

Axes: B examples, T target places, S places of the memory.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from torch import Tensor
from typing_extensions import override

from ...attention import Layout
from ...data import Example, Seq2SeqBatch, TokenizerSpec, Vocabulary
from ...data._batches import move
from ...data.vocabularies._vocabularies import Vocabularies, required_target
from ...decoding import Automaton
from ...metrics._calibration import Calibration
from ...models import AbstractDecoderSpec
from ...models._encoder_decoder import AbstractEncoderDecoder, Prepared
from ...networks.decoders._decoder import TokenLosses
from ._answering import AbstractAnsweringTask, Search
from ._prediction import Loss, PredictionSpec
from ._searching import Reading, searcher
from ._speaking import Speaking

Writer = TypeVar("Writer", bound=AbstractEncoderDecoder)


class Weighted(NamedTuple):
    """A loss beside the likelihood of the targets, and how much it counts."""

    weight: float
    loss: Tensor


@runtime_checkable
class WritingModelSpec(Protocol):
    """What the specs of their models have in common."""

    @property
    def decoder(self) -> AbstractDecoderSpec:
        """What writes the target."""
        ...


@runtime_checkable
class WritingSpec(Protocol):
    """What the specs of these tasks have in common."""

    @property
    def kind(self) -> str:
        """The name of the task."""
        ...

    @property
    def target(self) -> TokenizerSpec:
        """How the target is cut into symbols."""
        ...

    @property
    def model(self) -> WritingModelSpec:
        """What reads and what writes."""
        ...

    @property
    def label_smoothing(self) -> float:
        """Probability spread over all symbols in what is learnt."""
        ...

    @property
    def prediction(self) -> PredictionSpec:
        """How outputs are looked for."""
        ...


Spec = TypeVar("Spec", bound=WritingSpec)


class AbstractWriting(AbstractAnsweringTask[Writer], Generic[Writer, Spec]):
    """Something to a text, with an encoder, a decoder and attention."""

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
        """What the encoder reads of a batch, and its mask."""

    @abstractmethod
    def text_of(self, batch: Any) -> Seq2SeqBatch:
        """What is written for a batch: tokens, targets and their mask."""

    @abstractmethod
    def with_text(self, batch: Any, text: Seq2SeqBatch) -> Any:
        """The batch with something else to write."""

    @abstractmethod
    def read(self, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        """What the encoder reads of examples, and its mask."""

    @abstractmethod
    def reading(self, examples: Sequence[Example], settings: PredictionSpec) -> Reading:
        """What the encoder reads of examples of one size class, and the longest outputs to look for."""

    @abstractmethod
    def places(self, example: Example) -> tuple[str, ...]:
        """A label for every place that the encoder makes of an example."""

    @abstractmethod
    def layout(self, example: Example) -> Layout:
        """How these places lie."""

    @abstractmethod
    def limit(self, example: Example, settings: PredictionSpec | None = None) -> int:
        """The longest output to look for, the end symbol counted."""

    @override
    def loss(self, batch: Any, state: Any = None) -> Loss:
        """Summed over target symbols, the end among them."""
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
        """What else is to be learnt of a batch, by name."""
        return {}

    @override
    def reference(self, example: Example) -> str:
        target = self.spec.target
        return target.decode(target.encode(required_target(example)))

    def named(self, example: Example) -> str:
        """What to call the input of an example: the text itself, or the name of a file."""
        return str(example.source)

    def decode(self, tokens: Iterable[int]) -> list[str]:
        """The symbols of an output, up to its end."""
        return self._target.decode(tokens)

    def text(self, symbols: Sequence[str]) -> str:
        """The text of an output's symbols."""
        return self.spec.target.decode(symbols)

    @property
    def attention(self) -> str | None:
        """The kind of attention that the decoder has, if any."""
        attention = self.spec.model.decoder.attention
        return None if attention is None else attention.kind

    @property
    def constraints(self) -> tuple[Automaton, ...]:
        """What an output must be like."""
        return ()

    def stepper(self, prepared: Prepared) -> Speaking:
        """The steps of a search, which never say a symbol that is no output."""
        return Speaking(prepared.stepper)

    def _limit(self, num_symbols: int, settings: PredictionSpec) -> int:
        if settings.max_length is not None:
            return settings.max_length + 1
        return self.vocabularies.lengths.limit(num_symbols)

    @override
    def searcher(self) -> Search:
        return searcher([self])
