"""Every task of the package can be explained, reported, examined, explored and served. To cover a
new task, add it to `TASKS`.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.bundles import save_bundle
from foveal.data import Example, SpellingSpec
from foveal.errors import ValueRangeError
from foveal.inspection import examine, explain, report
from foveal.inspection.explaining._explanation_page import explanation_page
from foveal.models import (
    ClassifierSpec,
    DecomposableAttentionSpec,
    ImageClassifierSpec,
    ImageEncoderSpec,
    LanguageModelSpec,
    MemoryNetworkSpec,
    Seq2SeqSpec,
    TaggerSpec,
    VideoClassifierSpec,
    VQAModelSpec,
)
from foveal.serving.computing._process import Computing
from foveal.specs._annotations import members_of, specs_among
from foveal.specs._fields import kind_of
from foveal.tasks import (
    ClassificationSpec,
    ImageClassificationSpec,
    LanguageModelingSpec,
    PairClassificationSpec,
    ParsingSpec,
    QuestionAnsweringSpec,
    TaggingSpec,
    TaskSpec,
    TransductionSpec,
    VideoClassificationSpec,
    VisualQuestionAnsweringSpec,
)
from foveal.web._runs import load_runs
from tests.tasks.pictures import BARS, bars
from tests.tasks.test_parsing import SMALL
from tests.tasks.test_transcription import TONES, tones
from tests.tasks.test_visual_tasks import FRAMES, IMAGE, clips, questions
from tests.tasks.tiny import (
    DECODER,
    DOCUMENTS,
    ENCODER,
    documents,
    opinions,
    pairs,
    sentences,
    stories,
    upper_cased,
)

pytestmark = pytest.mark.slow


def recordings(folder: Path) -> list[Example]:
    folder.mkdir()
    return [example for example, _ in tones(folder, 12)]


TREES = [
    Example("They buy books", "2:nsubj 0:root 2:obj"),
    Example("They sleep", "2:nsubj 0:root"),
] * 6
TASKS: dict[str, tuple[Any, Callable[[Path], list[Example]]]] = {
    "transduction": (
        TransductionSpec(model=Seq2SeqSpec(encoder=ENCODER, decoder=DECODER)),
        lambda _: upper_cased(40),
    ),
    "classification": (
        ClassificationSpec(model=ClassifierSpec(encoder=ENCODER)),
        lambda _: opinions(40),
    ),
    "classification of documents": (
        ClassificationSpec(model=ClassifierSpec(encoder=DOCUMENTS)),
        lambda _: documents(40),
    ),
    "pair_classification": (
        PairClassificationSpec(model=DecomposableAttentionSpec(hidden_size=16)),
        lambda _: pairs(40),
    ),
    "tagging": (TaggingSpec(model=TaggerSpec(encoder=ENCODER)), lambda _: sentences(40)),
    "parsing": (ParsingSpec(model=SMALL, spelling=SpellingSpec(num_buckets=50)), lambda _: TREES),
    "language_modeling": (
        LanguageModelingSpec(
            model=LanguageModelSpec(embedding_size=12, hidden_size=24), max_length=8
        ),
        lambda _: upper_cased(40),
    ),
    "question_answering": (
        QuestionAnsweringSpec(model=MemoryNetworkSpec(embedding_size=12, max_facts=6)),
        lambda _: stories(40),
    ),
    "captioning": (BARS, lambda folder: bars(folder, 12)),
    "visual_question_answering": (
        VisualQuestionAnsweringSpec(
            image=IMAGE, model=VQAModelSpec(encoder=ImageEncoderSpec(sizes=(8, 8)))
        ),
        lambda folder: questions(folder)[:12],
    ),
    "image_classification": (
        ImageClassificationSpec(
            image=IMAGE, model=ImageClassifierSpec(encoder=ImageEncoderSpec(sizes=(8, 8), blocks=1))
        ),
        lambda folder: bars(folder, 12, most=1),
    ),
    "video_classification": (
        VideoClassificationSpec(image=IMAGE, model=VideoClassifierSpec(encoder=FRAMES)),
        lambda folder: clips(folder, 12),
    ),
    "transcription": (TONES, recordings),
}


def test_every_task_of_the_package_is_here() -> None:
    known = {kind_of(spec) for spec in specs_among(members_of(TaskSpec))}
    assert {spec.kind for spec, _ in TASKS.values()} == known


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_explained_reported_examined_explored_and_served(
    name: str, tmp_path: Path
) -> None:
    spec, made = TASKS[name]
    examples = made(tmp_path / "data")
    torch.manual_seed(0)
    task = spec.build_from(examples)
    task.model.eval()
    found = explain(task, examples[0])
    assert found.task == spec.kind
    assert found.steps
    json.dumps(found.to_data(), allow_nan=False)
    assert found.output in explanation_page(found) or found.picture is not None
    folder = tmp_path / "run"
    save_bundle(task, folder)
    assert "</html>" in report(folder, examples)
    examine(folder, examples)
    (run,) = load_runs([folder])
    assert run.to_data()["task"] == spec.kind
    with Computing() as computing:
        if task.inputs.picture:  # a request must not name files
            with pytest.raises(ValueRangeError, match="which reads files"):
                computing.load("run", folder)
            return
        served = computing.load("run", folder)
        settings = served.questions.settings()
        asked = [Example(examples[0].source)]
        answers = asyncio.run(computing.answer(served, asked, settings, confidence=True)).value
    (expected,) = task.predict(asked, settings)
    assert json.loads(answers[0])["output"] == expected.output
