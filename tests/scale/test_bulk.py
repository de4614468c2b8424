"""Bulk runs write every line exactly once, to the answers or to the rejects, despite crashes."""

import gzip
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fsspec
import pytest
import torch
import zstandard
from pyarrow import parquet

from foveal.bundles import load_bundle, save_bundle
from foveal.cli._main import main
from foveal.data import Example
from foveal.data._lines import MAX_LINE
from foveal.errors import DataError
from foveal.scale import Bulk
from foveal.serving import Predictor
from tests.full_disk import full_disk
from tests.tasks.stored import BUNDLES

pytestmark = pytest.mark.slow

GOOD = BUNDLES / "0.1.0/transduction"  # writes short words in uppercase
SECONDS = 120


def run(folder: Path, *words: str) -> None:
    main(["bulk", str(GOOD), "--in", *words, "--out", str(folder)])


def rows(path: Path) -> list[dict[str, Any]]:
    return parquet.read_table(path).to_pylist()


def rejects(path: Path) -> dict[int, str]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return {one["line"]: one["reason"] for one in found}


def test_answers_are_those_of_the_predictor(tmp_path: Path) -> None:
    words = ["abc", "de", "fghij", "k"] * 3
    (tmp_path / "words.txt").write_text("".join(f"{word}\tignored\n" for word in words))
    run(tmp_path / "out", str(tmp_path / "words.txt"), "--nbest", "2")
    task = load_bundle(GOOD)
    predictor = Predictor(task, task.spec)
    expected = predictor.predict(list(map(Example, words)), predictor.settings(nbest=2))
    found = rows(tmp_path / "out/words.parquet")
    assert [row["line"] for row in found] == list(range(1, len(words) + 1))
    assert [row["source"] for row in found] == words
    assert [row["output"] for row in found] == [one.output for one in expected]
    assert [row["score"] for row in found] == [one.score for one in expected]
    assert [row["nbest"][1]["output"] for row in found] == [one.nbest[1].output for one in expected]
    assert not (tmp_path / "out/words.rejects.jsonl").exists()


def test_bad_lines_are_rejected_with_reasons_and_stop_nothing(tmp_path: Path) -> None:
    lines = [
        b'{"source": "abc"}',
        b'{"source": "\xff"}',
        b"",
        b'{"sauce": "abc"}',
        b"{",
        b'{"source": "a\0b"}',
        b'{"source": "' + b"a" * (MAX_LINE + 300_000) + b'"}',
        b'{"source": "' + b"a" * 60 + b'"}',
        b'{"source": "de"}',
    ]
    (tmp_path / "x.jsonl.zst").write_bytes(zstandard.compress(b"\n".join(lines)))
    run(tmp_path / "out", str(tmp_path / "x.jsonl.zst"), "--max-symbols", "50")
    found = rejects(tmp_path / "out/x.rejects.jsonl")
    assert list(found) == [2, 3, 4, 5, 6, 7, 8]
    reasons = (
        "invalid UTF-8",
        "empty",
        "'source'",
        "invalid JSON",
        "NUL",
        "longer than",
        "60 tokens",
    )
    for reason, text in zip(reasons, found.values(), strict=True):
        assert reason in text
    assert [row["output"] for row in rows(tmp_path / "out/x.parquet")] == ["ABC", "DE"]
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert (manifest["lines"], manifest["answered"], manifest["rejected"]) == (9, 2, 7)


def test_a_damaged_file_is_answered_up_to_the_damage(tmp_path: Path) -> None:
    packed = gzip.compress(b"abc\n" * 2_000, compresslevel=0)
    (tmp_path / "x.txt.gz").write_bytes(packed[:-3_000])
    (tmp_path / "y.txt").write_text("de\n")
    run(tmp_path / "out", str(tmp_path / "*.*"), "--beam-size", "1")
    found = rejects(tmp_path / "out/x.rejects.jsonl")
    answered = rows(tmp_path / "out/x.parquet")
    assert list(found) == [len(answered) + 1]
    assert len(answered) > 1_000
    assert "all following lines are lost" in found[len(answered) + 1]
    assert len(rows(tmp_path / "out/y.parquet")) == 1


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def _stamps(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """Write three shards of words."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text("abc\nde\n" * (10 + number))
    return folder


def test_only_what_is_missing_or_has_changed_is_done_again(words: Path, tmp_path: Path) -> None:
    out, pattern = tmp_path / "out", str(words / "*.txt")
    run(out, pattern)
    before, digests = _stamps(out), _digests(out)
    run(out, pattern)
    assert _stamps(out) == before
    (out / "0.parquet").unlink()
    (out / "1.json").write_text("{}")
    (words / "2.txt").write_text("fg\n")
    run(out, pattern)
    assert all(_stamps(out)[name] != before[name] for name in before)
    again = _digests(out)
    for name in ("0.parquet", "0.json", "1.parquet", "1.json"):
        assert again[name] == digests[name]  # depends on the shard only
    assert len(rows(out / "2.parquet")) == 1
    run(out, pattern, "--beam-size", "1")  # other settings: everything is computed again
    assert _digests(out).keys() == digests.keys()
    assert not list(out.glob("*.part-*"))


def test_another_model_answers_anew(words: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOOD, tmp_path / "model"))
    job = Bulk(bundle=folder, inputs=[str(words / "*.txt")], out=str(tmp_path / "out"))
    _answered(job)
    assert job.missing(job.shards()) == []
    task = load_bundle(folder)
    with torch.no_grad():
        next(task.model.parameters()).mul_(0.5)
    save_bundle(task, folder)
    assert len(job.missing(job.shards())) == 3


def _answered(job: Bulk) -> None:
    answer = job.answerer()
    for shard in job.missing(job.shards()):
        answer(shard, lambda number: None)


def test_any_filesystem_will_do(words: Path) -> None:
    memory = fsspec.filesystem("memory")
    job = Bulk(bundle=GOOD, inputs=[str(words / "*.txt")], out="memory://bulk/out")
    _answered(job)
    again = Bulk(bundle=GOOD, inputs=["memory://bulk/in/*.txt"], out="memory://bulk/again")
    for path in words.iterdir():
        memory.pipe(f"/bulk/in/{path.name}", path.read_bytes())
    _answered(again)
    for number in range(3):
        first, second = (memory.cat(f"/bulk/{name}/{number}.parquet") for name in ("out", "again"))
        assert first == second
    assert again.finish(again.shards()).answered == 66


def test_shards_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a.txt", "a.jsonl"):
        (tmp_path / name).write_text("abc\n")
    with pytest.raises(DataError, match=r"a.jsonl and .*a.txt: both outputs would be a"):
        Bulk(bundle=GOOD, inputs=[str(tmp_path / "a.*")], out="out").shards()
    with pytest.raises(DataError, match="no file matches this pattern"):
        Bulk(bundle=GOOD, inputs=[str(tmp_path / "b.*")], out="out").shards()


def test_shards_in_folders_keep_their_folders(tmp_path: Path) -> None:
    for name in ("x/a.txt", "y/a.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("abc\n")
    run(tmp_path / "out", str(tmp_path / "*/a.txt"))
    assert len(rows(tmp_path / "out/x/a.parquet")) == len(rows(tmp_path / "out/y/a.parquet")) == 1


def test_a_full_disk_is_said_in_one_line_and_what_was_done_stays(
    words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, pattern = tmp_path / "out", str(words / "*.txt")
    run(tmp_path / "whole", pattern)
    run(out, str(words / "0.txt"))
    (words / "1.txt").write_text("".join(f"{chr(97 + n % 26) * (n % 7)}\n" for n in range(900)))
    capsys.readouterr()
    with full_disk(), pytest.raises(SystemExit) as ended:
        run(out, pattern)
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert "the disk is full" in said[-1]
    assert not any("Traceback" in line for line in said)
    assert not list(out.glob("*.part-*"))
    run(tmp_path / "whole", pattern)
    run(out, pattern)
    assert _digests(out) == _digests(tmp_path / "whole")


def test_killed_on_the_way_it_goes_on_where_it_was(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.txt").write_text("abcdefgh\n" * 1000)
    words = ["bulk", str(GOOD), "--in", str(folder / "*.txt"), "--out", str(out)]
    with subprocess.Popen([sys.executable, "-m", "foveal.cli", *words]) as process:
        try:
            end = time.monotonic() + SECONDS
            while not (out / "0.json").exists():
                assert time.monotonic() < end
                assert process.poll() is None
                time.sleep(0.02)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)
    done = sorted(path.stem for path in out.glob("?.json"))
    assert 1 <= len(done) < 6
    before = _stamps(out)
    main(words)
    check_whole(out, folder, [str(number) for number in range(6)], 1000)
    assert all(_stamps(out)[f"{name}.parquet"] == before[f"{name}.parquet"] for name in done)


def check_whole(out: Path, folder: Path, names: Sequence[str], size: int) -> None:
    """Check that every line of every shard occurs once, and that every checksum is right."""
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["lines"] == manifest["answered"] == size * len(names)
    for name in names:
        table = out / f"{name}.parquet"
        assert [row["line"] for row in rows(table)] == list(range(1, size + 1))
        record = manifest["files"][name]
        assert record["output_sha256"] == hashlib.sha256(table.read_bytes()).hexdigest()
        content = (folder / f"{name}.txt").read_bytes()
        assert record["input_sha256"] == hashlib.sha256(content).hexdigest()
