"""Language modeling: the likelihood of a text, and its continuation.

    loss = - sum over t of log p(y_t | y_<t)

All lines form one long text with the end token between them. The model reads it in chunks, each starting from the state
after the previous one (truncated back-propagation through time).

Axes: B parts of the text that are read in parallel, L tokens of each.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from typing_extensions import override

from ..attention import AttentionTrace
from ..batch_invariant import LEAST_ROWS
from ..data import END, CharacterSpec, Encoded, Example, Source, TokenizerSpec
from ..data._batches import TextBatch, move
from ..data.streams._prepared import PreparedCorpus
from ..data.streams._stream import AbstractStream
from ..data.streams._text_stream import TextStream
from ..data.vocabularies._tally import Symbols, Tally
from ..data.vocabularies._vocabularies import Vocabularies, trained
from ..decoding import sample
from ..masking import mask_from_lengths
from ..metrics._calibration import Calibration
from ..metrics._metrics import perplexity
from ..models import (
    LanguageModel,
    LanguageModelSpec,
    TransformerLanguageModelSpec,
    detached,
)
from ..networks import DecoderState
from ..networks.search._stepping_state import SteppingState
from ..specs import setting
from .base._answerer import AbstractAnswerer, Answered, ignore
from .base._evaluation import Evaluation, MainMetric
from .base._forced import Forced
from .base._prediction import Candidate, Loss, Prediction, PredictionSpec
from .base._size_classes import answers_of, settled
from .base._speaking import Speaking
from .base._task import AbstractTask
from .base._text_spec import AbstractTextSpec
from .explaining._explanation import END_NAME, Alternative, ExplainedStep, Explanation, Way

_MAX_PLACES = 64  # the maximum number of parts of a text that evaluation reads in parallel


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationSpec:
    """Settings for the continuation of a text."""

    temperature: float = setting(
        0.8,
        "softmax temperature of sampling; above 1 more diverse, below 1 more conservative",
        above=0,
    )
    top_k: int | None = setting(
        None, "sample from this number of most probable tokens; none: all", at_least=1
    )
    top_p: float = setting(
        1.0, "sample from the most probable tokens with this total probability", above=0, at_most=1
    )
    seed: int = setting(0, "seed of sampling", at_least=0, at_most=2**63 - 1)


@final
class LanguageModeling(AbstractTask[LanguageModel]):
    """Prediction of the next token. A prediction continues the source of its example. Its confidence is the geometric
    mean of the token probabilities, because there is no right answer.

    Args:
        spec: Settings of the task.
        vocabularies: Vocabulary of the text, as `source`.
        model: Language model over this vocabulary.
    """

    def __init__(
        self, spec: "LanguageModelingSpec", vocabularies: Vocabularies, model: LanguageModel
    ) -> None:
        self._spec, self.vocabularies, self.model = spec, vocabularies, model
        self.prediction, self.calibration = spec.prediction, Calibration()

    @property
    @override
    def spec(self) -> "LanguageModelingSpec":
        return self._spec

    @property
    @override
    def main_metric(self) -> MainMetric:
        return MainMetric("perplexity", False)

    @override
    def encode(self, example: Example) -> Encoded:
        """Encode the tokens of a line and its end."""
        symbols = self.spec.source.encode(example.text)
        return Encoded([*self.vocabularies.source.encode(symbols), END])

    @override
    def collate(self, examples: Sequence[Encoded]) -> TextBatch:
        """Concatenate lines in one row."""
        (batch,) = _stretches([n for e in examples for n in e.source], places=1, length=None)
        return batch

    @override
    def loss(self, batch: TextBatch, state: DecoderState | None = None) -> Loss:
        """Compute the loss, summed over tokens; `state` is the state after the previous chunk."""
        batch = move(batch, self.device)
        scored = self.model.score(
            batch.tokens, batch.targets, batch.mask, None if batch.fresh else state
        )
        return Loss(scored.loss.sum(), batch.mask.sum(), state=detached(scored.state))

    @override
    def batches(
        self,
        source: Source | PreparedCorpus,
        *,
        budget: int | None = None,
        batch_size: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> AbstractStream[TextBatch]:
        """Return chunks of the text; `budget` is the number of tokens in a batch."""
        length = self.spec.bptt_length
        rows = batch_size if batch_size is not None else max(1, (budget or 1) // length)
        return TextStream(
            source,
            self.encode,
            batch_size=max(rows, world_size),
            length=length,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )

    @override
    def size(self, example: Example) -> int:
        return len(self.spec.source.encode(example.text))

    @override
    def answerer(self, settings: PredictionSpec | None = None) -> AbstractAnswerer:
        """Return an answerer that continues each source to the end of its line. The same seed gives the same text for
        the same source.
        """
        return _Continuing(self, settings or self.spec.prediction)

    @override
    def evaluate(
        self,
        examples: Sequence[Example],
        settings: PredictionSpec | None = None,
        *,
        answered: Answered = ignore,
    ) -> Evaluation:
        """Compute the perplexity of the sources as one text."""
        encoded = [self.encode(example) for example in examples]
        sizes = np.array([len(one.source) for one in encoded])
        with self.answering():
            log_probs = self._log_probs([n for one in encoded for n in one.source])
        answered(len(examples))
        lines = np.repeat(np.arange(len(sizes)), sizes)
        totals = np.bincount(lines, log_probs, minlength=len(sizes))
        statistics = perplexity(totals.tolist(), sizes.tolist())
        return Evaluation(
            main=self.main_metric,
            statistics={statistics.name: statistics},
            examples=examples,
            references=[example.text for example in examples],
            predictions=(),
            symbols=[self.spec.source.encode(example.text) for example in examples],
            known=self.vocabularies.source,
            rare=frozenset(self.vocabularies.rare),
        )

    @override
    def calibrate(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> None:
        """Do nothing: a continuation is neither right nor wrong."""

    @property
    @override
    def guessing_loss(self) -> float:
        return math.log(self.model.num_tokens)

    @override
    def forced(self, batch: TextBatch) -> Forced:
        batch = move(batch, self.device)
        # The loss of each token has a gradient; its log-probability in `TokenLosses` has none.
        scored = self.model.score(batch.tokens, batch.targets, batch.mask)
        return Forced(-scored.loss.sum(-1), int(batch.mask.sum()), None)

    @override
    def explain(self, example: Example, way: Way) -> Explanation:
        """Explain each token of the text and the end of its line. The text is not continued: the output is the text
        itself. A Transformer also explains which earlier tokens each prediction reads.
        """
        vocabulary = self.vocabularies.source
        numbers = self.encode(example).source
        with self.answering():
            tokens = torch.tensor([[END, *numbers[:-1]]], device=self.device)
            log_probs = self.model(tokens).log_probs[0]
            attended = self.model.self_attentions(tokens)
        steps, total = list[ExplainedStep](), 0.0
        symbols = [*self.spec.source.encode(example.text), ""]
        for symbol, number, row in zip(symbols, numbers, log_probs, strict=True):
            top = row.exp().topk(min(way.alternatives, len(row)))
            listed = tuple(
                Alternative("".join(vocabulary.decode([token])), value)
                for token, value in zip(top.indices.tolist(), top.values.tolist(), strict=True)
            )
            total += row[number].item()
            steps.append(ExplainedStep(symbol, row[number].exp().item(), listed))
        return Explanation(
            task=self.spec.kind,
            input=example.text,
            output=example.text,
            score=total,
            confidence=math.exp(total / len(steps)),
            nbest=(),
            sources=tuple(symbols[:-1]),
            steps=tuple(steps),
            others=tuple(
                _trace(kind, weights.mean(-3)[0], symbols)
                for kind, (_, weights, _) in zip(
                    self.spec.model.attention_kinds, attended, strict=True
                )
            ),
        )

    def _log_probs(self, text: list[int]) -> Float[np.ndarray, " N"]:
        """Return the log-probability of each token of a text, which is read in several parts in parallel."""
        places = max(1, min(_MAX_PLACES, len(text) // (4 * self.spec.bptt_length)))
        state: DecoderState | None = None
        found = []
        for stretch in _stretches(text, places=places, length=self.spec.bptt_length):
            batch = move(stretch, self.device)
            scored = self.model.score(batch.tokens, batch.targets, batch.mask, state)
            state = scored.state
            found.append(scored.log_prob.cpu().double())
        return torch.cat(found, 1).flatten()[: len(text)].numpy()

    def continued(
        self, stepper: Speaking, examples: Sequence[Example], settings: PredictionSpec
    ) -> list[Prediction]:
        """Continue sources of one size class in one batch.

        Args:
            stepper: Decoder that samples the tokens.
            examples: Examples of one size class; each source is the beginning of a text.
            settings: Number of continuations of each example, and their maximum length.

        Returns:
            One prediction per example, in order.
        """
        generation = self.spec.generation
        begun = [torch.tensor([END, *self.encode(e).source[:-1]]) for e in examples]
        drawn = sample(
            stepper,
            self._after([start[:-1] for start in begun]),
            begin=torch.stack([start[-1] for start in begun]).to(self.device),
            end=END,
            max_length=(settings.max_length or self.spec.max_length) + 1,
            num_samples=settings.nbest,
            temperature=generation.temperature,
            top_k=generation.top_k,
            top_p=generation.top_p,
            generator=[torch.Generator().manual_seed(generation.seed) for _ in examples],
        )
        return [
            self._prediction(lists, totals, lengths)
            for lists, totals, lengths in zip(
                drawn.token_lists(END), drawn.totals.tolist(), drawn.lengths.tolist(), strict=True
            )
        ]

    def _after(self, texts: Sequence[Int[Tensor, " _"]]) -> SteppingState:
        """Return the state of a search after it has read the texts."""
        state = self.model.start(len(texts))
        tokens = pad_sequence(list(texts), batch_first=True).to(self.device)
        sizes = torch.tensor([len(text) for text in texts], device=self.device)
        tokens, mask = settled(tokens, mask_from_lengths(sizes, tokens.shape[1]))
        read = self.model.score(tokens, tokens, mask).state
        return state._replace(decoder=read.map(lambda part: part.unsqueeze(1)))

    def _prediction(
        self, lists: list[list[int]], totals: list[float], lengths: list[int]
    ) -> Prediction:
        """Combine several continuations of one text in a prediction."""
        candidates = tuple(
            Candidate(
                self.spec.source.decode(self.vocabularies.source.decode(tokens)),
                total,
                math.exp(total / max(1, length)),
            )
            for tokens, total, length in zip(lists, totals, lengths, strict=True)
        )
        output, score, confidence = candidates[0]
        return Prediction(output, score, confidence, candidates)


@final
class _Continuing(AbstractAnswerer):
    """A language model that is prepared for decoding."""

    def __init__(self, task: LanguageModeling, settings: PredictionSpec) -> None:
        super().__init__(settings)
        self._task = task
        with task.answering():
            self._stepper = Speaking(task.model.stepper())

    @override
    def size(self, example: Example) -> int:
        return self._task.size(example)

    @override
    def answer(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> list[Prediction]:
        continued = partial(self._task.continued, self._stepper, settings=settings or self.settings)
        with self._task.answering():
            return answers_of(continued, examples, LEAST_ROWS)


def _trace(kind: str, weights: Float[Tensor, "T T"], symbols: Sequence[str]) -> AttentionTrace:
    """Return the tokens that the prediction of each token reads; the first is the end of the previous line."""
    labels = [symbol or END_NAME for symbol in symbols]
    return AttentionTrace(
        kind=kind,
        sources=(END_NAME, *labels[:-1]),
        targets=tuple(labels),
        weights=tuple(map(tuple, weights.tolist())),
    )


def _stretches(text: list[int], *, places: int, length: int | None) -> Iterator[TextBatch]:
    """Yield a text in `places` rows, `length` columns at a time. An end token precedes its first token, as between
    lines.
    """
    size = max(1, math.ceil(len(text) / places))
    padded = torch.zeros(places * size + 1, dtype=torch.long)
    padded[0] = END
    padded[1 : len(text) + 1] = torch.tensor(text, dtype=torch.long)
    real = (torch.arange(places * size) < len(text)).reshape(places, size)
    tokens, targets = padded[:-1].reshape(places, size), padded[1:].reshape(places, size)
    step = size if length is None else length
    for start in range(0, size, step):
        here = slice(start, start + step)
        yield TextBatch(tokens[:, here], targets[:, here], real[:, here], start == 0)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageModelingSpec(AbstractTextSpec[LanguageModeling]):
    """Language modeling: the likelihood of a text and its continuation."""

    kind: Literal["language_modeling"] = "language_modeling"
    source: TokenizerSpec = setting(CharacterSpec(), "tokenizer of the text")
    min_count: int = setting(
        1, "tokens that are rarer in the training set become unknown", at_least=1
    )
    max_vocab_size: int | None = setting(
        None, "maximum vocabulary size, most frequent tokens first; none: no maximum", at_least=5
    )
    model: LanguageModelSpec | TransformerLanguageModelSpec = setting(
        LanguageModelSpec(), "the model that predicts the next token"
    )
    bptt_length: int = setting(
        100, "tokens that gradients pass through (truncated backpropagation)", at_least=1
    )
    max_length: int = setting(200, "maximum length of a continuation in tokens", at_least=1)
    prediction: PredictionSpec = setting(PredictionSpec(beam_size=1), "number of continuations")
    generation: GenerationSpec = setting(GenerationSpec(), "settings of sampling")

    @override
    def build(self, vocabularies: Vocabularies) -> LanguageModeling:
        """Build the task with fresh weights."""
        model = self.model.build(vocabulary=len(vocabularies.source))
        return LanguageModeling(self, vocabularies, model)

    @override
    def trained_on(self, examples: Iterable[Example]) -> "LanguageModelingSpec":
        return replace(self, source=trained(self.source, (e.text for e in examples)))

    @override
    def counted(self, example: Example) -> Symbols:
        return Symbols(self.source.encode(example.text))

    @override
    def vocabularies(self, tally: Tally) -> Vocabularies:
        return tally.vocabularies(min_count=self.min_count, max_size=self.max_vocab_size)
