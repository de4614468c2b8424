"""Cross-compile the wheel of the kernels for Linux on ARM64, run it under qemu, and compare the results with this CPU.

    dpkg --add-architecture arm64
    apt-get update
    apt-get install --no-install-recommends g++-aarch64-linux-gnu qemu-user
    python scripts/check_arm64.py

Needs Debian. Downloads Python 3.11 for ARM64 from Debian, and torch 2.10.0 with its dependencies from the package index
(200 MB), into .cache/arm64 of the checkout. torch 2.10.0 is the oldest version that the kernels support, and the last one with
a wheel for ARM64 that needs no CUDA. The wheel is left in .cache/arm64/wheels. The check takes three minutes on one core.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.native.answers import differing  # noqa: E402 - after the path

CACHE = ROOT / ".cache/arm64"
SYSTEM, SITE, WHEELS = CACHE / "system", CACHE / "site", CACHE / "wheels"
ANSWERS = ROOT / "tests/native/answers.py"
TORCH = "2.10.0"
# What torch and the core of Foveal import. pip would read the dependencies of torch for this CPU, which are gigabytes of CUDA.
NEEDED = (
    *("filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "sympy"),
    *("jaxtyping", "numpy", "safetensors", "typing-extensions", "wadler-lindig"),
)
PACKAGES = (
    *("libc6", "libcrypt1", "libgcc-s1", "libgomp1", "libstdc++6", "zlib1g"),
    *("libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libsqlite3-0", "libssl3", "libuuid1"),
    *("libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal"),
)


def run(*words: str | Path, folder: Path = ROOT, **variables: str) -> None:
    """Run a command, which must succeed."""
    subprocess.run(words, cwd=folder, env=os.environ | variables, check=True)


def install_python() -> None:
    """Unpack Debian's packages for ARM64 into a folder; nothing is installed."""
    if SYSTEM.exists():
        return
    packages = CACHE / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    run("apt-get", "download", "-qq", *(f"{name}:arm64" for name in PACKAGES), folder=packages)
    for package in sorted(packages.glob("*.deb")):
        run("dpkg", "--extract", package, SYSTEM)


def pip(*words: str | Path, folder: Path = ROOT, **variables: str) -> None:
    """Run pip of this environment."""
    options = ("--quiet", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", *words, *options, folder=folder, **variables)


def install_torch() -> None:
    """Install torch and the dependencies of the core for ARM64."""
    if SITE.exists():
        return
    platforms = (f"--platform={name}_aarch64" for name in ("manylinux_2_28", "manylinux2014"))
    chosen = ("--only-binary=:all:", "--python-version=3.11", *platforms)
    unfinished = SITE.with_name("site.unfinished")
    pip("install", "--no-deps", "--target", unfinished, *chosen, f"torch=={TORCH}", *NEEDED)
    unfinished.replace(SITE)


def build_wheel() -> Path:
    """Compile the kernels with the headers of the installed torch, and return the wheel."""
    link = f"aarch64-linux-gnu-g++ -shared -L{SITE / 'torch/lib'}"
    chosen = {
        "_PYTHON_HOST_PLATFORM": "linux-aarch64",
        "CC": "aarch64-linux-gnu-gcc",
        "CXX": "aarch64-linux-gnu-g++",
        "LDSHARED": link,
        "LDCXXSHARED": link,
    }
    source = CACHE / "native"  # not the checkout, whose build folder has objects for this CPU
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(
        ROOT / "native", source, ignore=shutil.ignore_patterns("build", "*.egg-info", "*.so")
    )
    words = ("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", WHEELS, ".")
    pip(*words, folder=source, **chosen)
    (wheel,) = WHEELS.glob("*_aarch64.whl")
    return wheel


def compared(wheel: Path) -> Iterator[str]:
    """Run the wheel, and yield a message for each result that PyTorch on this CPU does not give."""
    shutil.unpack_archive(wheel, SITE, "zip")
    expected, found = CACHE / "expected.pt", CACHE / "found.pt"
    path = os.pathsep.join((str(SITE), str(ROOT)))
    emulated = ("qemu-aarch64", "-L", SYSTEM, SYSTEM / "usr/bin/python3.11")
    run(sys.executable, ANSWERS, expected, FOVEAL_KERNELS="pure", PYTHONPATH=str(ROOT))
    run(*emulated, ANSWERS, found, FOVEAL_KERNELS="baseline", PYTHONPATH=path)
    answers = torch.load(expected)
    print(f"{len(answers):,} results of {wheel.name} with torch {TORCH}")
    yield from differing(torch.load(found), answers)


def main() -> None:
    """Build the wheel, and fail if a result differs."""
    install_python()
    install_torch()
    wheel = build_wheel()
    if differences := list(compared(wheel)):
        sys.exit("\n".join(differences))
    print("all results agree with those of this CPU")


if __name__ == "__main__":
    main()
