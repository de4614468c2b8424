"""Corpus preparation: encodes every example as numbers, in parts that `fit` reads directly.

    text shards -> token counts of each -> vocabularies -> parts of each -> corpus.json

    counts/NAME.json         token counts of a shard
    NAME-00000.safetensors   its encoded examples, a few thousand in each part
    NAME.rejects.jsonl       line, reason; only if lines were rejected
    NAME.json                counts and checksums, after the parts
    corpus.json              the parts of all shards, and the vocabularies; written last

Each pass is a pure function of a shard, as in a bulk run: a killed process leaves no valid output, and a
restart computes the missing shards.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, NamedTuple

from ..data import Example, LineReader
from ..data.streams._packed import Packer
from ..data.streams._prepared import CORPUS, PART_SIZE, part_bytes
from ..data.vocabularies._tally import Symbols, Tally
from ..data.vocabularies._vocabularies import Vocabularies
from ..errors import DataError
from ..specs import to_json
from ..tasks import AbstractTask
from ..tasks._prepared import corpus_data
from ..tasks.base._text_spec import AbstractTextSpec
from ._line_format import LineSourceSpec
from ._lines import Asked, Rejected, ShardReader, are_whole, rejecting
from ._storage import (
    Shard,
    clear_unfinished,
    discard,
    find_shards,
    is_whole,
    opened,
    read_json,
    size_of,
    write_json,
    written,
)

_COUNTS = "counts"  # the folder of the token counts
_OWN = (CORPUS, "run.json", "choices.json")  # a corpus contains the run that it was prepared for
_SAMPLED = 20  # examples whose encoding is checked before training on a corpus


class Part(NamedTuple):
    """A file of encoded examples."""

    name: str
    examples: int
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ShardRecord:
    """The record of a prepared shard, stored as `NAME.json` and written last."""

    input: str
    input_key: str
    input_sha256: str
    asked: str
    lines: int
    rejected: int
    rejects_sha256: str
    parts: Sequence[Part]


class Corpus(NamedTuple):
    """The totals of a preparation over all shards."""

    shards: int
    parts: int
    examples: int
    rejected: int


@dataclass(frozen=True, kw_only=True)
class ShardExamples:
    """The examples of text files, on a disk or at a URL; lines without an example are skipped."""

    shards: Sequence[Shard]
    like: LineSourceSpec

    def __iter__(self) -> Iterator[Example]:
        for shard in self.shards:
            with opened(shard.url) as handle:
                for one in ShardReader(handle, shard.url, self.parse):
                    if isinstance(one, Asked):
                        yield one.example

    def parse(self, reader: LineReader) -> Example | None:
        """Parse a line to an example."""
        return next(self.like.examples([reader]), None)


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """A preparation: the shards, the task and the output folder.

    Args:
        spec: The spec of the task, with its subword tokenizer if it has one.
        like: The line format.
        shards: The text files.
        out: The output folder, which `fit` reads.
    """

    spec: AbstractTextSpec[Any]
    like: LineSourceSpec
    shards: Sequence[Shard]
    out: str

    def clear_unfinished(self) -> None:
        """Delete the incomplete files of killed runs."""
        clear_unfinished(self.out)

    def uncounted(self) -> list[Shard]:
        """Return the shards without token counts."""
        asked = self._asked()
        return [shard for shard in self.shards if self._tally(shard, asked) is None]

    def count(self, shard: Shard) -> int:
        """Count the tokens of a shard; returns the number of its examples."""
        tally = Tally.of(self._counted(shard))
        data = {"input_key": shard.key, "asked": self._asked(), "tally": tally.to_data()}
        write_json(self._counts(shard), data)
        return tally.num_examples

    def vocabularies(self) -> Vocabularies:
        """Build the vocabularies from the token counts of all shards."""
        asked, whole = self._asked(), Tally()
        for shard in self.shards:
            data = self._tally(shard, asked)
            if data is None:
                raise _changed(shard)
            whole.merge(Tally.from_data(data))
        if not whole.num_examples:
            raise DataError(
                f"{self.shards[0].url} and {len(self.shards) - 1} more: expected a text and a target "
                f"on each line, found no training example. Check the first line."
            )
        return self.spec.vocabularies(whole)

    def unwritten(self, known: Vocabularies) -> list[Shard]:
        """Return the shards whose parts are missing. While there are any, corpus.json does not exist."""
        asked = self._asked(known)
        missing = [s for s in self.shards if self._record(s, asked, read=True) is None]
        if missing:
            discard(self._place(CORPUS))  # it lists parts that will be replaced
        return missing

    def writer(self, known: Vocabularies) -> Callable[[Shard], int]:
        """Return a function that writes the parts of one shard after the other and returns their number of examples."""
        task: AbstractTask[Any] = self.spec.build(known)
        asked = self._asked(known)
        return lambda shard: self._write(shard, task, asked)

    def finish(self, known: Vocabularies) -> Corpus:
        """Write corpus.json over all shards; none may be missing."""
        asked, records = self._asked(known), list[ShardRecord]()
        for shard in self.shards:
            record = self._record(shard, asked, read=False)
            if record is None:
                raise _changed(shard)
            records.append(record)
        parts = [part for record in records for part in record.parts]
        totals = Corpus(
            len(self.shards),
            len(parts),
            sum(part.examples for part in parts),
            sum(record.rejected for record in records),
        )
        task: AbstractTask[Any] = self.spec.build(known)
        usable = (
            e for e in ShardExamples(shards=self.shards, like=self.like) if _is_usable(task, e)
        )
        sample = list(islice(usable, _SAMPLED))
        names = [part.name for part in parts]
        write_json(self._place(CORPUS), corpus_data(task, sample, names, totals.examples))
        return totals

    def _counted(self, shard: Shard) -> Iterator[Symbols]:
        """Count the tokens of the trainable examples of a shard."""
        for example in ShardExamples(shards=[shard], like=self.like):
            with suppress(DataError):  # the second pass adds it to the rejects
                yield self.spec.counted(example)

    def _write(self, shard: Shard, task: AbstractTask[Any], asked: str) -> int:
        examples = ShardExamples(shards=[shard], like=self.like)
        base, parts, packer = self._place(shard.name), list[Part](), Packer()
        with opened(shard.url) as handle, rejecting(base) as rejects:
            reader = ShardReader(handle, shard.url, examples.parse)
            for one in reader:
                if isinstance(one, Rejected):
                    rejects.add(one)
                    continue
                try:
                    packer.append(task.encode(one.example), one.line)
                except DataError as error:
                    rejects.add(Rejected(one.line, str(error)))
                if packer.size >= PART_SIZE:
                    parts.append(self._write_part(shard, len(parts), packer))
                    packer = Packer()
        if len(packer):
            parts.append(self._write_part(shard, len(parts), packer))
        record = ShardRecord(
            input=shard.url,
            input_key=shard.key,
            input_sha256=reader.sha256,
            asked=asked,
            lines=reader.num_lines,
            rejected=rejects.number,
            rejects_sha256=rejects.sha256,
            parts=parts,
        )
        write_json(f"{base}.json", asdict(record))
        return sum(part.examples for part in parts)

    def _write_part(self, shard: Shard, number: int, packer: Packer) -> Part:
        name = f"{shard.name}-{number:05}.safetensors"
        content = part_bytes(packer.packed())
        with written(self._place(name)) as file:
            file.write(content)
        return Part(name, len(packer), len(content), hashlib.sha256(content).hexdigest())

    def _tally(self, shard: Shard, asked: str) -> dict[str, Any] | None:
        data = read_json(self._counts(shard))
        is_valid = data and data["input_key"] == shard.key and data["asked"] == asked
        return data["tally"] if is_valid else None

    def _record(self, shard: Shard, asked: str, *, read: bool) -> ShardRecord | None:
        """Return the record of a finished shard, or None. With `read`, compare the checksums of its files and not only
        their sizes.
        """
        record = _record_from(read_json(self._place(f"{shard.name}.json")))
        if record is None or record.input_key != shard.key or record.asked != asked:
            return None
        if not read:
            whole = all(size_of(self._place(part.name)) == part.size for part in record.parts)
            return record if whole else None
        whole = all(is_whole(self._place(one.name), one.size, one.sha256) for one in record.parts)
        is_same = whole and are_whole(self._place(shard.name), record.rejects_sha256)
        return record if is_same else None

    def _counts(self, shard: Shard) -> str:
        return self._place(f"{_COUNTS}/{shard.name}.json")

    def _place(self, name: str) -> str:
        return f"{self.out.rstrip('/')}/{name}"

    def _asked(self, known: Vocabularies | None = None) -> str:
        """Return a digest of everything that determines the encoding of a shard or, in the first pass, its token
        counts.
        """
        like = to_json(self.like)
        texts = [to_json(self.spec), like, "" if known is None else repr(known.to_data())]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def corpus_shards(patterns: Sequence[str], out: str) -> list[Shard]:
    """Return the text files for a corpus in the folder `out`; see `find_shards`."""
    return find_shards(patterns, out=out, is_reserved=_is_own)


def _is_own(name: str) -> bool:
    """Return whether a shard of this name would overwrite a file of the corpus."""
    return f"{name}.json" in _OWN or name.startswith(f"{_COUNTS}/")


def _record_from(data: Any) -> ShardRecord | None:
    try:
        return ShardRecord(**{**data, "parts": [Part(*part) for part in data["parts"]]})
    except (TypeError, KeyError):
        return None


def _is_usable(task: AbstractTask[Any], example: Example) -> bool:
    try:
        task.encode(example)
    except DataError:
        return False
    return True


def _changed(shard: Shard) -> DataError:
    return DataError(
        f"{shard.url}: the file has changed, or its output is lost. Run the command again; it "
        f"computes only the missing files."
    )
