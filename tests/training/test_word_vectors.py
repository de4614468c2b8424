"""Vectors from a file initialize the embedding of the source, and bad files are refused in words."""

import gzip
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from foveal.bundles import load_bundle
from foveal.bundles._word_vectors import load_word_vectors
from foveal.data import Example, WhitespaceSpec, tsv
from foveal.errors import CheckpointError, DataError, SpecError
from foveal.models import ClassifierSpec, TextEncoderSpec
from foveal.specs import with_setting
from foveal.tasks import Classification, ClassificationSpec
from foveal.training import Run, TrainingSpec

VECTORS = "good 1 2 3\nbad -1 -2 -3\nfilm 0.5 0 0\n. . . 7 7 7\nother 9 9 9\n"
TASK = ClassificationSpec(
    source=WhitespaceSpec(),
    model=ClassifierSpec(encoder=TextEncoderSpec(embedding_size=3, hidden_size=4)),
)
EXAMPLES = [Example("good film", "yes"), Example("bad film", "no"), Example("good plot", "yes")]


def task_with(path: Path) -> Classification:
    torch.manual_seed(0)
    task = TASK.build_from(EXAMPLES)
    load_word_vectors(task, path)
    return task


def embedding(task: Classification, word: str) -> list[float]:
    (number,) = task.vocabularies.source.encode([word])
    (table,) = (part for part in task.model.modules() if isinstance(part, torch.nn.Embedding))
    return table.weight[number].tolist()


@pytest.mark.parametrize("first", ["", "5 3\n"])
def test_known_words_get_their_vectors(first: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(gzip.compress((first + VECTORS).encode()))
    task = task_with(path)
    assert embedding(task, "good") == [1, 2, 3]
    assert embedding(task, "film") == [0.5, 0, 0]
    torch.manual_seed(0)
    fresh = TASK.build_from(EXAMPLES)
    assert embedding(task, "plot") == embedding(fresh, "plot")
    assert embedding(fresh, "good") != [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("good 1 2\n", SpecError, "width 2, and the embedding has width 3. Set embedding_size"),
        ("good 1 2 3\nbad 1 2\n", DataError, "line 2: expected a word and 3 numbers, got 2"),
        ("good 1 2 x\n", DataError, "expected numbers after the word"),
        ("good 1 2 nan\n", DataError, "expected finite numbers"),
        ("cat 1 2 3\n", DataError, "such as 'film', 'good', 'bad', got none of 4"),
    ],
)
def test_bad_files_are_refused(
    text: str, error: type[Exception], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=re.escape(words)):
        task_with(path)


def test_few_vectors_give_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("good 1 2 3\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="vectors for 1 of 4 tokens"):
        task_with(path)


def test_a_run_starts_from_vectors_and_resumes_only_with_them(tmp_path: Path) -> None:
    data, path = tmp_path / "train.tsv", tmp_path / "vectors.txt"
    data.write_text("".join(f"{one.source}\t{one.target}\n" for one in EXAMPLES * 4), "utf-8")
    path.write_text(VECTORS, encoding="utf-8")
    training = TrainingSpec(steps=2, batch_size=4, learning_rate=1e-9)
    run = Run(task=TASK, train=tsv(data), training=training)
    run = with_setting(run, "word_vectors", str(path))
    run.fit(tmp_path / "run")
    task = load_bundle(tmp_path / "run")
    assert isinstance(task, Classification)
    assert embedding(task, "good") == pytest.approx([1, 2, 3], abs=1e-4)
    path.write_text(VECTORS.replace("1 2 3", "3 2 1"), encoding="utf-8")
    longer = replace(run, training=replace(training, steps=3))
    with pytest.raises(CheckpointError, match="word vectors"):
        longer.fit(tmp_path / "run")
