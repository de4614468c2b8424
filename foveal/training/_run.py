"""A run as a value: task, data and training. Recipes return it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import torch

from ..bundles._warm_start import warm_start
from ..bundles._word_vectors import load_word_vectors
from ..data import CurriculumSpec, Example, SourceSpec
from ..data.streams._prepared import PreparedCorpus
from ..devices import random_state_restored, resolve_device
from ..specs import check, setting, to_data, to_json
from ..tasks import TaskSpec
from ..tasks._prepared import build_for_corpus
from ._fit import Outcome, fit
from ._group import process_group
from ._loop import CHECKPOINTS
from ._settings import check_unchanged
from ._spec import TrainingSpec
from .checkpoints._checkpoint import find_checkpoint
from .checkpoints._inputs import Input, Inputs, check_inputs, input_of, inputs_of, write_inputs
from .checkpoints._lock import Lock, locked
from .checkpoints._whole import replace_text
from .events._events import Listener
from .events._probe import Probe

RUN = "run.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A complete, reproducible specification of a run, which converts to JSON and back.

    A recipe is a function that returns a run. To make a variant, use `dataclasses.replace` or `specs.with_setting(run,
    "training.steps", "500")`.
    """

    task: TaskSpec = setting(about="the task and its model")
    train: SourceSpec | CurriculumSpec | PreparedCorpus = setting(about="training examples")
    dev: SourceSpec | None = setting(
        None, "validation examples, to select the best weights; none: keep the last weights"
    )
    test: SourceSpec | None = setting(None, "test examples, for the score at the end")
    training: TrainingSpec = setting(about="settings of training")
    start_from: str | None = setting(
        None,
        "bundle that provides the initial weights; the vocabulary may differ, the model may not",
    )
    word_vectors: str | None = setting(
        None,
        "file of vectors (GloVe or word2vec, text) that initialize the embedding of the source",
    )

    def fit(
        self,
        out: Path | str,
        *,
        listeners: Sequence[Listener] = (),
        probes: Sequence[Probe] = (),
        resume: bool = True,
        lock: Lock | None = None,
        measure_threads: bool = False,
        device: str | torch.device = "auto",
    ) -> Outcome:
        """Train and save into a folder, or resume the run in the folder; see `fit`.

        Vocabularies are built from the training examples, unless `foveal prepare` has built them. Weights come from a
        bundle or are initialized from the seed, equally in every process. If a run cannot be resumed because its files
        or settings have changed, its folder stays unchanged.

        Args:
            out: Folder of the run.
            listeners: Functions that get every event, in process 0.
            probes: Functions that measure the model from time to time, in process 0.
            resume: Whether to resume from the last checkpoint in the folder, if there is one; False starts again.
            lock: The lock on the folder, if the caller holds it.
            measure_threads: Whether to time the first step with one thread and with all threads, and use the faster
                number.
            device: The device to train on: auto, cpu, cuda, cuda:N or mps. It is not part of the run, which can be
                resumed on another device.

        Returns:
            The reason for the end of training, the best step, the scores and the time.

        Raises:
            SpecError: A setting does not fit, or the folder cannot be written to.
            DeviceError: This machine does not have the device.
            DataError: The data cannot be used.
            CheckpointError: The checkpoints are damaged, the files or settings have changed, or another process is
                training in the folder.
            NonFiniteError: The loss or the gradient is not finite.
        """
        check(self)
        folder, training, used = Path(out), self.training, resolve_device(device)
        with ExitStack() as stack:
            group = stack.enter_context(process_group(used))
            stack.enter_context(random_state_restored(used))
            inputs: Inputs = {}
            if group.is_first:
                lock = lock or stack.enter_context(locked(folder))
                inputs = self.inputs()
                if resume:
                    self.check_resumable(folder, inputs)
            torch.default_generator.manual_seed(training.seed)
            counted = None
            if isinstance(self.train, PreparedCorpus):
                task = build_for_corpus(self.task, self.train)
            else:
                counted = _Counted(self.train)
                task = self.task.build_from(counted)
            if self.start_from is not None:
                warm_start(task, self.start_from)
            if self.word_vectors is not None:
                load_word_vectors(task, self.word_vectors)
            task.model.to(used)
            by_size = training.batch_size is not None
            train = task.batches(
                self.train,
                budget=None if by_size else training.batch_tokens,
                batch_size=training.batch_size,
                seed=training.seed,
                rank=group.rank,
                world_size=group.size,
            )
            if group.is_first:
                replace_text(folder / RUN, to_json(self) + "\n")
                write_inputs(folder, inputs)
            return fit(
                task,
                train,
                [] if self.dev is None else list(self.dev),
                training,
                folder,
                test=[] if self.test is None else list(self.test),
                num_examples=None if training.epochs is None else self._num_examples(counted),
                listeners=listeners,
                probes=probes,
                resume=resume,
                lock=lock,
                measure_threads=measure_threads,
            )

    def inputs(self, known: Inputs = MappingProxyType({})) -> dict[str, list[Input]]:
        """Return the fingerprints of all files that the run reads, by purpose.

        Args:
            known: Fingerprints of files that have not been written yet.

        Returns:
            Lists of fingerprints by purpose, such as train and dev.
        """
        sources = {"train": self.train, "dev": self.dev, "test": self.test}
        found = {
            role: list(known[role]) if role in known else inputs_of(source)
            for role, source in sources.items()
            if source is not None
        }
        if self.start_from is not None:
            found["start_from"] = [input_of(self.start_from)]
        if self.word_vectors is not None:
            found["word_vectors"] = [input_of(self.word_vectors)]
        return found

    def check_resumable(self, out: Path | str, inputs: Inputs) -> None:
        """Check whether this run can resume the run in a folder. Nothing is written.

        Args:
            out: The folder of the run.
            inputs: The files of this run, from `inputs()`.

        Raises:
            CheckpointError: If the run in the folder has other files or settings, or if its checkpoints are damaged.
        """
        folder = Path(out)
        if find_checkpoint(folder / CHECKPOINTS) is None:
            return
        check_inputs(folder, inputs)
        try:
            then = json.loads((folder / RUN).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return  # the loop compares the settings with the checkpoint
        now = to_data(self)
        check_unchanged(
            *({part: run[part] for part in ("task", "training")} for run in (then, now))
        )

    def _num_examples(self, counted: "_Counted | None") -> int:
        if isinstance(self.train, PreparedCorpus):
            return self.train.num_examples
        if counted is not None and counted.number is not None:
            return counted.number
        return sum(1 for _ in self.train)


class _Counted:
    """Examples that are counted while something else reads them: a large corpus takes a while to read."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self._examples = examples
        self.number: int | None = None  # None until they were read to the end

    def __iter__(self) -> Iterator[Example]:
        number = 0
        for example in self._examples:
            number += 1
            yield example
        self.number = number
