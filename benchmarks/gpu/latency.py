"""The cycles of a loop, from the schedule that ptxas writes into the machine code.

Each instruction contains the cycles to the next one, the scoreboards that it sets when its operands are
read and when its result is available, and the scoreboards that it waits for. With a latency for each kind
of instruction without a fixed one, and the rate of each unit, the times of issue follow. The loop runs
until its period is steady.

Not included: caches, bank conflicts, instruction fetch, clocks below boost. The latencies are those that
Abdelkhalik et al. 2022 (A100) and Luo et al. 2024 (H100) measured, and of shuffles on Volta (Jia et al. 2018).
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

_FIXED = {"I2F": 14, "F2F": 17, "F2I": 14, "DADD": 8, "DMUL": 8, "DFMA": 8, "DSETP": 12, "BAR": 20}
_OF_ARITHMETIC = dict.fromkeys(
    [
        "FADD",
        "FMUL",
        "FFMA",
        "FMNMX",
        "FSETP",
        "FSEL",
        "SEL",
        "IADD3",
        "LOP3",
        "ISETP",
        "IMAD",
        "LEA",
        "SHF",
        "MOV",
        "SHFL",
        "LDS",
        "STS",
        "LDGSTS",
        "STG",
        "LDG",
    ],
    2.0,
)
_OF_SPECIAL = dict.fromkeys(["MUFU", "I2F", "F2F", "F2I"], 8.0)
_OF_DOUBLE = ["DADD", "DMUL", "DFMA", "DSETP"]
# Units that several kinds of instructions share.
_UNITS = (
    dict.fromkeys(["FADD", "FMUL", "FFMA", "IMAD"], "fma")
    | dict.fromkeys(_OF_DOUBLE, "double")
    | dict.fromkeys(_OF_SPECIAL, "special")
    | dict.fromkeys(["SHFL", "LDS", "STS", "LDSM", "LDGSTS", "LDG", "STG"], "memory")
)


@dataclass(frozen=True)
class Device:
    """A GPU: cycles until a result is available, and cycles for which a warp occupies a unit."""

    name: str
    target: str
    clock: float  # GHz
    multiprocessors: int
    bandwidth: float  # bytes per microsecond
    late: dict[str, int]
    busy: dict[str, float]


def _busy(double: float) -> dict[str, float]:
    return _OF_ARITHMETIC | _OF_SPECIAL | dict.fromkeys(_OF_DOUBLE, double)


A100 = Device(
    "A100", "sm_80", 1.41, 108, 1.555e6,
    _FIXED | {"LDS": 23, "LDSM": 29, "STS": 19, "SHFL": 23, "MUFU": 18, "LDG": 290, "STG": 20, "LDGSTS": 20},
    _busy(4.0),
)  # fmt: skip
H100 = Device(
    "H100", "sm_90", 1.755, 132, 3.35e6,
    _FIXED | {"LDS": 29, "LDSM": 33, "STS": 20, "SHFL": 24, "MUFU": 18, "LDG": 480, "STG": 20, "LDGSTS": 20},
    _busy(2.0),
)  # fmt: skip
DEVICES = (A100, H100)


@dataclass(frozen=True)
class Instruction:
    """One instruction and its schedule."""

    at: int
    text: str
    stall: int
    sets: int  # the scoreboard that is set when the result is available; 7: none
    frees: int  # the scoreboard that is set when the operands are read; 7: none
    waits: int  # mask of scoreboards

    @property
    def name(self) -> str:
        """The kind of instruction."""
        return re.sub(r"^@!?U?P\w+\s+", "", self.text).split()[0].split(".")[0]


def instructions(code: str) -> list[Instruction]:
    """Parse the output of cuobjdump -sass; the second word of each instruction has the schedule."""
    pattern = r"/\*([0-9a-f]{4,})\*/\s+(.*?);\s+/\* 0x[0-9a-f]{16} \*/\s+/\* 0x([0-9a-f]{16}) \*/"
    found = []
    for at, text, high in re.findall(pattern, code):
        word = int(high, 16)
        schedule = (word >> 41 & 15, word >> 46 & 7, word >> 49 & 7, word >> 52 & 63)
        found.append(Instruction(int(at, 16), text.strip(), *schedule))
    return found


def longest_loop(code: list[Instruction]) -> list[Instruction]:
    """Return the body of the longest loop, empty if there is none."""
    found: list[Instruction] = []
    for one in code:
        target = re.search(r"\bBRA\S*\s+(?:\S+,\s*)*`?\(?0x([0-9a-f]+)", one.text)
        if target and int(target[1], 16) < one.at:
            body = [i for i in code if int(target[1], 16) <= i.at <= one.at]
            found = max(found, body, key=len)
    return found


class Loop(NamedTuple):
    """A loop on a device."""

    num_instructions: int
    cycles: float  # of one round for one warp on a scheduler


class _Clock:
    """The state of a scheduler that issues the instructions of one warp."""

    def __init__(self, device: Device, crowd: int) -> None:
        self.device, self.crowd = device, crowd
        self.now, self.ready = 0.0, [0.0] * 6
        self.units: dict[str, float] = {}
        self.groups: list[float] = []  # when each group of asynchronous copies is complete
        self.open_group = 0.0

    def issue(self, one: Instruction) -> None:
        """Advance over one instruction."""
        name, device = one.name, self.device
        if one.text.startswith(("@!PT", "@!UPT")):
            self.now += max(1, one.stall)
            return
        self.now = max([self.now, *(self.ready[i] for i in range(6) if one.waits >> i & 1)])
        unit = _UNITS.get(name, "alu" if name in device.busy else None)
        if unit:
            self.now = max(self.now, self.units.get(unit, 0.0))
            self.units[unit] = self.now + device.busy.get(name, 1) * self.crowd
        if name == "LDGSTS":
            self.open_group = max(self.open_group, self.now + device.late["LDG"])
        elif name == "LDGDEPBAR":
            self.groups.append(self.open_group)
        elif name == "DEPBAR" and (pending := re.search(r"SB0, 0x([0-9a-f]+)", one.text)):
            self.now = max([self.now, *self.groups[: len(self.groups) - int(pending[1], 16)]])
        elif name == "BAR":
            self.now += device.late["BAR"]
        if one.sets < 6:
            late = self.now + device.late.get(name, 6)
            self.ready[one.sets] = max(self.ready[one.sets], late)
        if one.frees < 6:
            self.ready[one.frees] = max(self.ready[one.frees], self.now + 12)
        self.now += max(1, one.stall, self.crowd)


def measure(body: list[Instruction], device: Device, crowd: int = 1, rounds: int = 12) -> Loop:
    """Compute the period of a loop.

    Args:
        body: The instructions of one round.
        device: The GPU.
        crowd: The number of warps of a program that share a scheduler.
        rounds: The number of rounds; the second half counts.
    """
    clock, starts = _Clock(device, crowd), []
    for _ in range(rounds):
        starts.append(clock.now)
        for one in body:
            clock.issue(one)
    half = rounds // 2
    return Loop(len(body), (starts[-1] - starts[half]) / (rounds - 1 - half))
