"""Pronunciation: softmax, sigmoid and segment attention of the model that `foveal fit` plans.

Icelandic, 800 words to learn from, 100 to choose by, 100 to test on (SIGMORPHON 2021, low
resource). The word that is shown was chosen before any model was trained, for what its letters do:
l is spoken as two phones, á too, and tt as two others. It is a word of the test file.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, final

import torch
from jaxtyping import Int
from torch import Tensor

from examples.support import DATA
from foveal.attention import AttentionTrace
from foveal.bundles import load_bundle
from foveal.data import BEGIN, END, Encoded, Example, collate_seq2seq, open_source
from foveal.decoding import Stepper, beam_search
from foveal.networks import SearchStep
from foveal.planning import plan
from foveal.specs import to_data, with_setting
from foveal.tasks import Transduction, TransductionSpec
from foveal.training import Run, read_log
from foveal.views import Series
from foveal.views._beam import Hypothesis

from ..results import Results, Row, digest
from ._exhibit import DIGITS, Budget, Exhibit, Shown, Stopwatch, rounded

FILES = {part: f"g2p_sigmorphon2021/low/ice_{part}.tsv" for part in ("train", "dev", "test")}
SHOWN = "sláttur"
WIDTH = 5
END_LABEL = "end"


def pronunciation(attention: str, budget: Budget) -> Exhibit:
    """Fit, and look at one word. The model is the one that the files call for, but for its attention."""
    watch, (run, test) = Stopwatch(), _planned(attention, budget)
    with tempfile.TemporaryDirectory(prefix="gallery") as name:
        folder = Path(name)
        outcome = run.fit(folder)
        task, log = load_bundle(folder), list(read_log(folder / "log.jsonl"))
    assert isinstance(task, Transduction)
    metric = outcome.test["wer"]
    score = Row(
        name="test words with a mistake",
        value=metric.value,
        unit="%",
        spread=(metric.low, metric.high),
        seeds=(budget.seed,),
    )
    results = Results.here(f"python -m benchmarks.gallery --cases {attention}")
    shown = look(task, test)
    if attention == "softmax":  # the search and the log are shown of one model only
        shown = replace(shown, series=tuple(_curves(log)))
    else:
        shown = replace(shown, hypotheses=())
    return Exhibit(
        results=replace(
            results.with_rows([score, watch.row(budget.seed)]),
            data={path: digest(DATA / path) for path in FILES.values()},
            spec={"task": to_data(run.task), "training": to_data(run.training)},
        ),
        shown=shown,
    )


def _planned(attention: str, budget: Budget) -> tuple[Run, Example]:
    """The run, and the word that will be shown."""
    sources = {part: open_source(DATA / path).source for part, path in FILES.items()}
    run = plan(sources["train"], sources["dev"], sources["test"]).run
    run = with_setting(run, "task.model.decoder.attention", attention)
    training = replace(run.training, seed=budget.seed)
    if budget.updates is not None:
        training = replace(training, epochs=None, steps=budget.updates)
    (shown,) = [example for example in sources["test"] if example.source == SHOWN]
    return replace(run, training=training), shown


def look(task: Transduction, example: Example) -> Shown:
    """What the model says of one word, and what it reads to say it."""
    target = task.vocabularies.target
    assert target is not None
    letters = task.symbols(example)
    batch = collate_seq2seq([Encoded(task.vocabularies.source.encode(letters))])
    task.model.eval()
    search = Recorder(task.model.stepper())
    found = beam_search(
        search,
        task.model.start(batch.source, batch.source_mask),
        begin=BEGIN,
        end=END,
        max_length=task.vocabularies.lengths.limit(len(letters)),
        beam_size=WIDTH,
        nbest=WIDTH,
    )
    best = found.token_lists(END)[0][0]
    trace = _trace(task, letters, best)
    kept = [
        (row[: int(length) - 1], logs, float(score))
        for row, logs, length, score in zip(
            found.tokens[0].tolist(),
            found.log_probs[0].tolist(),
            found.lengths[0],
            found.scores[0],
            strict=True,
        )
        if length > 0
    ]
    finished = [
        Hypothesis(
            tokens=tuple(target.decode(ids)),
            log_probs=tuple(round(value, DIGITS) for value in logs[: len(ids)]),
            score=round(score, DIGITS),
        )
        for ids, logs, score in kept
    ]
    dropped = search.dropped([tuple(ids) for ids, _, _ in kept], target.decode)
    facts = {
        "input": example.source,
        "output": " ".join(target.decode(best)),
        "reference": example.target,
        "probability": round(found.totals[0, 0].exp().item(), DIGITS),
    }
    return Shown(facts=facts, trace=trace, hypotheses=(*finished, *dropped))


def _trace(task: Transduction, letters: list[str], output: list[int]) -> AttentionTrace:
    """The readings of an output, and the most probable segments where these are what is read."""
    target, spec = task.vocabularies.target, task.spec
    assert target is not None
    assert isinstance(spec, TransductionSpec)
    assert spec.model.decoder.attention is not None
    batch = collate_seq2seq([Encoded(task.vocabularies.source.encode(letters), output)])
    with torch.no_grad():
        unrolled = task.model(batch.source, batch.source_mask, batch.tokens)
    (read,) = unrolled.attended
    kind, best = spec.model.decoder.attention.kind, None
    if kind == "segment":
        best = tuple(map(tuple, (read.distribution.argmax()[0] == 1).tolist()))
    return AttentionTrace(
        kind=kind,
        sources=tuple(letters),
        targets=(*target.decode(output), END_LABEL),
        weights=rounded(read.weights[0]),
        best=best,
    )


@final
class Recorder:
    """A stepper that passes everything on and remembers which beginnings a search of one item
    continued: beside what a search returns, what it dropped.
    """

    def __init__(self, stepper: Stepper) -> None:
        self._stepper, self.num_tokens = stepper, stepper.num_tokens
        self._live: list[tuple[int, ...]] = [()]
        self._next: Tensor | None = None  # log-probabilities after each live beginning
        self.log_probs: dict[tuple[int, ...], float] = {}  # of the last token of every beginning

    def batch_size(self, state: Any) -> int:
        """Of one item."""
        return self._stepper.batch_size(state)

    def step(self, state: Any, tokens: Int[Tensor, "1 K"]) -> SearchStep:
        """Every beginning reads one token, the very first of which is the begin symbol."""
        if self._next is not None:
            pairs = zip(self._live, self._next, tokens[0].tolist(), strict=True)
            grown = [((*start, token), float(logs[token])) for start, logs, token in pairs]
            self.log_probs |= dict(grown)
            self._live = [prefix for prefix, _ in grown]
        stepped = self._stepper.step(state, tokens)
        self._next = stepped.log_probs[0].clone()
        return stepped

    def reorder(self, state: Any, parents: Int[Tensor, "1 k"]) -> Any:
        """Which beginnings are continued."""
        assert self._next is not None
        self._live = [self._live[parent] for parent in parents[0].tolist()]
        self._next = self._next[parents[0]]
        return self._stepper.reorder(state, parents)

    def keep(self, state: Any, items: Int[Tensor, " b"]) -> Any:
        """The one item."""
        return self._stepper.keep(state, items)

    def dropped(
        self, finished: list[tuple[int, ...]], names: Callable[[list[int]], list[str]]
    ) -> Iterator[Hypothesis]:
        """Beginnings that were continued by nothing and are the beginning of no output."""
        begun = {ids[:length] for ids in finished for length in range(len(ids) + 1)}
        continued = {prefix[:-1] for prefix in self.log_probs}
        for prefix in self.log_probs:
            if prefix not in begun and prefix not in continued:
                starts = [prefix[:length] for length in range(1, len(prefix) + 1)]
                logs = tuple(round(self.log_probs[start], DIGITS) for start in starts)
                tokens = tuple(names(list(prefix)))
                if len(tokens) == len(logs):
                    yield Hypothesis(
                        tokens=tokens, log_probs=logs, score=round(sum(logs), 4), finished=False
                    )


def _curves(log: list[dict[str, Any]]) -> Iterator[Series]:
    """Training loss and words with a mistake, over updates."""
    losses = [(line["step"], line["loss"]) for line in log if line["event"] == "step_done"]
    stretch = max(1, len(losses) // 60)
    means = [losses[at : at + stretch] for at in range(0, len(losses), stretch)]
    yield Series(
        name="training loss, nats per phone",
        points=tuple(
            (part[-1][0], round(sum(loss for _, loss in part) / len(part), 4)) for part in means
        ),
    )
    yield Series(
        name="share of development words with a mistake",
        points=tuple(
            (line["step"], round(line["metrics"]["wer"] / 100, 4))
            for line in log
            if line["event"] == "evaluated"
        ),
    )


PRONUNCIATIONS = {
    attention: partial(pronunciation, attention) for attention in ("softmax", "sigmoid", "segment")
}
