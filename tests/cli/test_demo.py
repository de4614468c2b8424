"""`foveal demo` from the installed wheel, in a new environment without a network."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from foveal.attention import AttentionTrace
from foveal.cli._demo import heat_map
from foveal.datasets._samples import NAMES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 280


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run("-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    (path,) = folder.glob("foveal-*.whl")
    return path


def run(*words: object) -> None:
    subprocess.run([sys.executable, *map(str, words)], check=True)


def installed(wheel: Path, folder: Path) -> Path:
    """The programs of a new environment with the wheel and the other packages of this environment."""
    run("-m", "venv", "--without-pip", folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    python = folder / "bin/python"
    words = ("install", "-qq", "--no-deps", "--no-index", "--force-reinstall")
    run("-m", "pip", "--python", python, *words, wheel)
    return folder / "bin"


def without_network() -> list[str]:
    """Return a command prefix that disables the network, or nothing if that is not allowed."""
    words = ["unshare", "--map-root-user", "--net"]
    try:
        return words if subprocess.run([*words, "true"], check=False).returncode == 0 else []
    except FileNotFoundError:
        return []


def test_the_demo_runs_from_the_wheel_without_a_network(wheel: Path, tmp_path: Path) -> None:
    programs = installed(wheel, tmp_path / "environment")
    closed = "http://127.0.0.1:9"  # a closed port
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "OMP_NUM_THREADS": "1",
        "http_proxy": closed,
        "https_proxy": closed,
    }
    words = (str(programs / "foveal"), "demo", "--minutes", "0.1")
    done = subprocess.run(
        [*without_network(), *words],
        cwd=tmp_path,
        env=environment,
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "foveal-demo/model/report.html").stat().st_size > 10_000
    assert "foveal explore foveal-demo/model" in done.stdout
    assert done.stdout.count("⟨end⟩") == 3  # the last row of each of three heat maps
    where = subprocess.run(
        [programs / "python", "-c", "import foveal; print(foveal.__file__)"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(str(tmp_path / "environment"))


def test_the_wheel_has_the_samples_their_licenses_and_the_catalog(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        size = sum(info.file_size for info in archive.infolist() if "/samples/" in info.filename)
    folders = {name.split("/")[3] for name in names if name.startswith("foveal/datasets/samples/")}
    assert folders == {*NAMES, "README.md"}
    assert "foveal/datasets/catalog.json" in names
    assert sum(name.endswith("LICENSE") and "licenses/" in name for name in names) == 4
    assert size < 2_000_000


def test_a_heat_map_has_a_shade_for_each_weight() -> None:
    weights = ((1.0, 0.0, 0.0), (0.05, 0.25, 0.7))
    trace = AttentionTrace(
        kind="softmax", sources=("p", "h", "i"), targets=("F", "AY"), weights=weights
    )
    assert heat_map(trace) == ("          p h i\n        F █\n       AY   ░ ▓\n")
