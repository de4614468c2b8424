"""A package that imports only public names of foveal adds an attention, a scorer, encoders for texts and
images, a tokenizer, a metric, a distribution, a source, models and a task. The commands train, save,
load, predict, score, explain, examine, serve and run all of them in bulk, in separate processes.
"""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parent / "package"
RECIPE = """
from dataclasses import replace
from foveal.data import CharacterSpec, ImageSpec, image_list, tsv
from foveal.models import CaptionerSpec, DecoderSpec, MultiHeadSpec, Seq2SeqSpec, SoftmaxSpec, TextEncoderSpec
from foveal.tasks import CaptioningSpec, ClassificationSpec, TaggingSpec, TransductionSpec
from foveal.training import Run, TrainingSpec
from foveal_outside import *
from foveal_outside import SPECS


def _run(task):
    training = TrainingSpec(steps=30, batch_size=16, learning_rate=0.02)
    return Run(task=task, train=tsv("train.tsv"), dev=tsv("dev.tsv"), training=training)


def written():
    decoder = DecoderSpec(
        hidden_size=16, embedding_size=8, attention=SoftmaxSpec(scorer=CosineSpec())
    )
    model = Seq2SeqSpec(encoder=MeanEncoderSpec(), decoder=decoder)
    return _run(
        TransductionSpec(source=SyllableSpec(), model=model, metrics=(PrefixMatchSpec(),))
    )


def length():
    training = TrainingSpec(steps=60, batch_size=16, learning_rate=0.1)
    data = {"train": tsv("lengths.tsv"), "dev": tsv("lengths.tsv")}
    return Run(task=LengthSpec(), **data, training=training)


def labels():
    task = ClassificationSpec(source=CharacterSpec(), model=BagSpec())
    return replace(_run(task), train=tsv("labels.tsv"), dev=tsv("labels.tsv"))


def tags():
    task = TaggingSpec(model=LookupSpec())
    return replace(_run(task), train=tsv("tags.tsv"), dev=tsv("tags.tsv"))


def cards():
    decoder = DecoderSpec(hidden_size=16, embedding_size=8)
    model = Seq2SeqSpec(encoder=TextEncoderSpec(hidden_size=8), decoder=decoder)
    data = {"train": CardsSource(path="cards.txt"), "dev": CardsSource(path="cards.txt")}
    training = TrainingSpec(steps=4, batch_size=8)
    return Run(task=TransductionSpec(model=model), **data, training=training)


def pictures():
    decoder = DecoderSpec(hidden_size=16, embedding_size=8)
    model = CaptionerSpec(encoder=PatchEncoderSpec(), decoder=decoder)
    data = {"train": image_list("pictures.tsv"), "dev": image_list("pictures.tsv")}
    training = TrainingSpec(steps=60, batch_size=8, learning_rate=0.02)
    image = ImageSpec(num_channels=1, height=24, width=24)
    return Run(task=CaptioningSpec(image=image, model=model), **data, training=training)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with data, a recipe and the installed package."""
    folder = tmp_path_factory.mktemp("outside")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--no-build-isolation"),
            *("--no-index", "--target", str(folder / "site"), str(PACKAGE)),
        ],
        check=True,
    )
    words = [
        f"{a}{b}{c}" for a in ("ba", "do", "ki") for b in ("mu", "n", "ra") for c in ("", "ki")
    ]
    pairs = [f"{word}\t{word.upper()}\n" for word in words]
    (folder / "train.tsv").write_text("".join(pairs))
    (folder / "dev.tsv").write_text("".join(pairs[:6]))
    (folder / "lengths.tsv").write_text("".join(f"{word}\t{len(word)}\n" for word in words))
    cards = "---\n".join(f"{word}\n{word.upper()}\n" for word in words)
    (folder / "cards.txt").write_text(cards)
    labels = (f"{word}\t{'long' if len(word) > 5 else 'short'}\n" for word in words)
    (folder / "labels.tsv").write_text("".join(labels))
    tags = "ba do ki\tB-X O B-Y\ndo do\tO O\nki ba\tB-Y B-X\nba\tB-X\n"
    (folder / "tags.tsv").write_text(tags * 4)
    draw_bars(folder)
    (folder / "words.txt").write_text("bamuki\ndon\n")
    (folder / "recipe.py").write_text(RECIPE)
    return folder


def draw_bars(folder: Path) -> None:
    """Draw images of several widths with a bar on the left, on the right, or on both sides."""
    rows = []
    for number in range(12):
        image = np.full((8, 12 + number, 1), 255, np.uint8)
        sides = (("left",), ("right",), ("left", "right"))[number % 3]
        for side in sides:
            image[:, slice(4) if side == "left" else slice(-4, None)] = 0
        Image.fromarray(image[..., 0]).save(folder / f"{number}.png")
        rows.append(f"{number}.png\t{' '.join(sides)}\n")
    (folder / "pictures.tsv").write_text("".join(rows))


def environment(folder: Path) -> dict[str, str]:
    paths = [str(folder / "site"), str(Path.cwd())]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def foveal(folder: Path, *words: str) -> str:
    """Return the output of a command, which must succeed."""
    done = started(folder, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(folder: Path, *words: str) -> str:
    """Return the error message of a command, which must fail with a user error."""
    done = started(folder, *words)
    assert done.returncode == 2, done.stderr
    return done.stderr


def started(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "foveal.cli", *words]
    env = environment(folder)
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_the_package_imports_public_names_only() -> None:
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("foveal."):
                parts = (node.module or "").split(".")
                assert not any(part.startswith("_") for part in parts), file
                assert not any(alias.name.startswith("_") for alias in node.names), file


@pytest.mark.parametrize("task", ["written", "length", "labels", "tags"])
def test_a_run_goes_through_every_command(place: Path, task: str) -> None:
    specs = ("--with-specs", "recipe.py")
    said = foveal(place, "fit", "--recipe", f"recipe.py:{task}", "--out", task, "--threads", "1")
    assert f"{task} is ready" in said
    stored = (place / task / "spec.json").read_text()
    assert "foveal_outside." in stored
    assert (place / task / "report.html").is_file()  # with the doctor's findings and explanations
    lines = foveal(place, "predict", task, "words.txt", *specs).splitlines()
    assert [line.split("\t")[0] for line in lines] == ["bamuki", "don"]
    scores = json.loads(foveal(place, "evaluate", task, "--json", *specs))
    names = {"written": {"wer", "cer", "prefix_match"}, "tags": {"span_f1"}}
    assert names.get(task, {"accuracy"}) <= set(str(scores).replace("'", " ").split())
    explained = json.loads(foveal(place, "explain", task, "bamuki", "--json", *specs))
    assert explained["output"] == lines[0].split("\t")[2]
    json.loads(foveal(place, "doctor", task, "--json", *specs))
    foveal(place, "bulk", task, "--in", "words.txt", "--out", f"{task}-bulk", *specs)
    assert (place / f"{task}-bulk" / "words.parquet").is_file()
    assert served(place, task) == lines[0].split("\t")[2]


def test_kinds_from_outside_are_set_by_name(place: Path) -> None:
    words = ("fit", "--recipe", "recipe.py:written", "--out", "peaks", "--threads", "1")
    given = ("--set", "decoder.attention=peaks", "--set", "steps=2")
    foveal(place, *words, *given)
    data = json.loads((place / "peaks" / "spec.json").read_text())
    assert data["model"]["decoder"]["attention"] == {
        "class": "foveal_outside.parts.PeaksSpec",
        "kind": "peaks",
    }


def test_a_model_without_its_parts_says_which_class_it_needs(place: Path) -> None:
    foveal(place, "fit", "--recipe", "recipe.py:length", "--out", "alone", "--set", "steps=2")
    said = refused(place, "predict", "alone", "words.txt")
    assert "needs the class foveal_outside.task.LengthSpec" in said
    assert "--with-specs" in said


def test_a_run_reads_its_examples_from_a_source_from_outside(place: Path) -> None:
    fit = ("fit", "--recipe", "recipe.py:cards", "--out", "cards", "--threads", "1")
    specs = ("--with-specs", "recipe.py")
    foveal(place, *fit)
    assert "foveal_outside.source.CardsSource" in (place / "cards" / "run.json").read_text()
    foveal(place, *fit, "--set", "steps=6")  # resumed
    log = (place / "cards" / "log.jsonl").read_text().splitlines()
    steps = [line["step"] for line in map(json.loads, log) if line["event"] == "step_done"]
    assert steps == list(range(1, 7))
    assert "18 examples" in foveal(place, "evaluate", "cards", *specs)
    foveal(place, "report", "cards", *specs)
    said = refused(place, "evaluate", "cards")
    assert "train: needs the class foveal_outside.source.CardsSource" in said
    foveal(place, "predict", "cards", "words.txt")  # the model has no user-defined part
    cards = (place / "cards.txt").read_text()
    (place / "cards.txt").write_text(cards.replace("BA", "ba"))
    assert "cards.txt (training) has changed" in refused(place, *fit, "--set", "steps=8")
    (place / "cards.txt").write_text(cards)


def test_an_encoder_of_images_captions_them(place: Path) -> None:
    specs = ("--with-specs", "recipe.py")
    foveal(place, "fit", "--recipe", "recipe.py:pictures", "--out", "pictures", "--threads", "1")
    assert "foveal_outside.image.PatchEncoderSpec" in (place / "pictures" / "spec.json").read_text()
    (place / "images.txt").write_text("0.png\n1.png\n2.png\n")
    lines = foveal(place, "predict", "pictures", "images.txt", *specs).splitlines()
    captions = [line.split("\t")[2] for line in lines]
    assert captions == ["left", "right", "left right"]
    explained = json.loads(foveal(place, "explain", "pictures", "2.png", "--json", *specs))
    assert explained["layout"]["rows"] * explained["layout"]["columns"] == 2 * 4
    said = refused(place, "predict", "pictures", "images.txt")
    assert "needs the class foveal_outside.image.PatchEncoderSpec" in said


LAWS = """
import itertools
import torch
from foveal.testing import check_distribution
from foveal_outside.parts import Peaks

def sets(scores, mask):
    for chosen in itertools.product([False, True], repeat=len(scores)):
        apart = not any(a and b for a, b in zip(chosen, chosen[1:]))
        if apart and (mask is None or all(m or not c for c, m in zip(chosen, mask))):
            yield torch.tensor(chosen), sum((s for s, c in zip(scores, chosen) if c), scores.new_zeros(()))

torch.manual_seed(0)
check_distribution(Peaks, [torch.randn(2, 4).double()], structures=sets)
"""


ENCODER_LAWS = """
import torch
from foveal.testing import check_encoder
from foveal_outside import PatchEncoderSpec

torch.manual_seed(0)
pixels = lambda mask: mask.unsqueeze(1)
check_encoder(PatchEncoderSpec().build(), torch.rand(3, 1, 10, 13), (3, 10, 13), over=pixels)
"""


def test_the_image_encoder_obeys_the_laws(place: Path) -> None:
    subprocess.run([sys.executable, "-c", ENCODER_LAWS], env=environment(place), check=True)


def test_the_distribution_obeys_the_laws(place: Path) -> None:
    subprocess.run([sys.executable, "-c", LAWS], env=environment(place), check=True)


def served(folder: Path, name: str) -> str:
    """Return the prediction of a real server for the first word."""
    with serving(folder, name) as address:
        body = json.dumps({"inputs": ["bamuki"]}).encode()
        url = f"{address}/v1/models/{name}/predict"
        request = urllib.request.Request(url, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)["answers"][0]["output"]


@contextmanager
def serving(folder: Path, name: str) -> Iterator[str]:
    """Yield the address of a server, and end the server afterwards."""
    words = ("serve", name, "--port", "0", "--with-specs", "recipe.py")
    command = [sys.executable, "-m", "foveal.cli", *words]
    env = environment(folder) | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            found = (re.search(r"http://[\d.:]+", line) for line in process.stdout)
            yield next(filter(None, found))[0]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)
