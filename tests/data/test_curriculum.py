"""The order of curricula, and the batches that training reads from them."""

from collections import Counter
from pathlib import Path

import pytest

from foveal.data import CurriculumSpec, Example, WhitespaceSpec, tsv
from foveal.data._curriculum import Strategy
from foveal.errors import DataError
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.specs import from_json, to_json
from foveal.tasks import LanguageModelingSpec, TransductionSpec
from foveal.training import Run, TrainingSpec

NUM_STAGES = 4


@pytest.fixture
def stages(tmp_path: Path) -> tuple[object, ...]:
    """Sources whose examples name their stage."""
    sources = []
    for stage in range(NUM_STAGES):
        file = tmp_path / f"{stage}.tsv"
        file.write_text("".join(f"{stage} {number}\tyes\n" for number in range(5)))
        sources.append(tsv(file))
    return tuple(sources)


def curriculum(stages: tuple[object, ...], strategy: Strategy, size: int = 400) -> CurriculumSpec:
    return CurriculumSpec(stages=stages, strategy=strategy, size=size, shuffle_size=60)  # pyright: ignore[reportArgumentType]


def stages_of(source: CurriculumSpec) -> list[int]:
    return [int(example.text.split()[0]) for example in source]


def test_baseline_has_the_last_stage_only(stages: tuple[object, ...]) -> None:
    assert set(stages_of(curriculum(stages, "baseline"))) == {NUM_STAGES - 1}


def test_naive_goes_through_the_stages(stages: tuple[object, ...]) -> None:
    found = stages_of(curriculum(stages, "naive"))
    assert found == sorted(found)
    assert Counter(found) == dict.fromkeys(range(NUM_STAGES), 100)


def test_mix_draws_every_stage_from_the_start(stages: tuple[object, ...]) -> None:
    found = stages_of(curriculum(stages, "mix"))
    assert set(found[:50]) == set(range(NUM_STAGES))
    assert all(70 < count < 130 for count in Counter(found).values())


def test_combined_is_both(stages: tuple[object, ...]) -> None:
    found = stages_of(curriculum(stages, "combined"))
    first = Counter(found[:100])
    assert 50 < first[0] < 80  # half in turn, and a quarter of the others
    assert set(first) == set(range(NUM_STAGES))


def test_every_reading_is_the_same_and_a_file_can_hold_it(stages: tuple[object, ...]) -> None:
    source = curriculum(stages, "combined")
    assert list(source) == list(source)
    assert from_json(CurriculumSpec, to_json(source)) == source
    assert len(source.files()) == NUM_STAGES


def test_training_batches_follow_the_order(stages: tuple[object, ...]) -> None:
    source = curriculum(stages, "naive")
    task = TransductionSpec(source=WhitespaceSpec(), target=WhitespaceSpec()).build_from(
        list[Example](source)
    )
    vocabulary = task.vocabularies.source
    means = list[float]()
    for batch in task.batches(source, batch_size=10):
        tokens = vocabulary.decode(row[0] for row in batch.source.tolist())
        means.append(sum(map(int, tokens)) / len(tokens))
    assert len(means) >= 40
    assert all(later >= earlier - 0.5 for earlier, later in zip(means, means[5:], strict=False))
    assert means[0] == 0
    assert means[-1] == NUM_STAGES - 1


def test_a_language_model_reads_the_text_in_order(stages: tuple[object, ...]) -> None:
    source = curriculum(stages, "naive")
    task = LanguageModelingSpec(source=WhitespaceSpec()).build_from(list[Example](source))
    targets = [batch.targets for batch in task.batches(source, batch_size=2)]
    first, last = (
        task.vocabularies.source.decode(row.tolist()[:1]) for row in (targets[0][0], targets[-1][0])
    )
    assert (first, last) == (["0"], [str(NUM_STAGES - 1)])


def test_a_run_of_a_curriculum_can_be_a_file(stages: tuple[object, ...], tmp_path: Path) -> None:
    model = Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=4, hidden_size=4),
        decoder=DecoderSpec(embedding_size=4, hidden_size=4),
    )
    run = Run(
        task=TransductionSpec(source=WhitespaceSpec(), target=WhitespaceSpec(), model=model),
        train=curriculum(stages, "combined", size=40),
        training=TrainingSpec(epochs=1.0, batch_size=10),
    )
    assert from_json(Run, to_json(run)) == run
    outcome = run.fit(tmp_path / "run")
    assert (outcome.reason, outcome.step) == (
        "length",
        8,
    )  # two batches of each window of 60 tokens


def test_a_curriculum_has_a_stage() -> None:
    with pytest.raises(DataError, match="expected at least one stage, got none"):
        list(CurriculumSpec(stages=()))


def test_an_empty_stage_is_refused(stages: tuple[object, ...], tmp_path: Path) -> None:
    (tmp_path / "2.tsv").write_text("")
    with pytest.raises(DataError, match="got none in stage 3 of 4"):
        list(curriculum(stages, "naive"))
