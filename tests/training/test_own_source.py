"""A run with a user-defined source of examples."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal, final

import pytest

from foveal.data import AbstractSourceSpec, Example
from foveal.errors import CheckpointError, DataError, SpecError
from foveal.specs import from_json, setting, to_data, to_json
from foveal.training import Event, Run, StepDone, TrainingSpec
from tests.training.toys import losses, reversals, transduction, weights_bytes


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Reversals(AbstractSourceSpec):
    """Words and their reversals, from a generator."""

    kind: Literal["reversals"] = "reversals"
    size: int = setting(200, "number of examples", at_least=1)
    seed: int = 0

    def read(self) -> Iterator[Example]:
        yield from reversals(self.size, self.seed)


RUN = Run(
    task=transduction().spec,
    train=Reversals(),
    dev=Reversals(size=20, seed=1),
    training=TrainingSpec(
        steps=20, batch_size=16, learning_rate=5e-3, evaluate_every=10, checkpoint_seconds=0.0
    ),
)


class CrashError(Exception):
    """The error that ends a run in these tests."""


def crash(event: Event) -> None:
    if isinstance(event, StepDone) and event.step == 17:  # in the middle of the second epoch
        raise CrashError


def test_a_cursor_resumes_from_each_of_its_positions() -> None:
    source = Reversals(size=9)
    (shard,) = source.shards()
    whole = list(source)
    assert [str(example.where) for example in whole[:2]] == [
        "reversals, example 1",
        "reversals, example 2",
    ]
    for passed in range(10):
        cursor = source.open(shard)
        assert list(islice(cursor, passed)) == whole[:passed]
        assert list(source.open(shard, cursor.position())) == whole[passed:]


def test_json_names_the_class_and_reading_needs_it() -> None:
    assert to_data(RUN)["train"]["class"].endswith("test_own_source.Reversals")
    assert from_json(Run, to_json(RUN), also=(Reversals,)) == RUN
    with pytest.raises(SpecError, match=r"train: needs the class .*Reversals.*also=\(Reversals,\)"):
        from_json(Run, to_json(RUN))


@pytest.mark.slow
def test_a_crashed_run_resumes_to_the_same_weights(tmp_path: Path) -> None:
    RUN.fit(tmp_path / "whole")
    with pytest.raises(CrashError):
        RUN.fit(tmp_path / "broken", listeners=[crash])
    RUN.fit(tmp_path / "broken")
    assert losses(tmp_path / "broken") == losses(tmp_path / "whole")
    assert weights_bytes(tmp_path / "broken") == weights_bytes(tmp_path / "whole")


@pytest.mark.slow
def test_a_run_is_not_resumed_with_other_settings_of_its_source(tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        RUN.fit(tmp_path, listeners=[crash])
    with pytest.raises(CheckpointError, match=r"reversals \(training\) has changed"):
        replace(RUN, train=Reversals(size=100)).fit(tmp_path)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Untold(AbstractSourceSpec):
    """Examples; the third has no target."""

    kind: Literal["untold"] = "untold"

    def read(self) -> Iterator[Example]:
        for number, example in enumerate(reversals(9)):
            yield replace(example, target=None) if number == 2 else example


@pytest.mark.slow
def test_an_error_names_the_source_and_the_example(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="untold, example 3: "):
        replace(RUN, train=Untold()).fit(tmp_path)
