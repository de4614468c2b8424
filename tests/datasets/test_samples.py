"""The samples of the package are small, complete, credited, and readable by the toolkit."""

import re
import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest

from foveal.data import Facts, babi, image_list, open_source, treebank, tsv
from foveal.datasets import sample
from foveal.datasets._samples import NAMES, copy_samples
from foveal.errors import DataError
from foveal.planning._inferring import infer_task

MAX_BYTES = 2_000_000
FOLDER = sample("names").parent


def test_all_samples_together_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < MAX_BYTES


def test_every_sample_has_its_credit_and_license() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()}
    assert folders == set(NAMES)
    credit = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in NAMES:
        (row,) = (line for line in credit.splitlines() if line.startswith(f"| `{name}`"))
        assert any(each in row for each in ("Apache-2.0", "public domain", f"`{name}/LICENSE`"))
        if f"`{name}/LICENSE`" in row:
            assert (FOLDER / name / "LICENSE").stat().st_size > 1000


@pytest.mark.parametrize("name", ["pronunciation", "names", "commands", "formulas", "inflection"])
def test_no_source_is_in_two_parts_of_a_table(name: str) -> None:
    parts = [
        {example.source for example in tsv(sample(name) / f"{part}.tsv")}
        for part in ("train", "dev", "test")
    ]
    assert all(parts)
    assert len(set().union(*parts)) == sum(map(len, parts))


@pytest.mark.parametrize(
    ("path", "task"),
    [
        ("pronunciation/train.tsv", "transduction"),
        ("names/train.tsv", "transduction"),
        ("commands/train.tsv", "transduction"),
        ("formulas/train.tsv", "transduction"),
        ("text/train.txt", "language_modeling"),
        ("inflection/train.tsv", "transduction"),
        ("stories/train.txt", "question_answering"),
        ("pairs/train.tsv", "pair_classification"),
        ("reviews/train.jsonl", "classification"),
        ("trees/train.conllu", "tagging"),
    ],
)
def test_the_task_of_a_sample_is_inferred(path: str, task: str) -> None:
    assert infer_task(open_source(FOLDER / path).source).task == task


def test_a_question_is_answered_by_its_two_facts() -> None:
    examples = list(babi(sample("stories") / "train.txt"))
    assert len(examples) == 800
    for example in examples:
        told = example.input_as(Facts)
        facts, question = told.facts, told.question
        taken, moved = (facts[int(pair.split("-")[0])] for pair in example.alignment.split())
        thing = question.removeprefix("Where is the ").removesuffix("?")
        person = taken.split()[0]
        assert taken == f"{person} took the {thing}."
        assert moved == f"{person} went to the {example.target}."
        later = facts[facts.index(moved) + 1 :] if facts.count(moved) == 1 else []
        assert not any(fact.startswith(f"{person} went") for fact in later)


def test_every_scene_has_its_image() -> None:
    folder = sample("scenes")
    for part, size in (("train", 300), ("dev", 50), ("test", 50)):
        opened = open_source(folder / f"{part}.tsv")
        assert opened.source == image_list(folder / f"{part}.tsv", folder / "images.zip")
        assert opened.reason.endswith(f"the images are in {folder / 'images.zip'}")
        examples = list(opened.source)
        assert len(examples) == size
        assert all(example.target for example in examples)


def test_images_next_to_a_list_are_preferred_to_an_archive(tmp_path: Path) -> None:
    shutil.copytree(sample("scenes"), tmp_path, dirs_exist_ok=True)
    assert open_source(tmp_path / "dev.tsv").source == image_list(
        tmp_path / "dev.tsv", tmp_path / "images.zip"
    )
    with ZipFile(tmp_path / "images.zip") as archive:
        archive.extractall(tmp_path)
    assert open_source(tmp_path / "dev.tsv").source == image_list(tmp_path / "dev.tsv")


def test_questions_about_scenes_follow_from_the_captions() -> None:
    folder = sample("scenes")
    captions = dict(
        line.split("\t") for line in (folder / "dev.tsv").read_text("utf-8").splitlines()
    )
    for line in (folder / "dev_questions.tsv").read_text("utf-8").splitlines():
        image, question, answer = line.split("\t")
        shape = question.split()[-4 if question.endswith("are there ?") else -2]
        groups = re.findall(r"(?:a|two|three) \w+ \w+ \w+", captions[image])
        (group,) = (each for each in groups if each.split()[-1] in (shape, singular(shape)))
        number, size, color, _ = group.split()
        number = str(1 + ["a", "two", "three"].index(number))
        assert answer == {"color": color, "many": number, "large": size}[question.split()[1]]


def singular(shape: str) -> str:
    return "cross" if shape == "crosses" else shape.removesuffix("s")


def test_trees_of_the_sample_are_trees() -> None:
    for example in treebank(sample("trees") / "train.conllu"):
        heads = [int(pair.split(":")[0]) for pair in (example.target or "").split()]
        assert heads.count(0) == 1
        for word in range(1, len(heads) + 1):
            path = [word]
            while path[-1] and len(path) <= len(heads):
                path.append(heads[path[-1] - 1])
            assert path[-1] == 0


def test_samples_are_copied(tmp_path: Path) -> None:
    assert copy_samples(("names",), tmp_path) == [tmp_path / "names"]
    assert (tmp_path / "names/LICENSE").is_file()
    assert (tmp_path / "README.md").is_file()
    assert not (tmp_path / "text").exists()


def test_an_unknown_sample_is_named() -> None:
    with pytest.raises(DataError, match=r"expected one of pronunciation, .*, got 'nothing'"):
        sample("nothing")
