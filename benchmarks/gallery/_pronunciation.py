"""Pronunciation: softmax, sigmoid and segment attention of the model that `foveal fit` plans.

Icelandic, 800 training, 100 development and 100 test words (SIGMORPHON 2021, low resource). The gallery
shows a word of the test file. It was chosen before any model was trained, because its letters do not map
one to one to phones: l, á and tt each become two phones.
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
    """Fit the model that `foveal fit` plans, with this attention, and record one word."""
    watch, (run, test) = Stopwatch(), _planned(attention, budget)
    with tempfile.TemporaryDirectory(prefix="gallery") as name:
        folder = Path(name)
        outcome = run.fit(folder, device="cpu")
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
    if attention == "softmax":  # the gallery shows the search and the log of one model only
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
    """Return the run, and the word for the gallery."""
    sources = {part: open_source(DATA / path).source for part, path in FILES.items()}
    run = plan(sources["train"], sources["dev"], sources["test"]).run
    run = with_setting(run, "task.model.decoder.attention", attention)
    training = replace(run.training, seed=budget.seed)
    if budget.updates is not None:
        training = replace(training, epochs=None, steps=budget.updates)
    (shown,) = [example for example in sources["test"] if example.source == SHOWN]
    return replace(run, training=training), shown


def look(task: Transduction, example: Example) -> Shown:
    """Return the output of the model for one word, and its attention."""
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
    """Return the attention of an output and, for segment attention, the most probable segments."""
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
    """A stepper that wraps another and records every prefix of a search, including the pruned ones.

    The batch must have one item.
    """

    def __init__(self, stepper: Stepper) -> None:
        self._stepper, self.num_tokens = stepper, stepper.num_tokens
        self._live: list[tuple[int, ...]] = [()]
        self._next: Tensor | None = None  # log-probabilities after each live prefix
        self.log_probs: dict[tuple[int, ...], float] = {}  # by prefix, of its last token

    def batch_size(self, state: Any) -> int:
        """Return 1."""
        return self._stepper.batch_size(state)

    def step(self, state: Any, tokens: Int[Tensor, "1 K"]) -> SearchStep:
        """Extend every prefix by one token; the first token is the begin token."""
        if self._next is not None:
            pairs = zip(self._live, self._next, tokens[0].tolist(), strict=True)
            grown = [((*start, token), float(logs[token])) for start, logs, token in pairs]
            self.log_probs |= dict(grown)
            self._live = [prefix for prefix, _ in grown]
        stepped = self._stepper.step(state, tokens)
        self._next = stepped.log_probs[0].clone()
        return stepped

    def reorder(self, state: Any, parents: Int[Tensor, "1 k"]) -> Any:
        """Record the surviving prefixes."""
        assert self._next is not None
        self._live = [self._live[parent] for parent in parents[0].tolist()]
        self._next = self._next[parents[0]]
        return self._stepper.reorder(state, parents)

    def keep(self, state: Any, items: Int[Tensor, " b"]) -> Any:
        """Keep the single item."""
        return self._stepper.keep(state, items)

    def dropped(
        self, finished: list[tuple[int, ...]], names: Callable[[list[int]], list[str]]
    ) -> Iterator[Hypothesis]:
        """Yield the pruned prefixes: no output and no longer prefix starts with them."""
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
    """Yield the training loss and the word error rate over training steps."""
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
