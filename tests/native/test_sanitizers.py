"""The kernels in a separate program, under the address and undefined-behavior sanitizers."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("foveal_native", reason="foveal-native is not installed")

NATIVE = Path(__file__).resolve().parents[2] / "native"
UNITS = ("scratch", "kernels_baseline", "kernels_avx2", "kernels_avx512")


@pytest.mark.timeout(900)
def test_the_kernels_pass_under_sanitizers(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    assert compiler is not None, "the sanitizer test needs g++, which also built the kernels"
    program = tmp_path / "kernels_test"
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    built = subprocess.run(
        [
            *(compiler, "-std=c++17", "-O0", "-g1", "-Wno-psabi", "-fno-strict-aliasing"),
            *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
            *(["-DFOVEAL_X86"] if is_x86 else []),
            *(
                f"-I{NATIVE / 'src'}",
                f"-I{NATIVE / 'tests'}",
                str(NATIVE / "tests/kernels_test.cpp"),
            ),
            *(str(NATIVE / "src" / f"{unit}.cpp") for unit in UNITS),
            *("-o", str(program)),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([program], capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith("passed\n")
