"""Search for the outputs of examples, by one model or by several as one.

    p(y_t | y_<t, x) = combine over m of p_m(y_t | y_<t, read_m(x))

Every member reads the examples itself, by numbers of its own, and is made ready once for all batches.
They write the same symbols by the same numbers, and so one search says what all of them would.

Axes: B examples, N candidates, T target places, S source places.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, final, runtime_checkable

import torch
from jaxtyping import Bool
from torch import Tensor

from ...attention import AttentionTrace, Layout
from ...data import BEGIN, END, Example
from ...decoding import Automaton, Ensemble, Hypotheses, LengthPenalty, Stepper, beam_search, greedy
from ...models._encoder_decoder import AbstractEncoderDecoder, Prepared
from ._answering import Answers, Search
from ._prediction import PredictionSpec
from ._speaking import Speaking, SpeakingTogether


class Reading(NamedTuple):
    """What one member reads of some examples."""

    source: tuple[Tensor, Tensor]  # what the encoder reads, and its mask
    limits: list[int]  # the longest outputs to look for, their end symbols counted
    places: Bool[Tensor, "B S"]  # those of the memory that are real


@runtime_checkable
class Member(Protocol):
    """What a search needs of a task that takes part in it."""

    @property
    def model(self) -> AbstractEncoderDecoder:
        """What reads and writes."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        ...

    @property
    def attention(self) -> str | None:
        """The kind of attention that the decoder has, if any."""
        ...

    def reading(self, examples: Sequence[Example], settings: PredictionSpec) -> Reading:
        """What the encoder reads of examples, and the longest outputs to look for."""
        ...

    def stepper(self, prepared: Prepared) -> Speaking:
        """The steps of a search, which never say a symbol that is no output."""
        ...

    def places(self, example: Example) -> tuple[str, ...]:
        """A label for every place that the encoder reads of an example."""
        ...

    def layout(self, example: Example) -> Layout:
        """How these places lie."""
        ...

    @property
    def constraints(self) -> tuple[Automaton, ...]:
        """What an output must be like."""
        ...

    def decode(self, tokens: Iterable[int]) -> list[str]:
        """The symbols of an output, up to its end."""
        ...

    def text(self, symbols: Sequence[str]) -> str:
        """The text of an output's symbols."""
        ...


def searcher(
    members: Sequence[Member], *, combine: Literal["mixture", "product"] = "mixture"
) -> Search:
    """What answers some examples, all in one batch; the members are prepared for it now. The first one
    writes symbols, names places and says what an output must be like for all.
    """
    return _Searcher(members, combine)


@final
class _Searcher:
    def __init__(self, members: Sequence[Member], combine: Literal["mixture", "product"]) -> None:
        self._members, self._constraints = members, members[0].constraints
        self._prepared = [member.model.prepare() for member in members]
        self._stepper: Stepper = members[0].stepper(self._prepared[0])
        if len(members) > 1:
            steppers = [prepared.stepper for prepared in self._prepared]
            self._stepper = SpeakingTogether(Ensemble(steppers, combine=combine))
        kinds = {member.attention for member in members}
        # Of several kinds all are named; where one member has none, there is nothing to show.
        self._kind = None if None in kinds else "+".join(sorted(map(str, kinds)))

    def __call__(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Answers]:
        writer = self._members[0]
        read = [member.reading(examples, settings) for member in self._members]
        limits = [max(each) for each in zip(*(one.limits for one in read), strict=True)]
        hypotheses = self._hypotheses(read, limits, settings)
        rows = zip(
            hypotheses.token_lists(END),
            hypotheses.scores.tolist(),
            hypotheses.totals.tolist(),
            hypotheses.lengths.tolist(),
            strict=True,
        )
        first = hypotheses.log_probs[:, 0].exp().tolist()
        found = []
        for number, (lists, scores, totals, lengths) in enumerate(rows):
            # An output that was cut off has no end symbol, but the room for one.
            symbols = [writer.decode(ids[: limits[number] - 1]) for ids in lists]
            real = [n for n, length in enumerate(lengths) if length > 0]
            found.append(
                Answers(
                    [writer.text(symbols[n]) for n in real],
                    [scores[n] for n in real],
                    [totals[n] for n in real],
                    tuple(first[number][: len(symbols[0])]),
                    self._trace(examples[number], symbols[0], read[0], hypotheses, number),
                )
            )
        return found

    def _hypotheses(
        self, read: Sequence[Reading], longest: list[int], settings: PredictionSpec
    ) -> Hypotheses:
        pairs = zip(self._prepared, read, strict=True)
        states = [prepared.start(*one.source) for prepared, one in pairs]
        state: Any = tuple(states) if len(states) > 1 else states[0]
        alpha = settings.length_penalty
        limits = torch.tensor(longest, device=self._members[0].device)
        begin = torch.full_like(limits, BEGIN)
        if settings.beam_size == 1:
            return greedy(
                self._stepper,
                state,
                begin=begin,
                end=END,
                max_length=limits,
                constraints=self._constraints,
                with_weights=settings.trace,
            )
        return beam_search(
            self._stepper,
            state,
            begin=begin,
            end=END,
            max_length=limits,
            beam_size=settings.beam_size,
            nbest=settings.beam_size,
            length_penalty=LengthPenalty(alpha=alpha) if alpha else None,
            constraints=self._constraints,
            with_weights=settings.trace,
        )

    def _trace(
        self,
        example: Example,
        symbols: list[str],
        read: Reading,
        hypotheses: Hypotheses,
        number: int,
    ) -> AttentionTrace | None:
        if hypotheses.weights is None or self._kind is None:
            return None
        rows = hypotheses.weights[number, 0, : len(symbols)][:, read.places[number]]
        return AttentionTrace(
            kind=self._kind,
            sources=self._members[0].places(example),
            targets=tuple(symbols),
            weights=tuple(map(tuple, rows.tolist())),
            layout=self._members[0].layout(example),
        )
