"""The catalog of public data sets, the data folder, and files from folders and from a local server."""

import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from foveal.cli import main
from foveal.datasets import data_file, data_folder
from foveal.datasets._catalog import DataFile, DataSet, catalog, data_set
from foveal.datasets._contents import content_digest, digest_of
from foveal.datasets._download import download
from foveal.datasets._fetching import fetch
from foveal.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
WORDS = b"one\ntwo\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("FOVEAL_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def small(**changes: str | None) -> DataSet:
    """A data set with a plain and a compressed file."""
    checksum = hashlib.sha256(WORDS).hexdigest()
    return replace(
        DataSet(
            name="small",
            about="words",
            source="https://example.org/words",
            revision="abc",
            license="CC0",
            citation="",
            files=(
                DataFile(path="plain.txt", size=8, sha256=checksum, upstream="texts/plain.txt"),
                DataFile(
                    path="packed.txt.gz", size=8, sha256=checksum, upstream="texts/packed.txt"
                ),
            ),
        ),
        **changes,
    )


def fetched(wanted: DataSet, *folders: Path) -> list[Path]:
    return fetch(wanted, folders, lambda _: None)


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_the_variable_names_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_folder() == tmp_path / "data"
    monkeypatch.delenv("FOVEAL_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache/foveal/data"


def test_a_missing_file_is_answered_with_the_command(folder: Path) -> None:
    with pytest.raises(DataError) as error:
        data_file("scan/tasks_train_simple.txt.gz")
    expected = f"data not found at {folder}/scan/tasks_train_simple.txt.gz. Download it: foveal data get scan"
    assert str(error.value) == expected
    there = write(folder / "scan/x.txt", b"")
    assert data_file("scan/x.txt") == there


def test_a_checksum_is_that_of_the_contents(tmp_path: Path) -> None:
    packed = [gzip.compress(WORDS, level, mtime=level) for level in (1, 9)]
    assert packed[0] != packed[1]
    expected = hashlib.sha256(WORDS).hexdigest()
    assert {digest_of(data, "x.gz") for data in packed} == {expected}
    assert digest_of(packed[0], "x.zst") == hashlib.sha256(packed[0]).hexdigest()
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("b.txt", b"b")
        archive.writestr("a.txt", WORDS)
    with tarfile.open(fileobj=tarred, mode="w:gz") as archive:
        for name, data in (("a.txt", WORDS), ("b.txt", b"b")):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    both = {
        content_digest(write(tmp_path / "x.zip", zipped.getvalue())),
        content_digest(write(tmp_path / "x.tar.gz", tarred.getvalue())),
    }
    assert len(both) == 1


@pytest.mark.parametrize("layout", ["files", "below its name", "checkout"])
def test_files_are_taken_from_a_folder(layout: str, tmp_path: Path, folder: Path) -> None:
    names = {
        "files": ("plain.txt", "packed.txt.gz"),
        "below its name": ("small/plain.txt", "small/packed.txt"),
        "checkout": ("texts/plain.txt", "texts/packed.txt"),
    }[layout]
    for name in names:
        data = gzip.compress(WORDS) if name.endswith(".gz") else WORDS
        write(tmp_path / "mine" / name, data)
    assert fetched(small(), tmp_path / "mine") == [
        folder / "small/plain.txt",
        folder / "small/packed.txt.gz",
    ]
    assert gzip.decompress((folder / "small/packed.txt.gz").read_bytes()) == WORDS
    assert fetched(small(), tmp_path / "mine") == []  # they exist already
    assert not small().missing()
    write(folder / "small/plain.txt", b"torn")
    assert [file.path for file in small().changed()] == ["plain.txt"]
    assert fetched(small(), tmp_path / "mine") == [folder / "small/plain.txt"]


def test_a_folder_of_a_checkout_becomes_an_archive(tmp_path: Path, folder: Path) -> None:
    write(tmp_path / "mine/tasks/en/qa1.txt", WORDS)
    write(tmp_path / "mine/tasks/en/qa2.txt", b"b")
    for name, inside in (("en.tar.gz", "en/"), ("en.zip", "")):
        lines = sorted(
            f"{hashlib.sha256(data).hexdigest()}  {inside}{file}\n"
            for file, data in (("qa1.txt", WORDS), ("qa2.txt", b"b"))
        )
        lines.sort(key=lambda line: line.split()[1])
        checksum = hashlib.sha256("".join(lines).encode()).hexdigest()
        file = DataFile(path=name, size=9, sha256=checksum, upstream="tasks/en/")
        wanted = replace(small(), files=(file,))
        assert fetched(wanted, tmp_path / "mine") == [folder / "small" / name]
        assert content_digest(folder / "small" / name) == checksum


def test_a_wrong_checksum_names_the_file_and_both_checksums(tmp_path: Path, folder: Path) -> None:
    bad = write(tmp_path / "mine/plain.txt", b"other")
    with pytest.raises(DataError) as error:
        fetched(small(), tmp_path / "mine")
    for part in (str(bad), hashlib.sha256(b"other").hexdigest(), hashlib.sha256(WORDS).hexdigest()):
        assert part in str(error.value)
    assert not (folder / "small/plain.txt").exists()


def test_files_that_nothing_has_are_answered_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"2 of 2 files not found in .*: plain.txt, packed.txt.gz"):
        fetched(small(), tmp_path / "empty")
    with pytest.raises(DataError, match=r"Write them down\. Then: foveal data get small --from"):
        fetched(small(files_at=None, by_hand="Write them down."))


class Redirects(BaseHTTPRequestHandler):
    """Redirects every request to the address in the path."""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.path.removeprefix("/"))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base has it
        """Log nothing."""


class Quiet(SimpleHTTPRequestHandler):
    """Serves the files of a folder."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base has it
        """Log nothing."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a server with the two files."""
    write(tmp_path / "site/texts/plain.txt", WORDS)
    write(tmp_path / "site/texts/packed.txt", WORDS)
    yield from _serve(partial(Quiet, directory=str(tmp_path / "site")))


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The address of a server that redirects."""
    yield from _serve(Redirects)


def _serve(handler: type[BaseHTTPRequestHandler] | partial[Quiet]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_files_are_downloaded_checked_and_compressed(served: str, folder: Path) -> None:
    assert len(fetched(small(files_at=served))) == 2
    assert (folder / "small/plain.txt").read_bytes() == WORDS
    assert gzip.decompress((folder / "small/packed.txt.gz").read_bytes()) == WORDS
    assert [path.name for path in (folder / "small").iterdir() if "unfinished" in path.name] == []


def test_a_download_with_another_checksum_is_not_kept(
    served: str, tmp_path: Path, folder: Path
) -> None:
    write(tmp_path / "site/texts/plain.txt", b"other")
    with pytest.raises(DataError, match=f"{re.escape(served)}texts/plain.txt: the checksum"):
        fetched(small(files_at=served))
    assert not (folder / "small/plain.txt").exists()


def test_a_file_that_the_server_has_not_is_named(served: str) -> None:
    with pytest.raises(
        DataError, match=r"nowhere/texts/plain\.txt: download failed \(File not found"
    ):
        fetched(small(files_at=f"{served}nowhere/"))


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "http://example.org/x", "ftp://example.org/x"]
)
def test_only_https_and_this_machine_are_opened(address: str, elsewhere: str) -> None:
    with pytest.raises(DataError, match="expected an address that begins with https"):
        download(address)
    with pytest.raises(DataError, match=r"expected an address that begins with https|not allowed"):
        download(elsewhere + address)


def test_the_list_has_source_license_size_and_checksum(capsys: pytest.CaptureFixture[str]) -> None:
    main(["data"])
    said = capsys.readouterr().out
    for each in catalog().values():
        assert f"\n{each.name}: " in f"\n{said}"
        assert each.source in said
        assert each.sha256 in said
        assert f"foveal data get {each.name}" in said
    main(["data", "list", "scan"])
    said = capsys.readouterr().out
    assert all(file.sha256 in said for file in data_set("scan").files)


def test_the_command_takes_files_from_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["data", "get", "tinyshakespeare", "--from", str(tmp_path)])
    error = capsys.readouterr().err
    assert "1 of 1 files not found" in error
    assert "https://github.com/karpathy/char-rnn" in error
    main(["data", "samples", "names", "--out", str(tmp_path / "samples")])
    assert (tmp_path / "samples/names/train.tsv").is_file()


def test_every_file_that_results_were_made_from_is_in_the_catalog() -> None:
    known = {f"{each.name}/{file.path}" for each in catalog().values() for file in each.files}
    read = {
        name
        for path in (ROOT / "results").glob("*.json")
        for name in json.loads(path.read_text(encoding="utf-8")).get("data", ())
    }
    below = {name for name in read if name.partition("/")[0] in catalog()}
    assert len(below) > 100
    assert below <= known


def test_addresses_are_those_of_the_source() -> None:
    for each in catalog().values():
        if each.files_at is None:
            assert each.by_hand
            continue
        repository = each.source.removeprefix("https://github.com/")
        expected = f"https://raw.githubusercontent.com/{repository}/{each.revision}/"
        assert each.files_at == expected
        assert each.by_hand or all(file.upstream for file in each.files)
        assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in each.files)
