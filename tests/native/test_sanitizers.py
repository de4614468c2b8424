"""The kernels in a separate program, under the address and undefined-behavior sanitizers."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("foveal_native", reason="foveal-native is not installed")

NATIVE = Path(__file__).resolve().parents[2] / "native"
UNITS = (
    "scratch",
    *(
        f"{part}_{width}"
        for part in ("kernels", "search")
        for width in ("baseline", "avx2", "avx512")
    ),
    "search_tiles",
)
COMMON = ("-std=c++17", "-g1", "-Wno-psabi", "-fno-strict-aliasing")
FOLDERS = (f"-I{NATIVE / 'src'}", f"-I{NATIVE / 'tests'}")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def build(*words: str) -> None:
    compiler = shutil.which("g++")
    assert compiler is not None, "the sanitizer test needs g++, which also built the kernels"
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    built = subprocess.run(
        [compiler, *COMMON, *(["-DFOVEAL_X86"] if is_x86 else []), *FOLDERS, *words],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert built.returncode == 0, built.stderr


@pytest.mark.timeout(900)
def test_the_kernels_pass_under_sanitizers(tmp_path: Path) -> None:
    """The program that enumerates is optimized and not instrumented, only the kernels are."""
    program, enumeration = tmp_path / "kernels_test", tmp_path / "kernels_test.o"
    build("-O1", "-c", str(NATIVE / "tests/kernels_test.cpp"), "-o", str(enumeration))
    kernels = [str(NATIVE / "src" / f"{unit}.cpp") for unit in UNITS]
    build("-O0", *SANITIZERS, str(enumeration), *kernels, "-o", str(program))
    ran = subprocess.run([program], capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith("passed\n")
