"""Loading of models: one folder, or several folders as an ensemble."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..bundles import load_bundle
from ..data._example import evenly_spaced
from ..data.formats._lexicons import read_lexicon
from ..devices import resolve_device
from ..errors import ValueRangeError
from ..planning._files import trial_examples, validation_examples
from ..planning._signs import working
from ..serving import Predictor
from ..serving._engines import Chosen, Engine, choose_engine
from ..serving._lexicon_first import LexiconFirst, own_lexicon
from ..tasks import AbstractTask, TaskSpec, Transduction, TransductionEnsemble
from ..tasks._transduction import as_transduction
from ._speech import explaining, note

# Examples to calibrate confidence on: enough for two parameters, and fast.
_MOST_CALIBRATING = 1000


class Loaded(NamedTuple):
    """A model or an ensemble, with its spec or the spec of its first member."""

    task: AbstractTask[Any] | TransductionEnsemble
    spec: TaskSpec


def load_models(
    folder: Path, others: Sequence[Path], also: Sequence[type], device: torch.device
) -> Loaded:
    """Load the model in a folder onto a device or, with others, an ensemble, whose confidence is calibrated on the
    validation examples of the first run.
    """
    if not others:
        task = load_bundle(folder, also=also, device=device)
        return Loaded(task, task.spec)
    _check_distinct([folder, *others])
    first = _transduction(folder, also, device)
    members = [first]
    for other in others:
        member = _transduction(other, also, device)
        try:
            TransductionEnsemble([first, member])
        except ValueRangeError as error:
            raise ValueRangeError(
                f"--with {other}: this model cannot form an ensemble with {folder}. {error}"
            ) from None
        members.append(member)
    ensemble = TransductionEnsemble(members)
    _calibrate(ensemble, folder, also)
    return Loaded(ensemble, first.spec)


def load_predictor(
    folder: Path,
    others: Sequence[Path],
    also: Sequence[type],
    device: str,
    engine: Engine,
    *,
    lexicon_first: bool = True,
) -> tuple[Predictor, Chosen]:
    """Load the models of a command that answers, and choose the engine of the first. The lexicon of a single model
    answers the words that it contains, unless the command reads it itself.
    """
    loaded = load_models(folder, others, also, resolve_device(device))
    chosen = choose_engine(loaded.task, engine, lambda: trial_examples(folder, also))
    lexicon = own_lexicon(folder) if lexicon_first and not others else None
    if lexicon is None or not isinstance(loaded.task, Transduction):
        return Predictor(*loaded, chosen.answerer), chosen
    known = read_lexicon([str(lexicon)])
    return Predictor(*loaded, LexiconFirst(chosen.answerer, loaded.task, known)), chosen


def _check_distinct(folders: Sequence[Path]) -> None:
    seen: dict[Path, Path] = {}
    for folder in folders:
        real = folder.resolve()
        if real in seen:
            raise ValueRangeError(
                f"--with: expected different runs, got the same run twice, {seen[real]} and {folder}. Give each run "
                f"once; runs of an ensemble differ at least in their --seed."
            )
        seen[real] = folder


def _transduction(folder: Path, also: Sequence[type], device: torch.device) -> Transduction:
    why = f"--with: only transduction models can form an ensemble, not {folder}"
    return as_transduction(load_bundle(folder, also=also, device=device), why)


def _calibrate(ensemble: TransductionEnsemble, first: Path, also: Sequence[type]) -> None:
    """Calibrate confidence if possible; otherwise print its meaning."""
    examples = validation_examples(first, also)
    if examples:
        with working(explaining(stderr=True), "calibrating confidence on validation examples"):
            ensemble.calibrate(evenly_spaced(examples, _MOST_CALIBRATING))
        return
    note(
        f"the validation file of {first} was not found, so the ensemble uses the calibration of this model. "
        f"Restore the file to calibrate the ensemble."
    )
