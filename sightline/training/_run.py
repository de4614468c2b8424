"""A run as a value: task, data and training. What a recipe returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ..data import PreparedCorpus, SourceSpec
from ..specs import check, setting, to_json
from ..tasks import TaskSpec, begin_from, build_on
from ._events import Listener
from ._fit import Outcome, fit
from ._group import process_group
from ._probe import Probe
from ._spec import TrainingSpec

RUN = "run.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Everything that gives the same model again: a spec, with its JSON both ways.

    A recipe is a function that returns one; a variant is `dataclasses.replace` of it, or
    `specs.with_setting(run, "training.steps", "500")`.
    """

    task: TaskSpec = setting(about="what to learn, and with which model")
    train: SourceSpec | PreparedCorpus = setting(about="examples to learn from")
    dev: SourceSpec | None = setting(
        None, "examples that tell the best weights; none: the last are kept"
    )
    test: SourceSpec | None = setting(None, "examples for the score at the end")
    training: TrainingSpec = setting(about="how to train")
    start_from: str | None = setting(
        None, "bundle whose weights are begun with; symbols may be others, the model is the same"
    )

    def fit(
        self,
        out: Path | str,
        *,
        listeners: Sequence[Listener] = (),
        probes: Sequence[Probe] = (),
        resume: bool = True,
    ) -> Outcome:
        """Train and save into a folder, or go on with what the folder has; see `fit`.

        Vocabularies are counted from the training examples, if that has not been done by `sightline
        prepare`, and weights drawn from the seed, in every process alike, where none come from a bundle.
        """
        check(self)
        folder, training = Path(out), self.training
        with process_group() as group, torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(training.seed)
            task = (
                build_on(self.task, self.train)
                if isinstance(self.train, PreparedCorpus)
                else self.task.build_from(self.train)
            )
            if self.start_from is not None:
                begin_from(task, self.start_from)
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
                folder.mkdir(parents=True, exist_ok=True)
                (folder / RUN).write_text(to_json(self) + "\n", encoding="utf-8")
            return fit(
                task,
                train,
                [] if self.dev is None else list(self.dev),
                training,
                folder,
                test=[] if self.test is None else list(self.test),
                num_examples=None if training.epochs is None else self._num_examples(),
                listeners=listeners,
                probes=probes,
                resume=resume,
            )

    def _num_examples(self) -> int:
        train = self.train
        return train.num_examples if isinstance(train, PreparedCorpus) else sum(1 for _ in train)
