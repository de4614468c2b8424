"""The training loop: steps, validations, checkpoints, and the end.

    while not over:    step;  every few: read loss and norm;  when due: validate;  when due: checkpoint

The same loop runs without a launcher, under torchrun, and under any launcher that first makes a process group. All
processes make the same decisions, because these depend only on shared counts or on numbers from process 0. Only process
0 validates, writes files and sends events.
"""

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from ..data import Example
from ..data._batches import TextBatch
from ..data._example import evenly_spaced
from ..data.streams._stream import AbstractStream
from ..errors import CheckpointError
from ..metrics import measure
from ..specs import to_data
from ..tasks import AbstractTask, Evaluation, PredictionSpec
from ..tasks.base._prediction import Loss
from ._engine import Engine
from ._feed import Feed
from ._group import Group
from ._ledger import Known, Ledger
from ._schedule import rate_share
from ._scheduled_sampling import checked_for_own_inputs, with_own_inputs
from ._settings import check_unchanged
from ._spec import TrainingSpec
from ._stopping import why_stopped
from ._threads import ThreadSetting
from .checkpoints._checkpoint import Snapshot, clear_checkpoints, find_checkpoint, write_checkpoint
from .checkpoints._interrupt import Interrupt
from .checkpoints._position import (
    MAX_SHARE,
    EpochSize,
    Position,
    Score,
    evaluation_due,
    progress_of,
    reserved,
)
from .events._events import (
    Answer,
    Checkpointed,
    Evaluated,
    Event,
    Failed,
    Improved,
    Listener,
    Probed,
    Started,
    Stopped,
    StopReason,
    ThreadsChosen,
    Warned,
)
from .events._probe import Probe, Probing

CHECKPOINTS = "checkpoints"
_NUM_SIGNALS = 3  # seconds, interrupted, examples
_GREEDY = PredictionSpec(beam_size=1)  # ranks models as beam search does, in a third of the time
_NUM_SAMPLES = 3
_SILENCE = 5.0  # seconds after which steps are read even if log_every is not reached
_ONE_SIGMA = 0.683  # a confidence interval of this level spans one standard error on each side


class Loop:
    """One run. `run` trains from the current position to the end."""

    def __init__(
        self,
        task: AbstractTask[Any],
        train: AbstractStream[Any],
        dev: Sequence[Example],
        spec: TrainingSpec,
        folder: Path,
        *,
        num_examples: int | None,
        num_scored: int,
        group: Group,
        listeners: Sequence[Listener],
        interrupt: Interrupt,
        threads: ThreadSetting,
        probes: Sequence[Probe] = (),
    ) -> None:
        if spec.scheduled_sampling:
            checked_for_own_inputs(task)
        self.at = Position()
        self.kept_step = 0  # step of the weights that the run keeps
        self._task, self._train, self._spec, self._folder = task, train, spec, folder
        self._num_examples, self._num_scored = num_examples, num_scored
        self._group, self._interrupt, self._threads = group, interrupt, threads
        self._listeners = listeners if group.is_first else ()
        self._sample = evenly_spaced(dev, spec.validation_size)
        self._engine = Engine(task.model, spec, group, _NUM_SIGNALS)
        self._feed = Feed(train, task.device)
        self._ledger = Ledger(skips_overflows=spec.fp16)
        self._best: dict[str, Tensor] = {}
        self._latest: Evaluation | None = None  # only in process 0
        self._state: Any = None  # recurrent state of running text after the latest step
        self._carried: dict[str, Tensor] = {}  # the state of a checkpoint, until the next step
        self._checkpointed_at = self._read_at = self._earlier = 0.0
        self._has_begun = self._is_interrupted = False
        self._warned: set[str] = set()
        self._probing = Probing(probes if group.is_first else ())
        self._batch: Any = None  # batch of the latest step

    def run(self, *, resume: bool) -> StopReason:
        """Train to the end; the model then has the best weights."""
        self.begin(resume=resume)
        batches = self._train.forever()
        while (reason := self._reason_to_stop()) is None:
            self.advance(batches)
        self._end(reason)
        return reason

    def advance(self, batches: Iterator[Any]) -> None:
        """Make one step, then validate and write a checkpoint if they are due."""
        self._step(batches)
        is_logged = self.at.step % self._spec.log_every == 0
        if is_logged or self.at.seconds - self._read_at >= _SILENCE:
            self._read()
        if is_logged:
            self._probe()
        if self._sample and evaluation_due(self._spec, self.at, len(self._sample)):
            self._evaluate()
        if self._checkpoint_due():
            self._checkpoint()

    def tell(self, event: Event) -> None:
        """Send an event to all listeners."""
        for listener in self._listeners:
            listener(event)

    def fail(self, error: BaseException) -> None:
        """Send the event that the run ends with an error, if the run had started."""
        if self._has_begun:
            text = str(error) or type(error).__name__
            for listener in self._listeners:
                with contextlib.suppress(OSError):  # a log on a full disk
                    listener(Failed(step=self.at.step, text=text))

    # the beginning

    def begin(self, *, resume: bool) -> None:
        """Load the newest checkpoint, if `resume` is set and there is one."""
        folder = self._folder / CHECKPOINTS
        found = find_checkpoint(folder) if resume else None
        step = 0 if found is None else found.snapshot.state["position"]["step"]
        if self._group.agree([float(step)]) != [float(step)]:
            raise CheckpointError(
                f"process {self._group.rank} found step {step} in {folder}, process 0 found another "
                f"step, expected the same. All processes must use one shared folder."
            )
        if found is not None:
            self._restore(found.snapshot)  # if this raises, the folder stays unchanged
        if self._group.is_first:
            clear_checkpoints(folder, newer_than=step if found is not None else -1)
        self._threads.begin(None if found is None else found.snapshot.state.get("threads"))
        self._task.model.train()
        self._probing.begin(self.at.step)
        self._began = time.perf_counter()
        self._earlier = self._checkpointed_at = self.at.seconds
        metric = self._task.main_metric
        self.tell(
            Started(
                step=step,
                processes=self._group.size,
                parameters=self._engine.num_parameters,
                metric=metric.name,
                higher_is_better=metric.higher_is_better,
                device=str(self._task.device),
            )
        )
        self._has_begun = True
        if self._engine.warning is not None:
            self.warn(self._engine.warning)
        if found is not None:
            for refusal in found.refusals:
                self.warn(f"{refusal} Resuming from {found.folder.name} instead.")

    def _restore(self, snapshot: Snapshot) -> None:
        state = snapshot.state
        check_unchanged(state["settings"], self._settings())
        self.at = Position(**state["position"]).under(self._spec)
        self._train.restore(state["stream"])
        self._engine.load(snapshot.last)
        self._best = snapshot.best
        if self._group.is_first:
            self._carried = snapshot.carried

    # a step

    def _step(self, stream: Iterator[Any]) -> None:
        at, spec = self.at, self._spec
        number = at.step + 1
        rate = spec.learning_rate * rate_share(spec, number, at.progress)
        fed = self._feed.take(stream, spec.accumulate)
        self._batch = fed.batches[-1]
        self._choose_threads()
        if self._carried:
            self._state = self._unflattened(fed.batches[0])
        rows = sum(
            len(batch.mask if isinstance(batch, TextBatch) else batch.indices) for batch in fed.read
        )
        reduced, self._state = self._engine.step(
            self._loss_of,
            fed.batches,
            self._state,
            number=number,
            rate=rate,
            signals=(self._seconds(), float(self._interrupt.asked), float(rows)),
        )
        seconds, interrupted, all_rows = reduced.signals
        seconds /= self._group.size
        self._is_interrupted = interrupted > 0  # shared by all processes, unlike the local flag
        at = at.after_batches(fed.epochs, round(all_rows), self._epoch_size(fed.read[0]))
        spent = seconds + reserved(spec, at, self._num_scored)
        progress = progress_of(spec, step=number, epochs=at.epochs, seconds=spent)
        self.at = replace(at, step=number, progress=progress, seconds=seconds)
        known = Known(number, at.epochs, progress, rate, seconds, fed.read, fed.wait)
        self._ledger.add(known, reduced)
        if self._reason_to_stop() is None:
            self._feed.prepare(stream, spec.accumulate)

    def _choose_threads(self) -> None:
        loss = partial(self._task.loss, self._batch)
        chosen = self._threads.measure(self._task.model, lambda: loss().total)
        if chosen is not None:
            number, reason = chosen
            self.tell(ThreadsChosen(step=self.at.step, threads=number, reason=reason))

    def _epoch_size(self, batch: Any) -> EpochSize:
        """Return the length of an epoch; running text is not divided into examples."""
        examples = None if isinstance(batch, TextBatch) else self._num_examples
        return EpochSize(self._train.num_batches, examples)

    def _loss_of(self, batch: Any, state: Any) -> Loss:
        share = self._spec.scheduled_sampling * self.at.progress
        if share:
            batch = with_own_inputs(self._task, batch, share)
        return self._task.loss(batch, state)

    def _unflattened(self, batch: Any) -> Any:
        """Restore the recurrent state from the numbered tensors of a checkpoint."""
        with torch.no_grad():
            leaves, form = pytree.tree_flatten(self._task.loss(batch, None).state)
        carried, self._carried = self._carried, {}
        device = self._task.device
        kept = {int(number): tensor.to(device) for number, tensor in carried.items()}
        return form.unflatten([kept.get(number, leaf) for number, leaf in enumerate(leaves)])

    def _read(self) -> None:
        self._read_at = self.at.seconds
        for done in self._ledger.read(self._train.where):
            self.tell(done)
        left_out = self._train.left_out
        if left_out.num_unreadable:
            self._warn_once(
                "unreadable",
                f"skipped {left_out.num_unreadable:,} training examples whose images cannot be read; "
                f"the first: {left_out.why}",
            )
        if left_out.num > left_out.num_unreadable:
            self._warn_once(
                "left out",
                f"skipped {left_out.num - left_out.num_unreadable:,} training examples, the first at "
                f"{left_out.first}: they are longer than batch_tokens, or the task cannot use them. "
                f"Increase batch_tokens ({self._spec.batch_tokens}).",
            )

    def _probe(self) -> None:
        """Measure the model if there is time for it, only in process 0."""
        if self._probing.due(self.at.step):
            try:
                readings, seconds = self._probing.read(self._task, self._batch)
            except Exception as error:  # a failed measurement must not end a run of several days
                self._probing = Probing(())
                self.warn(f"a probe failed, and the run continues without probes: {error!r}")
            else:
                self.tell(Probed(step=self.at.step, readings=readings, seconds=seconds))

    # a validation

    def _evaluate(self) -> None:
        self._read()
        began = time.perf_counter()
        metric = self._task.main_metric
        evaluation = None
        if self._group.is_first:
            evaluation = self._latest = self._validated()
        value, tie, seconds = self._group.agree(
            [0.0] * 3
            if evaluation is None
            else [*_score_of(evaluation), time.perf_counter() - began]
        )
        score, before = Score(value, tie), self.at
        improved = score.beats(before.best, higher=metric.higher_is_better)
        size = len(self._sample)
        self.at = before.after_evaluation(score, seconds, improved=improved, size=size)
        if improved:
            self._best = self._engine.best_weights()
        if evaluation is not None:
            self._tell_scores(evaluation, seconds, improved=improved, before=before.best_value)

    def _validated(self) -> Evaluation:
        with self._engine.evaluating():
            return self._task.evaluate(self._sample, _GREEDY)

    def _tell_scores(
        self, evaluation: Evaluation, seconds: float, *, improved: bool, before: float | None
    ) -> None:
        step = self.at.step
        self.tell(
            Evaluated(
                step=step,
                metrics={name: found.value for name, found in evaluation.statistics.items()},
                samples=tuple(
                    Answer(sample.source, sample.reference, sample.prediction.output)
                    for sample in evaluation.samples(_NUM_SAMPLES)
                ),
                seconds=seconds,
                share=self.at.share,
            )
        )
        if improved:
            name, value = evaluation.main.name, evaluation.value
            self.tell(Improved(step=step, metric=name, value=value, before=before))
        # The first validation decodes long, repetitive outputs and is not representative of later ones.
        is_typical = before is not None and self.at.progress < 1
        if self.at.share > MAX_SHARE and is_typical:
            self._warn_once(
                "validation",
                f"validation took {self.at.share:.0%} of the time, expected at most {MAX_SHARE:.0%}. "
                f"Reduce validation_size ({self._spec.validation_size}), or increase evaluate_every.",
            )

    # checkpoints

    def _checkpoint_due(self) -> bool:
        return self.at.seconds - self._checkpointed_at >= self._spec.checkpoint_seconds

    def _checkpoint(self) -> None:
        self._read()
        self._checkpointed_at = self.at.seconds
        if not self._group.is_first:
            return
        began = time.perf_counter()
        state = {
            "settings": self._settings(),
            "position": asdict(self.at),
            "stream": self._feed.state(),
            "threads": torch.get_num_threads(),
        }
        leaves = enumerate(pytree.tree_leaves(self._state))
        carried = {str(number): leaf for number, leaf in leaves if isinstance(leaf, Tensor)}
        snapshot = Snapshot(
            last=self._engine.tensors(),
            best=self._best,
            carried=self._carried or carried,
            state=state,
        )
        folder = write_checkpoint(self._folder / CHECKPOINTS, self.at.step, snapshot)
        taken = time.perf_counter() - began
        self.tell(Checkpointed(step=self.at.step, folder=folder, seconds=taken))

    def _settings(self) -> dict[str, Any]:
        return {"task": to_data(self._task.spec), "training": to_data(self._spec)}

    # the end

    def _reason_to_stop(self) -> StopReason | None:
        if self._is_interrupted:
            return "interrupted"
        if self._spec.patience is not None and self.at.unimproved >= self._spec.patience:
            return "patience"
        if self.at.progress < 1:
            return None
        limit = self._spec.minutes
        spent = self.at.seconds + reserved(self._spec, self.at, self._num_scored)
        return "time" if limit is not None and spent >= 60 * limit else "length"

    def _end(self, reason: StopReason) -> None:
        if self._sample and self.at.evaluated_step < self.at.step:
            self._evaluate()
        self._checkpoint()
        self.tell(
            Stopped(
                step=self.at.step,
                reason=reason,
                text=why_stopped(reason, self._spec, self.at, self._task.main_metric.name),
            )
        )
        keeps_last = self._keeps_last(reason)
        self.kept_step = self.at.step if keeps_last else self.at.best_step
        self._engine.keep(self._engine.best_weights() if keeps_last else self._best)

    def _keeps_last(self, reason: StopReason) -> bool:
        """Return whether to keep the last weights: yes, unless earlier ones were better by more than a standard error.

        The last weights have seen the whole schedule; the best of many noisy scores on a small validation set is mostly
        the luckiest (the one-standard-error rule, Breiman et al. 1984, section 3.4.3). The checkpoint does not contain
        this choice: a longer run would resume from the best weights.
        """
        if self.at.best_value is None or self.at.best_step == self.at.step:
            return True
        if reason not in ("length", "time"):
            return False
        numbers = [0.0, 0.0]
        if self._group.is_first:
            evaluation = self._latest or self._validated()  # None if the run was already over
            found = measure(evaluation.statistics[evaluation.main.name], level=_ONE_SIGMA)
            numbers = [found.value, (found.high - found.low) / 2]
        value, error = self._group.agree(numbers)
        higher = self._task.main_metric.higher_is_better
        lead = self.at.best_value - value if higher else value - self.at.best_value
        return lead <= error and error > 0

    def warn(self, text: str) -> None:
        """Send a warning that does not stop the run."""
        self.tell(Warned(step=self.at.step, text=text))

    def _warn_once(self, about: str, text: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            self.warn(text)

    def _seconds(self) -> float:
        return self._earlier + time.perf_counter() - self._began


def _score_of(evaluation: Evaluation) -> Score:
    others = [one for name, one in evaluation.statistics.items() if name != evaluation.main.name]
    if not others or not math.isfinite(others[0].value):
        return Score(evaluation.value)
    return Score(evaluation.value, others[0].value * (1 if others[0].higher_is_better else -1))
