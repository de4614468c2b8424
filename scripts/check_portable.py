"""Check the kernels for any CPU with other compilers and another CPU: clang++, and g++ for ARM64 under qemu.

    python scripts/check_portable.py

Builds native/tests/kernels_test.cpp, which compares every kernel with enumeration and needs no torch, and runs it.
Debian has the programs in the packages clang, g++-aarch64-linux-gnu and qemu-user. A missing program is reported, and fails
only with --all.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

NATIVE = Path(__file__).resolve().parent.parent / "native"
# The units of x86 CPUs are empty here.
UNITS = (
    "scratch",
    *(
        f"{part}_{width}"
        for part in ("kernels", "search")
        for width in ("baseline", "avx2", "avx512")
    ),
    "search_tiles",
)
FLAGS = ("-std=c++17", "-O2", "-fno-math-errno", "-fno-strict-aliasing", "-Wno-psabi")
# The name, the compiler with its own flags, and the program that runs the result.
TARGETS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "clang, this CPU": (("clang++",), ()),
    "g++, ARM64 under qemu": (("aarch64-linux-gnu-g++", "-static"), ("qemu-aarch64",)),
}


def check(compiler: Sequence[str], runner: Sequence[str], folder: Path) -> str:
    """Build and run the test program, which must pass. Returns its output."""
    program = folder / "kernels_test"
    sources = [NATIVE / "tests/kernels_test.cpp", *(NATIVE / f"src/{name}.cpp" for name in UNITS)]
    includes = [f"-I{NATIVE / name}" for name in ("src", "tests")]
    words = [*compiler, *FLAGS, *includes, *map(str, sources), "-o", str(program)]
    subprocess.run(words, check=True)
    words = [*runner, str(program)]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Check all targets whose programs are installed."""
    parser = argparse.ArgumentParser(description="Check the kernels with other compilers.")
    parser.add_argument("--all", action="store_true", help="fail if a program is missing")
    needs_all = parser.parse_args().all
    for name, (compiler, runner) in TARGETS.items():
        missing = [one for one in (compiler[0], *runner) if shutil.which(one) is None]
        if missing:
            print(f"{name}: not checked, because {' and '.join(missing)} is not installed")
            if needs_all:
                sys.exit(1)
            continue
        begin = time.monotonic()
        with TemporaryDirectory() as folder:
            kernels, verdict = check(compiler, runner, Path(folder)).split()
        print(f"{name}: {kernels} kernels {verdict} ({time.monotonic() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
