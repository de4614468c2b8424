"""Build the kernels: one extension on Python's limited API and torch's stable ABI."""

import os
import platform
from pathlib import Path

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

SOURCES = (
    "module",
    "dispatch",
    "scratch",
    "chain_ops",
    "projective_ops",
    "k_subset_ops",
    "span_ops",
    "semi_markov_ops",
    "alignment_ops",
    "ctc_ops",
    "spanning_ops",
    "search_ops",
    "search_tiles",
    "search_baseline",
    "search_avx2",
    "search_avx512",
    "kernels_baseline",
    "kernels_avx2",
    "kernels_avx512",
)
# Cross-compilation sets the variable, as for the platform in the name of the wheel.
MACHINE = os.environ.get("_PYTHON_HOST_PLATFORM", platform.machine()).lower()
X86 = MACHINE.endswith(("x86_64", "amd64"))
# Messages of failed checks contain names of source files. Without their folders, every build has the same bytes.
FOLDERS = (str(Path(__file__).resolve().parent), *include_paths())

setup(
    ext_modules=[
        CppExtension(
            "foveal_native._kernels",
            [f"src/{name}.cpp" for name in SOURCES],
            include_dirs=["src"],
            extra_compile_args=[
                "-O3",
                "-g0",
                "-std=c++17",
                "-fno-math-errno",  # no fast-math: the kernels rely on -inf
                "-fno-strict-aliasing",  # lanes are read as arrays of numbers
                "-Wno-psabi",  # wide registers never cross a library's border
                "-fvisibility=hidden",
                *(f"-ffile-prefix-map={folder}=." for folder in FOLDERS),
                "-DTORCH_TARGET_VERSION=0x020a000000000000",  # loads on torch 2.10 and later
                *(["-DFOVEAL_X86"] if X86 else []),
            ],
            py_limited_api=True,
        )
    ],
    cmdclass={"build_ext": BuildExtension},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
