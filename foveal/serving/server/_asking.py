"""The event-loop side of a request: to the computing process and back."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Hashable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final

from ...data import Example
from ...tasks import PredictionSpec
from ...tasks.base._size_classes import size_class
from ...web._question import Question
from .._admission import LateError, QueueLimits
from .._batcher import Batcher, Outcome, Seen
from .._fair_queue import Ticket
from .._limits import Limits
from .._pace import Timed
from ..computing._process import Computing
from ..computing._served import Served
from ._metrics import Metrics
from ._schema import PredictRequest

# Characters up to which the event loop finds size classes; for more, a thread does.
_FEW_CHARACTERS = 4000
_EXPLAINED = 2  # passes over the steps of an output: one for the search, one for the explanation


class Way(NamedTuple):
    """A group of inputs for one batch: the same model and the same settings."""

    served: Served
    settings: PredictionSpec
    confidence: bool
    places: int

    @property
    def kind(self) -> Hashable:
        """A key that batches of similar speed share."""
        return self.served.name, self.settings.beam_size, self.settings.trace, self.places

    async def ask(
        self, computing: Computing, items: Sequence[Example], *, interrupting: bool
    ) -> Timed:
        """Return the answers as JSON."""
        return await computing.answer(
            self.served,
            items,
            self.settings,
            confidence=self.confidence,
            interrupting=interrupting,
        )


@dataclass(frozen=True, eq=False)
class Explaining:
    """A question of the page, answered in a batch of one."""

    served: Served
    steps: int  # size class of the input positions and the given steps
    places: int = 0  # for the metrics, for any size

    @property
    def kind(self) -> Hashable:
        """A key that questions of similar speed share."""
        return self.served.name, "explain", self.steps

    async def ask(
        self, computing: Computing, items: Sequence[Question], *, interrupting: bool
    ) -> Timed:
        """Return the explanations of the answers."""
        explained = [
            await computing.explain(
                self.served,
                Example(question.input, features=question.features),
                prefix=question.prefix,
                forced=question.forced,
                interrupting=interrupting,
            )
            for question in items
        ]
        return Timed([one.value for one in explained], sum(one.seconds for one in explained))


class _Asked:
    """A request in flight; its outcomes come in any order."""

    def __init__(self, size: int) -> None:
        self.tickets: list[Ticket] = []
        self.answers: list[Any] = [None] * size
        self.has_come = [asyncio.Event() for _ in range(size)]

    def put(self, number: int, answer: Any) -> None:
        self.answers[number] = answer
        self.has_come[number].set()


@final
class Asking:
    """The entry point for all requests, created in the event loop."""

    def __init__(self, computing: Computing, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        queue = QueueLimits(most_seconds=limits.waiting_seconds, longest=limits.answer_seconds)
        self._batcher = Batcher(
            lambda group: partial(group.ask, computing),
            _hand_out,
            queue,
            self._seen,
            kind=lambda group: group.kind,
            cancel=computing.cancel,
        )
        metrics.waiting.set_function(lambda: self._batcher.num_waiting)

    async def predict(
        self, served: Served, request: PredictRequest, client: str
    ) -> AsyncGenerator[str, None]:
        """Yield answers as JSON, in input order, each as soon as it and all earlier ones are ready.
        The first step raises an error if the request is rejected.
        """
        settings = served.questions.settings(nbest=request.nbest, attention=request.attention)
        features = request.features or [""] * len(request.inputs)
        examples = [
            Example(text, features=each)
            for text, each in zip(request.inputs, features, strict=True)
        ]
        sizes = await self._sizes(served, examples)
        deadline = self._deadline(request.deadline_ms)
        asked = _Asked(len(examples))
        for number, (example, length) in enumerate(zip(examples, sizes, strict=True)):
            places = size_class(length)
            way = Way(served, settings, request.confidence, places)
            size = float(places * settings.beam_size)
            asked.tickets.append(Ticket(way, example, client, size, deadline, (asked, number)))
        async with aclosing(self._answers(asked, deadline)) as answers:
            async for answer in answers:
                yield answer

    async def explain(self, served: Served, question: Question, client: str) -> str:
        """Return the explanation of one answer, as JSON."""
        example = Example(question.input, features=question.features)
        num_given = max(len(question.prefix), *(step + 1 for step in question.forced), 0)
        (length,) = await self._sizes(served, [example])
        steps = size_class(length + num_given)
        asked, deadline = _Asked(1), self._deadline(None)
        size = float(_EXPLAINED * steps * served.questions.task.prediction.beam_size)
        way = Explaining(served, steps)
        asked.tickets = [Ticket(way, question, client, size, deadline, (asked, 0))]
        async with aclosing(self._answers(asked, deadline)) as answers:
            return await anext(answers)

    async def close(self) -> None:
        """Answer all waiting requests, then end."""
        await self._batcher.close()

    async def _answers(self, asked: _Asked, deadline: float) -> AsyncGenerator[Any, None]:
        self._batcher.submit(asked.tickets)
        try:
            for number, has_come in enumerate(asked.has_come):
                try:
                    async with asyncio.timeout(deadline - time.monotonic()):
                        await has_come.wait()
                except TimeoutError:
                    raise LateError from None
                answer = asked.answers[number]
                if isinstance(answer, Exception):
                    raise answer
                yield answer
        finally:
            self._batcher.drop(asked.tickets)

    async def _sizes(self, served: Served, examples: Sequence[Example]) -> list[int]:
        size: Callable[[Example], int] = served.questions.size
        if sum(len(str(example.source)) for example in examples) <= _FEW_CHARACTERS:
            return [size(example) for example in examples]
        return await asyncio.to_thread(lambda: [size(example) for example in examples])

    def _deadline(self, milliseconds: int | None) -> float:
        most = self._limits.answer_seconds
        seconds = most if milliseconds is None else min(most, milliseconds / 1000)
        return time.monotonic() + seconds

    def _seen(self, seen: Seen) -> None:
        name = seen.group.served.name
        self._metrics.batch_size.labels(name, seen.group.places).observe(seen.size)
        self._metrics.batch_seconds.labels(name).observe(seen.seconds)


def _hand_out(outcomes: Sequence[Outcome]) -> None:
    for ticket, answer in outcomes:
        asked, number = ticket.asked
        asked.put(number, answer)
