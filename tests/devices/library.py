"""Load the guards of the pretended device; this module must run before torch is imported."""

import ctypes
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("pretend.cpp")


def install() -> None:
    """Compile the guards, unless that was done before, and load them."""
    assert "torch" not in sys.modules, "the guards must be loaded before torch is imported"
    found = importlib.util.find_spec("torch")
    assert found is not None
    assert found.origin is not None
    root = Path(found.origin).parent
    key = hashlib.sha256(SOURCE.read_bytes() + str(root).encode()).hexdigest()[:16]
    built = Path(tempfile.gettempdir()) / f"foveal_pretend_{key}.so"
    if not built.exists():
        _compile(root, built)
    for library in (root / "lib" / "libc10.so", root / "lib" / "libtorch_cpu.so", built):
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def _compile(root: Path, built: Path) -> None:
    unfinished = built.with_suffix(f".{os.getpid()}.so")
    subprocess.run(
        [
            *("c++", "-std=c++20", "-shared", "-fPIC"),
            *(f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include"),
            *(str(SOURCE), "-o", str(unfinished), f"-L{root}/lib", "-lc10", "-ltorch_cpu"),
        ],
        check=True,
    )
    unfinished.rename(built)
