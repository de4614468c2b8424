"""The results format: measured figures, software versions, machine and targets.

    {made_by, date, versions, machine, rows: [{name, value, unit, spread, seeds, target, sense}]}

and, if a model was trained, `data` (the sha256 of each file) and `spec` (the settings of the run). A
published figure has two more fields: `kind` and `source`.
Every benchmark and every recipe writes one such file into `results/`; the tables of the docs and
`python -m benchmarks.shortfalls` read them. A NaN (for example from a peer) is `null` in the file, since
JSON has no NaN, and misses every target.
"""

import hashlib
import json
import math
import os
import platform
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args

import torch

from foveal.datasets._folder import advice
from foveal.errors import DataError

Sense: TypeAlias = Literal["<=", ">="]
# The kinds of published figures: the baseline or the best system of a shared task, a figure from a paper, from a
# tutorial, or from an example run in a repository.
Kind: TypeAlias = Literal["baseline", "best system", "paper", "tutorial", "example"]


class ResultsError(ValueError):
    """A results file or a row does not match the format."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One figure.

    `spread` is the lowest and the highest value over rounds or seeds. `target` and `sense` are set
    together: `value sense target` should be true. `kind` and `source` are set together, for a published
    figure.
    """

    name: str
    value: float
    unit: str
    spread: tuple[float, float] | None = None
    seeds: tuple[int, ...] = ()
    target: float | None = None
    sense: Sense | None = None
    kind: Kind | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        self._check_together("kind", "source")
        self._check_together("target", "sense")
        self._check_choice("kind", get_args(Kind))
        self._check_choice("sense", get_args(Sense))

    def _check_together(self, first: str, second: str) -> None:
        values = getattr(self, first), getattr(self, second)
        if (values[0] is None) != (values[1] is None):
            raise ResultsError(
                f"Row {self.name!r}: {first} and {second} must be given together, "
                f"got {first}={values[0]!r} and {second}={values[1]!r}."
            )

    def _check_choice(self, field: str, choices: tuple[str, ...]) -> None:
        value = getattr(self, field)
        if value is not None and value not in choices:
            raise ResultsError(
                f"Row {self.name!r}: {field} must be one of {', '.join(choices)}, got {value!r}."
            )

    @property
    def misses(self) -> bool:
        """Return whether a target was set and the value misses it."""
        if self.target is None:
            return False
        met = self.value <= self.target if self.sense == "<=" else self.value >= self.target
        return not met  # every comparison with NaN is false, so NaN misses


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The kind of machine that the figures were measured on."""

    cpu: str
    cores: int
    threads: int
    device: str = "cpu"  # where the models computed: cpu, or the name of a GPU

    @classmethod
    def here(cls, device: torch.device | None = None) -> Self:
        """Describe this machine, with the number of threads torch uses now. Models computed on this device, by default
        the CPU.
        """
        name = str(device or "cpu")
        if device is not None and device.type == "cuda":
            name = torch.cuda.get_device_name(device)
        return cls(
            cpu=_cpu_model(),
            cores=os.cpu_count() or 1,
            threads=torch.get_num_threads(),
            device=name,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """The figures of one benchmark or recipe, and the circumstances they share.

    `data` has the sha256 of every input file, by its path below the data folder; `spec` has the settings
    of the run. Empty fields are left out of the file.
    """

    made_by: str
    date: str
    versions: Mapping[str, str]
    machine: Machine
    rows: tuple[Row, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def here(
        cls, made_by: str, *, packages: Sequence[str] = (), device: torch.device | None = None
    ) -> Self:
        """Return an empty result with today's date, this machine, and the installed versions.

        Args:
            made_by: the command that writes the figures, as you would type it.
            packages: distributions measured besides foveal and torch.
            device: where the models computed; by default the CPU.
        """
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        versions |= {name: _version(name) for name in ("foveal", *packages)}
        return cls(
            made_by=made_by,
            date=datetime.now(UTC).date().isoformat(),
            versions=versions,
            machine=Machine.here(device),
        )

    def missed(self) -> tuple[Row, ...]:
        """Return the rows that miss their targets."""
        return tuple(row for row in self.rows if row.misses)

    def with_rows(self, rows: Iterable[Row]) -> Self:
        """Return the same result with `rows` added.

        A row replaces the row of the same name at the same position; a new name goes to the end; all
        other rows are kept. A benchmark that measures only some of its cells updates these and keeps
        the rest.
        """
        merged = {row.name: row for row in self.rows} | {row.name: row for row in rows}
        return replace(self, rows=tuple(merged.values()))

    def with_references(
        self, aims: Mapping[str, tuple[float, Sense]], published: Iterable[Row]
    ) -> Self:
        """Return the measured rows with other targets, followed by published figures. Measured values do not change.

        Args:
            aims: the target of each row that has one, by its name.
            published: rows with a kind and a source; they replace the earlier ones.
        """
        measured = (row for row in self.rows if row.kind is None)
        rows = (
            replace(row, target=aim, sense=sense)
            for row in measured
            for aim, sense in [aims.get(row.name, (None, None))]
        )
        return replace(self, rows=(*rows, *published))

    def continued_from(self, path: Path, *, any_machine: bool = False) -> Self:
        """Return this result with the rows of an earlier run at `path`, if there is one.

        All rows of a file share one header. An earlier file may lack a package or have an
        earlier date. If it has another version or another machine, its rows cannot be kept; the
        error comes before an hour of measuring, not after.

        Args:
            path: the file.
            any_machine: keep rows from other machines, for scores of models, which are not times; the header then
                names the machine of the latest rows.
        """
        if not path.exists():
            return self
        earlier = type(self).load(path)
        differing = [
            f"{name} {earlier.versions[name]} -> {version}"
            for name, version in self.versions.items()
            if earlier.versions.get(name, version) != version
        ]
        if earlier.machine != self.machine and not any_machine:
            differing.append(f"{earlier.machine} -> {self.machine}")
        if differing:
            raise ResultsError(
                f"{path} was measured under other circumstances ({'; '.join(differing)}), so its "
                f"rows cannot be mixed with new ones. Start over (--fresh), or write elsewhere "
                f"(--out, --results)."
            )
        return self.with_rows(earlier.rows)

    def to_json(self) -> str:
        """Return the text of the file."""
        content = asdict(self)
        for name in ("data", "spec"):
            if not content[name]:
                del content[name]
        for row in content["rows"]:
            if row["kind"] is None:
                del row["kind"], row["source"]
            row["value"] = _none_for_nan(row["value"])
            row["spread"] = row["spread"] and [_none_for_nan(end) for end in row["spread"]]
        return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a result written by `to_json`."""
        content = _known_fields(cls, {"data": {}, "spec": {}} | json.loads(text))
        # Older files do not name the device: it was the CPU.
        machine = {"device": "cpu"} | content["machine"]
        content["machine"] = Machine(**_known_fields(Machine, machine))
        content["rows"] = tuple(_row(row) for row in content["rows"])
        return cls(**content)

    def save(self, path: Path) -> None:
        """Write the file atomically: a reader sees the old text or the new text, never a part."""
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(self.to_json())
            temporary.chmod(0o644)  # mkstemp makes a private file; results are public
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file written by `save`."""
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, KeyError, TypeError, ResultsError) as error:
            raise ResultsError(f"{path} is not a results file: {error}") from error


def digest(path: Path) -> str:
    """Return the sha256 of a file, for `Results.data`."""
    command = None if path.exists() else advice(path)
    if command is not None:
        raise DataError(f"data not found at {path}. {command}")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digests(paths: Iterable[Path], folder: Path) -> dict[str, str]:
    """Return the sha256 of each file by its path below the data folder, for `Results.data`."""
    return {str(path.relative_to(folder)): digest(path) for path in paths}


def folder_digests(folders: Iterable[Path], pattern: str, root: Path) -> dict[str, str]:
    """Return one sha256 for each folder: of the lines `sha256  name` of its files that match, sorted by name."""
    found = dict[str, str]()
    for folder in folders:
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob(pattern))
        lines = "".join(f"{digest(folder / name)}  {name}\n" for name in names)
        name = f"{folder.relative_to(root)}/**/{pattern}"
        found[name] = hashlib.sha256(lines.encode()).hexdigest()
    return found


def _row(content: Any) -> Row:
    if isinstance(content, dict):
        content = {"kind": None, "source": None} | content
    content = _known_fields(Row, content)
    spread = content["spread"]
    return Row(
        **content
        | {
            "value": _nan_for_none(content["value"]),
            "spread": spread and (_nan_for_none(spread[0]), _nan_for_none(spread[1])),
            "seeds": tuple(content["seeds"]),
        }
    )


def _known_fields(kind: type, content: Any) -> dict[str, Any]:
    names = [field.name for field in fields(kind)]
    if not isinstance(content, dict) or set(content) != set(names):
        found = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise ResultsError(f"{kind.__name__}: expected the fields {names}, got {found}.")
    return content


def _none_for_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def _nan_for_none(value: float | None) -> float:
    return math.nan if value is None else value


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError as error:
        raise ResultsError(
            f"{package} is not installed, so its version cannot be recorded. In the checkout run: "
            f"pip install -c constraints.txt -e '.[serve]' --group dev --group peers"
        ) from error


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
