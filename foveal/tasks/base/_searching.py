"""Search for the outputs of examples, with one model or an ensemble.

    p(y_t | y_<t, x) = combine over m of p_m(y_t | y_<t, read_m(x))

Every member encodes the examples with its source vocabulary and is prepared once for all batches. All members share the
target vocabulary, so one search serves all of them.

Axes: B examples, N candidates, T target positions, S source positions.
"""

from collections.abc import Iterable, Sequence
from functools import partial
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
from ._size_classes import by_class
from ._speaking import Speaking, SpeakingTogether

_LEAST_ROWS = 2  # products of one row use other kernels


class Reading(NamedTuple):
    """The input of one member for some examples."""

    source: tuple[Tensor, Tensor]  # the encoder input and its mask
    limits: list[int]  # the maximum output lengths, including the end token
    places: Bool[Tensor, "B S"]  # the real positions of the memory


@runtime_checkable
class Member(Protocol):
    """The interface that a search needs from a task."""

    @property
    def model(self) -> AbstractEncoderDecoder:
        """The encoder-decoder model."""
        ...

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        ...

    @property
    def attention(self) -> str | None:
        """The kind of attention in the decoder, if any."""
        ...

    def reading(self, examples: Sequence[Example], settings: PredictionSpec) -> Reading:
        """Return the encoder input of examples and the maximum output lengths."""
        ...

    def stepper(self, prepared: Prepared) -> Speaking:
        """Return the decoding steps, which never produce a reserved token."""
        ...

    def places(self, example: Example) -> tuple[str, ...]:
        """Return a label for every position that the encoder reads."""
        ...

    def layout(self, example: Example) -> Layout:
        """Return the layout of the positions that the encoder reads."""
        ...

    def shape_class(self, example: Example) -> tuple[int, ...]:
        """Return the size classes of further axes of the input; only inputs that are equal in all share a batch."""
        ...

    def constraints(self, settings: PredictionSpec) -> tuple[Automaton, ...]:
        """Return the constraints on an output."""
        ...

    def decode(self, tokens: Iterable[int], example: Example) -> list[str]:
        """Return the tokens of an output for an example, up to its end."""
        ...

    def text(self, symbols: Sequence[str]) -> str:
        """Return the text of the tokens of an output."""
        ...


def searcher(
    members: Sequence[Member], *, combine: Literal["mixture", "product"] = "mixture"
) -> Search:
    """Prepare the members and return a search that answers examples in one batch. The first member provides tokens,
    position labels and constraints for all.
    """
    return _Searcher(members, combine)


@final
class _Searcher:
    def __init__(self, members: Sequence[Member], combine: Literal["mixture", "product"]) -> None:
        self._members = members
        self._prepared = [member.model.prepare() for member in members]
        self._stepper: Stepper = members[0].stepper(self._prepared[0])
        if len(members) > 1:
            steppers = [prepared.stepper for prepared in self._prepared]
            self._stepper = SpeakingTogether(Ensemble(steppers, combine=combine))
        kinds = {member.attention for member in members}
        # The name lists all kinds of attention; if one member has none, there is no trace.
        self._kind = None if None in kinds else "+".join(sorted(map(str, kinds)))

    def __call__(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Answers]:
        ask = partial(self._answers, settings)
        return by_class(ask, examples, self._members[0].shape_class, _LEAST_ROWS)

    def _answers(self, settings: PredictionSpec, examples: Sequence[Example]) -> list[Answers]:
        """Answer examples whose inputs have one shape class."""
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
            # A truncated output has no end token, but has room for one.
            shown = [ids[: limits[number] - 1] for ids in lists]
            symbols = [writer.decode(ids, examples[number]) for ids in shown]
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
        constraints = self._members[0].constraints(settings)
        if settings.beam_size == 1:
            return greedy(
                self._stepper,
                state,
                begin=begin,
                end=END,
                max_length=limits,
                no_repeat_ngram=settings.no_repeat_ngram,
                constraints=constraints,
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
            no_repeat_ngram=settings.no_repeat_ngram,
            constraints=constraints,
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
