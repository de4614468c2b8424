"""`foveal align` from the command line, with models that are trained on gold links."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
import torch

from foveal.bundles import save_bundle
from foveal.cli._main import main
from foveal.data import Example, WhitespaceSpec
from foveal.models import BilinearSpec, DecoderSpec, Seq2SeqSpec, SoftmaxSpec, TextEncoderSpec
from foveal.tasks import ClassificationSpec, TransductionSpec

pytestmark = pytest.mark.slow

SECONDS = 120
PAGE = Path(__file__).resolve().parents[2] / "docs/align.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def foveal(*words: object, folder: Path) -> Done:
    """Run the command in this process, in another folder."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("COLUMNS", "120")
        try:
            main([str(word) for word in words])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


def process(*words: object, folder: Path) -> Done:
    """Run the command in a new process."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "foveal.cli", *map(str, words)],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "120"},
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def examples() -> list[Example]:
    """Return sequences and their reversals; every link is known."""
    chance, found = Random(0), []
    for _ in range(120):
        words = [chance.choice("abcde") for _ in range(chance.randint(1, 5))]
        last = len(words) - 1
        links = " ".join(f"{last - n}-{n}" for n in range(len(words)))
        target = " ".join(word.upper() for word in reversed(words))
        found.append(Example(" ".join(words), target, alignment=links))
    return found


def taught(pairs: list[Example], folder: Path) -> None:
    """Train and save a model that learns the links as well as the words."""
    torch.manual_seed(0)
    spec = TransductionSpec(
        source=WhitespaceSpec(),
        target=WhitespaceSpec(),
        outputs="texts",
        alignment_weight=1.0,
        model=Seq2SeqSpec(
            encoder=TextEncoderSpec(embedding_size=16, hidden_size=24, dropout=0.0),
            decoder=DecoderSpec(
                embedding_size=16,
                hidden_size=48,
                dropout=0.0,
                attention=SoftmaxSpec(scorer=BilinearSpec()),
            ),
        ),
    )
    task = spec.build_from(pairs)
    batch = task.collate([task.encode(pair) for pair in pairs])
    optimizer = torch.optim.Adam(task.model.parameters(), lr=1e-2)
    for _ in range(120):
        loss = task.loss(batch)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        optimizer.step()
    folder.mkdir(parents=True)
    save_bundle(task, folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("align")
    there = examples()
    taught(there, folder / "runs/jaen")
    taught([_turned(pair) for pair in there], folder / "runs/enja")
    some = there[:30]
    rows = [f"{pair.source}\t{pair.target}\t{pair.alignment}\n" for pair in some]
    (folder / "gold.tsv").write_text("".join(rows), encoding="utf-8")
    bars = [f"{pair.source} ||| {pair.target}\n" for pair in some]
    (folder / "pairs").write_text("".join(bars), encoding="utf-8")
    from_one = [
        " ".join(_plus_one(link) for link in pair.alignment.split()) + "\n" for pair in some
    ]
    (folder / "links").write_text("".join(from_one), encoding="utf-8")
    # File names that docs/align.md uses.
    shutil.copy(folder / "gold.tsv", folder / "pairs.tsv")
    shutil.copy(folder / "pairs", folder / "jaen.src-tgt")
    shutil.copy(folder / "links", folder / "jaen.gold")
    return folder


def _turned(pair: Example) -> Example:
    links = (link.split("-") for link in pair.alignment.split())
    return Example(pair.target or "", pair.text, alignment=" ".join(f"{j}-{i}" for i, j in links))


def _plus_one(link: str) -> str:
    i, j = link.split("-")
    return f"{int(i) + 1}-{int(j) + 1}"


def value(said: str, name: str) -> float:
    (row,) = [line.split() for line in said.splitlines() if line.startswith(name + " ")]
    return float(row[1])


def test_links_come_after_their_pair_and_are_scored(made: Path) -> None:
    done = process("align", "runs/jaen", "gold.tsv", "--gold", "gold.tsv", folder=made)
    assert done.returncode == 0, done.stderr
    given = (made / "gold.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[:2] for row in rows] == [line.split("\t")[:2] for line in given]
    right = [
        set(a[2].split()) == set(b.split("\t")[2].split()) for a, b in zip(rows, given, strict=True)
    ]
    assert sum(right) > 20
    assert value(done.stderr, "AER") < 10
    assert value(done.stderr, "precision") > 90
    assert "softmax attention: probability 0.5 or more" in done.stderr


def test_bars_links_from_1_and_both_directions(made: Path) -> None:
    done = foveal(
        *("align", "runs/jaen", "pairs", "--reverse", "runs/enja", "--gold", "links"),
        *("--format", "pharaoh", "--by", "argmax", "--symmetrize", "intersection"),
        folder=made,
    )
    assert done.returncode == 0, done.stderr
    assert value(done.stderr, "AER") < 10
    assert "counted from 1" in done.stderr
    assert "both directions merged by intersection" in done.stderr
    assert len(done.stdout.splitlines()) == 30
    assert all(set(line) <= set("0123456789- ") for line in done.stdout.splitlines())


def test_json_has_words_and_probabilities(made: Path) -> None:
    done = foveal("align", "runs/jaen", "pairs", "--format", "jsonl", folder=made)
    first = json.loads(done.stdout.splitlines()[0])
    source, _, target = (
        (made / "pairs").read_text(encoding="utf-8").splitlines()[0].partition(" ||| ")
    )
    assert first["source"] == source.split()
    assert first["target"] == target.split()
    for i, j, probability in first["links"]:
        assert first["target"][j] == first["source"][i].upper()
        assert 0.5 <= probability <= 1


def test_the_commands_of_the_page_run(made: Path) -> None:
    blocks = CONSOLE.findall(PAGE.read_text(encoding="utf-8"))
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) == 5
    for command in commands:
        words = command.removeprefix("$ foveal ").partition(" > ")[0].split()
        done = foveal(*words, folder=made)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert len(done.stdout.splitlines()) == 30


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("runs/jaen", "none.tsv"), "none.tsv: cannot be read"),
        (("runs/jaen", "pairs", "--gold", "short"), "1 lines of links for 30 pairs"),
        (("runs/jaen", "pairs", "--threshold", "2"), "threshold"),
        (("labels", "pairs"), "classification"),
        (("runs/jaen", "bare"), "bare, line 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(made: Path, words: tuple[str, ...], said: str) -> None:
    (made / "short").write_text("0-0\n", encoding="utf-8")
    (made / "bare").write_text("a b\n", encoding="utf-8")
    labels = ClassificationSpec().build_from([Example("a b", "x"), Example("b", "y")])
    save_bundle(labels, made / "labels")
    done = foveal("align", *words, folder=made)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
