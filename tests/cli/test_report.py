"""`foveal report`, and the report that `foveal fit` writes at the end."""

from pathlib import Path

import pytest

from foveal.bundles import load_bundle
from tests.cli.test_commands import WORDS, Done, foveal, write
from tests.inspection.pages import check_page

pytestmark = pytest.mark.slow

FIT = (
    *("fit", "train.tsv", "--dev", "dev.tsv", "--set", "training.epochs=2"),
    *("--set", "encoder.hidden_size=8", "--set", "decoder.hidden_size=8"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "train.tsv", WORDS)
    write(tmp_path / "dev.tsv", WORDS[::7])
    return tmp_path


def test_fit_writes_a_report_which_can_be_written_again(folder: Path) -> None:
    done = foveal(*FIT, "--out", "run", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "run/report.html" in done.stdout
    page = folder / "run/report.html"
    check_page(page.read_text(encoding="utf-8"))
    page.unlink()
    assert foveal("report", "run", folder=folder) == Done(0, "run/report.html\n", "")
    assert "(dev)." in page.read_text(encoding="utf-8")
    done = foveal("report", "run", "train.tsv", "--out", "pages/run.html", folder=folder)
    assert done.stdout == "pages/run.html\n"
    assert "(given)." in (folder / "pages/run.html").read_text(encoding="utf-8")


def test_a_report_that_fails_does_not_lose_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(out: Path, *, is_quiet: bool, also: tuple[type, ...]) -> Path:
        raise RuntimeError(f"no room on the disk of {out}, {is_quiet}, {also}")

    monkeypatch.setattr("foveal.cli._fit.write_report", broken)
    done = foveal(*FIT, "--out", "run", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "could not write the report: no room on the disk" in done.stdout
    load_bundle(folder / "run")
