"""Build the C++ kernels with the address and undefined-behavior sanitizers, and call them with drawn arguments.

    python scripts/sanitize_kernels.py FOLDER --calls 10000

FOLDER receives a package `foveal_native`, which replaces the installed one in the processes
started here. The script changes nothing else. A second run compiles only units that are older than the
sources. Needs g++ and its libasan; takes minutes, most of them to compile. It repeats the calls of
`tests/native/fuzz_ops.py`, once for each instruction set that this processor has; the first report
of a sanitizer ends a run.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch.utils.cpp_extension import include_paths, library_paths

ROOT = Path(__file__).resolve().parents[1]
NATIVE = ROOT / "native"
WIDTHS = ("baseline", "avx2", "avx512")
SANITIZERS = ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
FLAGS = (
    *("-O1", "-g1", "-std=c++17", "-fPIC", "-fno-math-errno", "-fno-strict-aliasing", "-Wno-psabi"),
    "-DTORCH_TARGET_VERSION=0x020a000000000000",
    "-DPy_LIMITED_API=0x030A0000",
    *SANITIZERS,
)


def compile_unit(source: Path, target: Path) -> None:
    """One source file to an object file, unless that is newer than all sources."""
    newest = max(path.stat().st_mtime for path in (NATIVE / "src").iterdir())
    if target.exists() and target.stat().st_mtime > newest:
        return
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    includes = [NATIVE / "src", sysconfig.get_paths()["include"], *include_paths()]
    run(
        [
            *("g++", *FLAGS, *(["-DFOVEAL_X86"] if is_x86 else [])),
            *(f"-I{folder}" for folder in includes),
            *("-c", str(source), "-o", str(target)),
        ]
    )


def build(folder: Path) -> None:
    """The package `foveal_native` in `folder`, with sanitizers."""
    package, objects = folder / "foveal_native", folder / "objects"
    for made in (package, objects):
        made.mkdir(parents=True, exist_ok=True)
    for path in (NATIVE / "foveal_native").glob("*.py"):
        shutil.copy(path, package)
    sources = sorted((NATIVE / "src").glob("*.cpp"), key=lambda path: "kernels_" not in path.stem)
    targets = [objects / f"{path.stem}.o" for path in sources]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(compile_unit, sources, targets))
    library = str(package / "_kernels.abi3.so")
    torch_libraries = [f"-L{path}" for path in library_paths()]
    names = ("-ltorch", "-ltorch_cpu", "-lc10")
    run(
        ["g++", "-shared", *SANITIZERS, *map(str, targets), *torch_libraries, *names, "-o", library]
    )


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> None:
    """Run a program; its failure is ours."""
    done = subprocess.run(command, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"failed with status {done.returncode}: {' '.join(command[:3])} ...")


def fuzz(folder: Path, width: str, calls: int, seed: int) -> None:
    """Run random calls with one instruction set. Python itself is built without sanitizers, so the script preloads
    them and does not search for leaks, because the interpreter itself leaks.
    """
    # libasan catches exceptions by wrapping functions of libstdc++, which must be there before torch.
    libraries = [
        subprocess.run(
            ["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))),
        "FOVEAL_KERNELS": width,
    }
    driver = str(ROOT / "tests/native/fuzz_ops.py")
    run([sys.executable, driver, "--calls", str(calls), "--seed", str(seed)], environment)


def main() -> None:
    """Build, then call."""
    parser = argparse.ArgumentParser(description="Fuzz the kernels under sanitizers.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = options.folder.resolve()
    build(folder)
    flags = torch.backends.cpu.get_cpu_capability().lower()
    has = 3 if "avx512" in flags else 2 if "avx2" in flags else 1
    for width in WIDTHS[:has]:
        fuzz(folder, width, options.calls, options.seed)


if __name__ == "__main__":
    main()
