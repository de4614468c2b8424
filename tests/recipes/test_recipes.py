"""Recipes are functions in files that return a whole run, for the command and for Python."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from examples.support import DATA
from foveal.data import TabSeparated
from foveal.planning import plan
from foveal.planning._choices import load_plan
from foveal.specs import from_json, to_json, with_setting
from foveal.training import Run
from recipes import g2p_low

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "recipes/g2p_low.py"
SECONDS = 120
SHORT = ("training.epochs=none", "training.steps=4", "task.prediction.beam_size=1")
SIZES = {"train": 60, "dev": 8, "test": 8}
LETTERS = "aábdðeéfghiíjklmnoóprstuúvxyýþæö"

PROGRAM = """
import sys

from recipes import g2p_low
from foveal.specs import with_setting

name, out, *given = sys.argv[1:]
run = {"recipe": g2p_low.recipe, "segment": g2p_low.segment}[name]()
for text in given:
    run = with_setting(run, *text.split("="))
run.fit(out)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with words where the recipe looks for them."""
    folder = tmp_path_factory.mktemp("data")
    place = folder / "g2p_sigmorphon2021/low"
    place.mkdir(parents=True)
    number = 0
    for name, size in SIZES.items():
        lines = []
        for _ in range(size):
            number += 1
            word = "".join(LETTERS[(number * k * k) % len(LETTERS)] for k in range(1, 5))
            lines.append(f"{word}\t{' '.join(word)}\n")
        (place / f"ice_{name}.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def python(*words: object, data: Path) -> None:
    """Run Python in a separate process, with the data of a test."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "FOVEAL_DATA": str(data)},
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["recipe", "segment"])
def test_the_command_is_the_python_call_bit_for_bit(name: str, data: Path, tmp_path: Path) -> None:
    short = [word for text in SHORT for word in ("--set", text)]
    command = ("-m", "foveal.cli", "fit", "--recipe", f"{FILE}:{name}", *short)
    python(*command, "--out", tmp_path / "command", data=data)
    python("-c", PROGRAM, name, tmp_path / "python", *SHORT, data=data)
    runs = [load_plan(tmp_path / folder).run for folder in ("command", "python")]
    assert runs[0] == runs[1]
    assert runs[0].training.steps == 4
    weights = [load_file(tmp_path / f / "weights.safetensors") for f in ("command", "python")]
    assert weights[0].keys() == weights[1].keys()
    assert all(weights[0][key].tobytes() == weights[1][key].tobytes() for key in weights[0])


def test_a_recipe_has_its_json_both_ways() -> None:
    for run in (g2p_low.recipe(), g2p_low.segment()):
        assert from_json(Run, to_json(run)) == run


def test_the_variant_differs_in_its_attention_alone() -> None:
    changed = with_setting(g2p_low.recipe(), "task.model.decoder.attention", "segment")
    assert changed == g2p_low.segment() != g2p_low.recipe()


def test_the_recipe_is_what_fit_chooses_for_the_files() -> None:
    run = g2p_low.recipe()
    if not DATA.joinpath("g2p_sigmorphon2021/low").exists():
        pytest.skip(f"data not found at {DATA}; set FOVEAL_DATA")
    assert isinstance(run.train, TabSeparated)
    assert plan(run.train, run.dev, run.test).run == run


# The data set that each recipe needs first. The other recipes generate their data.
SETS = {
    "babi": "babi_v1-2",
    "de_en": "multi30k",
    "documents": "movie_reviews_pang_lee",
    "easy_vqa": "easy_vqa",
    "en_fr": "multi30k",
    "entailment": "sick_nli",
    "g2p_english": "g2p_sigmorphon2021",
    "g2p_low": "g2p_sigmorphon2021",
    "g2p_medium": "g2p_sigmorphon2021",
    "image_to_latex:crohme_soft": "crohme_png",
    "image_to_latex:im2latex_soft": "im2latex_val_test",
    "inflection": "inflection_sigmorphon2023",
    "ja_en": "enja_tanaka50k",
    "katakana": "translit_coling2018",
    "parsing": "ud_english_ewt",
    "scan": "scan",
    "segment_translation": "enja_tanaka50k",
    "side_by_side": "enja_tanaka50k",
}
WITHOUT_DATA = """
import sys

from foveal.cli import main

for name in sys.argv[1:]:
    file, _, function = name.partition(":")
    print(f"{name}:", file=sys.stderr)
    try:
        main(["fit", "--recipe", f"recipes/{file}.py:{function or 'recipe'}", "--out", "run"])
    except SystemExit as end:
        assert end.code == 2
"""


def test_missing_data_is_answered_with_the_command(tmp_path: Path) -> None:
    """The test runs in a copy of the recipes, without files of earlier runs."""
    for folder in ("recipes", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DATA, *SETS],
        cwd=tmp_path,
        env=os.environ | {"FOVEAL_DATA": str(tmp_path / "none"), "PYTHONPATH": paths},
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, data_set in SETS.items():
        said = done.stderr.partition(f"{name}:\n")[2].splitlines()[0]
        assert f"Download it: foveal data get {data_set}" in said, said
        assert str(tmp_path / "none" / data_set) in said


def test_no_two_recipes_write_into_one_folder() -> None:
    modules = [
        importlib.import_module(f"recipes.{path.stem}")
        for path in sorted((ROOT / "recipes").glob("*.py"))
    ]
    folders = [module.FOLDER for module in modules if hasattr(module, "FOLDER")]
    assert len(folders) > 1
    assert len(set(folders)) == len(folders)
