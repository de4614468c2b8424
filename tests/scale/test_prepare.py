"""Training on a prepared corpus equals training on the texts, even after interruptions."""

import hashlib
import json
import random
import signal
from collections.abc import Sequence
from pathlib import Path

import fsspec
import pytest
import zstandard
from safetensors.numpy import load_file

from benchmarks.clusters import SECONDS, process, wait_for
from foveal.cli._main import main
from foveal.data import Example, TabSeparated, WhitespaceSpec
from foveal.data._source import Shard
from foveal.data.streams._prepared import CORPUS, PreparedCorpus
from foveal.errors import DataError, SpecError
from foveal.planning._choices import load_plan
from foveal.scale._line_format import line_format
from foveal.scale._preparing import Preparation
from foveal.scale._storage import find_shards
from foveal.tasks import TransductionSpec
from foveal.tasks._prepared import build_for_corpus

pytestmark = pytest.mark.slow

SMALL = (
    *("--set", "encoder.hidden_size=8", "--set", "decoder.hidden_size=8"),
    *("--set", "encoder.embedding_size=8", "--set", "decoder.embedding_size=8"),
)


def pairs(number: int, seed: int) -> list[str]:
    """Draw words, with the words in uppercase as targets."""
    generator = random.Random(seed)
    words = [
        "".join(generator.choices("abcdefghij", k=generator.randint(2, 7))) for _ in range(number)
    ]
    return [f"{word}\t{' '.join(word.upper())}" for word in words]


def written(path: Path, lines: Sequence[str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Write three shards of pairs."""
    for number in range(3):
        written(tmp_path / f"in/{number}.tsv", pairs(80 + number, number))
    return tmp_path / "in"


def digests(folder: Path) -> dict[str, str]:
    """Hash the files of a preparation, except for `run.json`, which contains the folder's name."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "run.json"
    }


def stamps(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.safetensors")}


def prepare(out: Path, pattern: str, *words: str) -> None:
    main(["prepare", pattern, "--out", str(out), *words])


def test_training_on_it_is_training_on_the_texts(shards: Path, tmp_path: Path) -> None:
    prepare(tmp_path / "corpus", str(shards / "*.tsv"), *SMALL)
    dev = written(tmp_path / "dev.tsv", pairs(20, 9))
    weights = []
    for train in (sorted(map(str, shards.glob("*.tsv"))), [str(tmp_path / "corpus")]):
        out = tmp_path / f"run{len(weights)}"
        main(
            [
                "fit",
                *train,
                "--dev",
                str(dev),
                "--out",
                str(out),
                *SMALL,
                "--set",
                "training.epochs=3",
            ]
        )
        weights.append(load_file(out / "weights.safetensors"))
    assert weights[0].keys() == weights[1].keys()
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def test_every_example_is_there_with_the_numbers_that_the_task_gives_it(
    shards: Path, tmp_path: Path
) -> None:
    corpus, _ = prepared(shards, str(tmp_path / "corpus"))
    task = build_for_corpus(TransductionSpec(), corpus)
    found = [one for shard in corpus.shards() for one in _examples(corpus, shard)]
    lines = [line.split("\t") for n in range(3) for line in pairs(80 + n, n)]
    texts = [Example(source, target) for source, target in lines]
    assert corpus.num_examples == len(texts)
    for (source, target), text in zip(found, texts, strict=True):
        encoded = task.encode(text)
        assert (source, target) == (list(encoded.source), list(encoded.target))


def _examples(corpus: PreparedCorpus, shard: Shard) -> list[tuple[list[int], list[int]]]:
    return [(list(one.source), list(one.target)) for one in corpus.open(shard)]


def prepared(folder: Path, out: str) -> tuple[PreparedCorpus, Preparation]:
    """Prepare a corpus like the command, with the default task."""
    found = find_shards([str(folder / "*.tsv")])
    like, _ = line_format(found[0])
    job = Preparation(spec=TransductionSpec(), like=like, shards=found, out=out)
    for shard in job.uncounted():
        job.count(shard)
    known = job.vocabularies()
    for number in map(job.writer(known), job.unwritten(known)):
        assert number
    job.finish(known)
    return PreparedCorpus(path=out, like=like), job


def test_only_what_is_missing_is_done_again(shards: Path, tmp_path: Path) -> None:
    out, pattern = tmp_path / "corpus", str(shards / "*.tsv")
    prepare(out, pattern)
    before, content = stamps(out), digests(out)
    prepare(out, pattern)
    assert stamps(out) == before
    (out / "1-00000.safetensors").unlink()
    (out / "counts/2.json").unlink()
    prepare(out, pattern)
    assert digests(out) == content
    assert {name for name, stamp in stamps(out).items() if stamp != before[name]} == {
        "1-00000.safetensors"
    }
    written(shards / "0.tsv", pairs(5, 0))  # other counts, hence other token ids
    prepare(out, pattern)
    prepare(tmp_path / "anew", pattern)
    assert digests(out) == digests(tmp_path / "anew")
    assert stamps(out)["2-00000.safetensors"] != before["2-00000.safetensors"]


def test_lines_that_are_no_examples_are_rejected_and_stop_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [*(line.encode() for line in pairs(50, 1)), b"alone", b"\xff\tA", b"", b"ab\tA B"]
    (tmp_path / "x.tsv.zst").write_bytes(zstandard.compress(b"\n".join(lines)))
    prepare(tmp_path / "corpus", str(tmp_path / "x.tsv.zst"))
    assert "51 examples in 1 parts, 3 lines rejected" in capsys.readouterr().out
    rejects = (tmp_path / "corpus/x.rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["line"] for line in rejects] == [51, 52, 53]
    record = json.loads((tmp_path / "corpus/x.json").read_text())
    assert (record["lines"], record["rejected"], record["parts"][0][1]) == (54, 3, 51)


def test_a_task_that_would_number_them_otherwise_is_refused(shards: Path, tmp_path: Path) -> None:
    corpus, _ = prepared(shards, str(tmp_path / "corpus"))
    with pytest.raises(
        SpecError, match=r"differently from the prepared corpus.* Prepare the corpus again"
    ):
        build_for_corpus(TransductionSpec(source=WhitespaceSpec()), corpus)


def test_it_needs_texts_for_validation(
    shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(tmp_path / "corpus", str(shards / "*.tsv"))
    with pytest.raises(SystemExit):
        main(["fit", str(tmp_path / "corpus"), "--out", str(tmp_path / "run")])
    assert "expected validation files" in capsys.readouterr().err


def test_a_damaged_part_is_one_line(shards: Path, tmp_path: Path) -> None:
    corpus, job = prepared(shards, str(tmp_path / "corpus"))
    part = tmp_path / "corpus/1-00000.safetensors"
    part.write_bytes(part.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"1-00000.safetensors: not a part of a prepared corpus"):
        corpus.open(corpus.shards()[1])
    assert [shard.name for shard in job.unwritten(job.vocabularies())] == ["1"]
    with pytest.raises(DataError, match="foveal prepare"):  # an incomplete corpus is not readable
        corpus.about()


def test_any_filesystem_will_do(shards: Path, tmp_path: Path) -> None:
    prepared(shards, "memory://prepared")
    prepared(shards, str(tmp_path / "corpus"))
    memory = fsspec.filesystem("memory")
    for path in (tmp_path / "corpus").glob("*.safetensors"):
        assert memory.cat(f"/prepared/{path.name}") == path.read_bytes()
    assert memory.cat(f"/prepared/{CORPUS}") == (tmp_path / "corpus" / CORPUS).read_bytes()


@pytest.mark.timeout(3 * SECONDS)
def test_on_ray_the_driver_is_killed_and_the_bytes_are_the_same(tmp_path: Path) -> None:
    for number in range(8):
        written(tmp_path / f"in/{number}.tsv", pairs(5_000, number))
    pattern, out = str(tmp_path / "in/*.tsv"), tmp_path / "corpus"
    words = ["-m", "foveal.cli", "prepare", pattern, "--out"]
    on_ray = [*words, str(out), "--ray", "--workers", "2"]
    with process(on_ray) as driver:
        wait_for((out / "0.json").exists, driver)
        driver.send_signal(signal.SIGKILL)
        driver.wait(SECONDS)
    assert not (out / CORPUS).exists()
    done = {path.stem for path in out.glob("?.json")}
    assert 1 <= len(done) < 8
    before = stamps(out)
    with process(on_ray) as driver:
        assert driver.wait(SECONDS) == 0
    after = stamps(out)
    assert all(after[name] == before[name] for name in before if name.split("-")[0] in done)
    # In a separate process, because this one checks the types of every line.
    with process([*words, str(tmp_path / "alone")]) as alone:
        assert alone.wait(SECONDS) == 0
    assert digests(tmp_path / "alone") == digests(out)


def test_columns_with_names_are_read_from_lines(tmp_path: Path) -> None:
    """Each line is parsed without the header, with columns by number."""
    lines = ["pron\tword", *("\t".join(reversed(line.split("\t"))) for line in pairs(40, 1))]
    written(tmp_path / "in/0.tsv", lines)
    (shard,) = find_shards([str(tmp_path / "in/0.tsv")])
    like, reason = line_format(shard)
    assert reason.endswith("text in 'word', target in 'pron'")
    assert isinstance(like, TabSeparated)
    assert like.header
    assert (like.source, like.target) == (1, 0)
    prepare(tmp_path / "corpus", str(tmp_path / "in/*.tsv"), *SMALL)
    corpus = load_plan(tmp_path / "corpus").run.train
    assert isinstance(corpus, PreparedCorpus)
    assert corpus.num_examples == 40


def test_a_csv_file_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "in/0.csv", ["word,pron", "a,b"])
    (shard,) = find_shards([str(tmp_path / "in/0.csv")])
    with pytest.raises(DataError, match=r"expected one example per line. Convert it to tab-sep"):
        line_format(shard)
