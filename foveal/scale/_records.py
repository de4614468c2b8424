"""Records of finished shards. A shard with a valid record is not computed again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Record:
    """The record of one shard, stored as `NAME.json` next to its answers and written last."""

    input: str
    input_key: str  # changes with the input file
    input_sha256: str
    output_sha256: str
    output_bytes: int
    rejects_sha256: str  # empty if there are none
    lines: int
    answered: int
    rejected: int
    asked: Mapping[str, Any]  # the version of the model, and the search settings

    def to_data(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Any) -> "Record | None":
        """Parse the result of `to_data`; None for any other data."""
        try:
            return cls(**data)
        except TypeError:
            return None
