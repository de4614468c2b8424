"""What is known of a shard that has been answered: enough to know that it need not be answered again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Record:
    """One shard, as `NAME.json` beside its answers; it is written last."""

    input: str
    input_key: str  # another when the file has changed
    input_sha256: str
    output_sha256: str
    output_bytes: int
    rejects_sha256: str  # empty where there are none
    lines: int
    answered: int
    rejected: int
    asked: Mapping[str, Any]  # the version of the model, and how it was asked

    def to_data(self) -> dict[str, Any]:
        """As what JSON can hold."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Any) -> "Record | None":
        """What `to_data` wrote, None for anything else."""
        try:
            return cls(**data)
        except TypeError:
            return None
