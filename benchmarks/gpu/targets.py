"""Compiles kernels for GPUs that this machine does not have, and reads registers and memory from the result.

The wheel of Triton contains LLVM, ptxas and cuobjdump; a compiler needs no device.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from .recording import Launch

_TOOLS = Path(triton.__path__[0]) / "backends" / "nvidia" / "bin"


@dataclass(frozen=True)
class Target:
    """A GPU: the limits are those of the smallest device of its generation."""

    gpu: GPUTarget
    most_shared: int  # bytes of a program

    @property
    def is_amd(self) -> bool:
        """Whether the target is a GPU of AMD."""
        return self.gpu.backend == "hip"


# Compute capabilities 8.6, 8.9 and 12.0 give a program 99 kB, 8.0 gives 163 kB and 9.0 gives 227 kB.
TARGETS = {
    "sm_80": Target(GPUTarget("cuda", 80, 32), 99 << 10),
    "sm_90": Target(GPUTarget("cuda", 90, 32), 99 << 10),
    "sm_120": Target(GPUTarget("cuda", 120, 32), 99 << 10),
    "gfx942": Target(GPUTarget("hip", "gfx942", 64), 64 << 10),
}
# With 128 registers for each thread, 512 threads fit on a multiprocessor.
MOST_REGISTERS = 128


class Resources(NamedTuple):
    """The resources of a compiled kernel."""

    registers: int  # of a thread
    spilled: int  # bytes of a thread
    shared: int  # bytes of a program


def compiled(launch: Launch, target: Target) -> Any:
    """Compile the kernel of a launch as Triton would on the target."""
    constants = dict(launch.constants)
    numbers = dict(launch.numbers)
    kinds = dict(launch.arguments)
    signature, attributes = {}, {}
    for place, parameter in enumerate(launch.kernel.params):
        name = parameter.name
        if name in constants:
            signature[name] = "constexpr"
        elif parameter.do_not_specialize:
            signature[name] = kinds[name]
        elif numbers.get(name) == 1:  # Triton compiles a separate kernel for 1
            signature[name], constants[name] = "constexpr", 1
        else:
            signature[name] = kinds[name]
            if name not in numbers or numbers[name] % 16 == 0:  # torch aligns its allocations
                attributes[(place,)] = [["tt.divisibility", 16]]
    source = ASTSource(launch.kernel, signature, constants, attributes)
    return triton.compile(source, target=target.gpu, options={"num_warps": launch.warps})


def cubin_tool(found: Any, *arguments: str) -> str:
    """Run cuobjdump on a kernel for NVIDIA and return its output."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(found.asm["cubin"])
        command = [str(_TOOLS / "cuobjdump"), *arguments, file.name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _number(text: str, pattern: str) -> int:
    match = re.search(pattern, text)
    assert match is not None, f"the compiler's output has no {pattern}"
    return int(match[1])


def resources(found: Any, target: Target) -> Resources:
    """Read registers, spills and shared memory from a compiled kernel."""
    if target.is_amd:
        text = found.asm["amdgcn"]
        spilled = _number(text, r"\.vgpr_spill_count:\s+(\d+)")
        spilled += _number(text, r"\.sgpr_spill_count:\s+(\d+)")
        return Resources(
            _number(text, r"\.vgpr_count:\s+(\d+)"), 4 * spilled, found.metadata.shared
        )
    text = cubin_tool(found, "-res-usage")
    stack, local = _number(text, r"\bSTACK:(\d+)"), _number(text, r"\bLOCAL:(\d+)")
    shared = max(_number(text, r"\bSHARED:(\d+)"), found.metadata.shared)
    return Resources(_number(text, r"\bREG:(\d+)"), stack + local, shared)
