"""The models that ship: their sizes, checksums and licenses, and cards that follow from their files."""

import json
import tomllib
from pathlib import Path

import pytest

from benchmarks.shelf._card import card
from benchmarks.shelf._catalogue import MODELS
from foveal.bundles import load_bundle
from foveal.data.formats._lexicons import read_lexicon
from foveal.serving._lexicon_first import LexiconFirst
from foveal.shelf._adding import model_files
from foveal.shelf._index import CARD, CARD_DATA, read_index
from foveal.tasks import Transduction

SHELF = Path(__file__).resolve().parents[2] / "shelf"
SHIPPED = {model.name: model for model in read_index(SHELF / "foveal_shelf")}
MOST_BYTES = 2_000_000
FORBIDDEN = (
    "NC",
    "not stated",
    "research",
)  # parts of licenses whose data may not be in a model that ships


@pytest.mark.parametrize("name", SHIPPED)
def test_it_is_small_and_complete(name: str) -> None:
    model = SHIPPED[name]
    assert model.changed() == []
    assert sorted(file.path for file in model.files) == sorted(model_files(model.folder))
    there = {path.relative_to(model.folder).as_posix() for path in model.folder.rglob("*.*")}
    assert {file.path for file in model.files} == there
    assert model.size <= MOST_BYTES
    assert model.name in MODELS


@pytest.mark.parametrize("name", SHIPPED)
def test_the_card_follows_from_the_files(name: str) -> None:
    folder = SHIPPED[name].folder
    assert card(folder) == (folder / CARD).read_text(encoding="utf-8")
    task = load_bundle(folder)
    data = json.loads((folder / CARD_DATA).read_text(encoding="utf-8"))
    assert data["parameters"] == sum(each.numel() for each in task.model.parameters())
    assert data["shelf"]["task"] == task.spec.kind
    assert task.vocabularies.majority == {}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_license_allows_shipping(name: str) -> None:
    folder = SHIPPED[name].folder
    data = json.loads((folder / CARD_DATA).read_text(encoding="utf-8"))
    for one in data["data"]:
        assert not any(part in one["license"] for part in FORBIDDEN)
        assert one["source"] in (folder / "LICENSE.txt").read_text(encoding="utf-8")
        assert all(len(file["sha256"]) == 64 for file in one["files"])


def test_the_lexicon_has_the_most_frequent_english_words() -> None:
    """The list is from benchmarks/shelf/_frequent.py; a word of the lexicon is answered from there."""
    lexicon = read_lexicon([str(SHIPPED["g2p-en"].folder / "lexicon.txt.zst")])
    words = Path(__file__).with_name("frequent_english.txt").read_text("utf-8").split()
    assert len(set(words)) == 1000
    assert [word for word in words if word not in lexicon] == []
    task = load_bundle(SHIPPED["g2p-en"].folder)
    assert isinstance(task, Transduction)
    answerer = LexiconFirst(task.answerer(), task, lexicon)
    for word, found in zip(words, answerer.predict(words), strict=True):
        assert (found.output, found.confidence) == (" ".join(lexicon[word][0]), 1.0)


def test_the_package_names_all_licenses() -> None:
    project = tomllib.loads((SHELF / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = set(project["license"].split(" AND "))
    assert named == {"Apache-2.0", *(model.license for model in SHIPPED.values())}
    assert project["entry-points"]["foveal.shelves"] == {"shelf": "foveal_shelf"}
    root = SHELF.parent
    assert (SHELF / "LICENSE").read_bytes() == (root / "LICENSE").read_bytes()
