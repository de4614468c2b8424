"""Bulk runs and preparations handle unusual files and names: nothing is lost, mixed up, held in memory or
left behind.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyarrow import parquet

from foveal.cli._main import main
from foveal.data import WhitespaceSpec
from foveal.scale import Bulk
from foveal.scale._line_format import line_format
from foveal.scale._preparing import Preparation, corpus_shards
from foveal.tasks import TransductionSpec
from tests.tasks.stored import BUNDLES

pytestmark = pytest.mark.slow

GOOD = BUNDLES / "0.1.0/transduction"


def bulk(out: Path, pattern: str) -> None:
    main(["bulk", str(GOOD), "--in", pattern, "--out", str(out)])


def refused(capsys: pytest.CaptureFixture[str], out: Path, pattern: str) -> str:
    with pytest.raises(SystemExit):
        bulk(out, pattern)
    return capsys.readouterr().err


def sources(path: Path) -> list[str]:
    return parquet.read_table(path).column("source").to_pylist()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "in"
    found.mkdir()
    return found


def test_two_colons_in_a_name_are_two_colons(folder: Path, tmp_path: Path) -> None:
    """fsspec would parse `a::b.txt` as a chain of URLs that begins with the file `a`."""
    (folder / "a").write_text("dd\n" * 3)
    (folder / "a::b.txt").write_text("abc\n")
    bulk(tmp_path / "out", str(folder / "*"))
    assert sources(tmp_path / "out/a.parquet") == ["dd"] * 3
    assert sources(tmp_path / "out/a%3A%3Ab.parquet") == ["abc"]
    bulk(tmp_path / "alone", str(folder / "a::b.txt"))
    assert sources(tmp_path / "alone/a%3A%3Ab.parquet") == ["abc"]


def test_a_shard_cannot_have_the_name_of_the_manifest(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "manifest.txt").write_text("abc\n")
    assert "would be manifest.json" in refused(capsys, tmp_path / "out", str(folder / "*"))
    for name in ("corpus.tsv", "run.tsv", "counts/a.tsv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("a\tb\n")
        (folder / "b.tsv").write_text("a\tb\n")
        with pytest.raises(ValueError, match="which the run itself writes"):
            corpus_shards([str(folder / "b.tsv"), str(folder / name)], str(tmp_path / "out"))


@pytest.mark.parametrize("below", ["", "answers"])
def test_the_output_is_not_read_as_input(
    folder: Path, capsys: pytest.CaptureFixture[str], below: str
) -> None:
    out = folder / below
    (folder / "a.jsonl").write_text('{"source": "abc"}\n{}\n')
    if not below:
        assert "the input is in the output folder" in refused(capsys, out, str(out / "*.jsonl"))
        assert [path.name for path in folder.iterdir()] == ["a.jsonl"]
        return
    bulk(out, str(folder / "*.jsonl"))
    bulk(out, str(folder / "*.jsonl"))
    assert "the input is in the output folder" in refused(capsys, out, str(folder / "**/*.jsonl"))


def test_rejects_of_an_earlier_version_of_a_shard_go(folder: Path, tmp_path: Path) -> None:
    shard, out = folder / "a.txt", tmp_path / "out"
    shard.write_text("abc\n\n")
    bulk(out, str(shard))
    assert (out / "a.rejects.jsonl").exists()
    shard.write_text("abc\nde\n")
    bulk(out, str(shard))
    assert not (out / "a.rejects.jsonl").exists()
    assert json.loads((out / "a.json").read_text())["rejects_sha256"] == ""


@pytest.mark.parametrize("name", ["a.parquet", "a.rejects.jsonl"])
@pytest.mark.parametrize("is_lost", [True, False])
def test_a_lost_or_damaged_file_is_noticed(
    folder: Path, tmp_path: Path, name: str, is_lost: bool
) -> None:
    shard, out = folder / "a.txt", tmp_path / "out"
    shard.write_text("abc\n\nde\n")
    bulk(out, str(shard))
    before = (out / name).read_bytes()
    if is_lost:
        (out / name).unlink()
    else:
        (out / name).write_bytes(before[:20] + bytes([before[20] ^ 1]) + before[21:])
    bulk(out, str(shard))
    assert (out / name).read_bytes() == before


def preparation(folder: Path, out: Path) -> Preparation:
    shards = corpus_shards([str(folder / "*.tsv")], str(out))
    spec = TransductionSpec(source=WhitespaceSpec(), target=WhitespaceSpec())
    return Preparation(spec=spec, like=line_format(shards[0]).like, shards=shards, out=str(out))


def prepare(folder: Path, out: Path) -> None:
    job = preparation(folder, out)
    for shard in job.uncounted():
        job.count(shard)
    known = job.vocabularies()
    write = job.writer(known)
    for shard in job.unwritten(known):
        write(shard)
    job.finish(known)


def test_a_corpus_is_prepared_again_where_it_was_damaged(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (folder / "a.tsv").write_text("a b\tA B\n" * 20 + "no target\n")
    prepare(folder, out)
    for name in ("a-00000.safetensors", "a.rejects.jsonl"):
        before = (out / name).read_bytes()
        (out / name).write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        prepare(folder, out)
        assert (out / name).read_bytes() == before
    (folder / "a.tsv").write_text("a b\tA B\n" * 20)
    prepare(folder, out)
    assert not (out / "a.rejects.jsonl").exists()


def test_rejects_are_written_as_they_come(folder: Path, tmp_path: Path) -> None:
    """Memory does not grow with the rejects: a few bytes of zstd can unpack to any number of empty
    lines.
    """
    (folder / "a.txt").write_bytes(b"abc\n" + b"\n" * 12_999)
    job = Bulk(bundle=GOOD, inputs=[str(folder / "a.txt")], out=str(tmp_path / "out"))
    answer, (shard,) = job.answerer(), job.shards()
    written = list[int]()

    def look(_: int) -> None:
        written.extend(path.stat().st_size for path in (tmp_path / "out").glob("*.rejects*"))

    assert answer(shard, look).rejected == 12_999
    size = (tmp_path / "out/a.rejects.jsonl").stat().st_size
    assert len(written) == 4
    assert written == sorted(written)
    assert 0.29 * size < written[0] < 0.33 * size  # after 4,096 of 13,000 lines


WRITER = """
import sys
from foveal.scale._storage import written
with written(sys.argv[1]) as file:
    file.write(b"x")
    print(flush=True)
    sys.stdin.read()
"""


def test_what_killed_runs_left_is_cleared_and_what_others_write_is_not(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (folder / "a.txt").write_text("abc\n")
    command = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen(
            [*command, str(out / f"{name}.parquet")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for name in ("killed", "alive")
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline()
        writers[0].send_signal(signal.SIGKILL)
        writers[0].wait()
        assert len(list(out.glob("*.part-*"))) == 2
        for part in out.glob("*.part-*"):  # as if last written to some time ago
            os.utime(part, (time.time() - 120, time.time() - 120))
        bulk(out, str(folder / "a.txt"))
        (left,) = out.glob("*.part-*")
        assert left.name.startswith("alive")
        assert writers[1].stdin is not None
        writers[1].stdin.close()
        assert writers[1].wait(60) == 0
        assert (out / "alive.parquet").read_bytes() == b"x"
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            for pipe in (writer.stdin, writer.stdout):
                assert pipe is not None
                pipe.close()
