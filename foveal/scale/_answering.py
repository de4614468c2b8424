"""Prediction for one shard: a pure function of the shard, the model and the search settings.

    NAME.parquet          line, source, features, output, score, confidence[, nbest]
    NAME.rejects.jsonl    line, reason; only if lines were rejected
    NAME.json             counts and checksums, written last

A killed process leaves no valid output, and a second run writes the same bytes.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, final

import pyarrow as pa
from pyarrow import parquet

from ..errors import FovealError
from ..serving import Predictor
from ..tasks import Prediction, PredictionSpec
from ._lines import Asked, Rejected, Rejects, ShardReader, question_parser, rejecting
from ._records import Record
from ._storage import Shard, Writable, opened, write_json, written

_AT_ONCE = 4096  # lines: enough to fill batches of one length, few enough for any memory
_CANDIDATE = pa.struct([("output", pa.string()), ("score", pa.float64()), ("p", pa.float64())])


class Way(NamedTuple):
    """The search settings for all shards."""

    settings: PredictionSpec
    text: str  # name of the input field in JSON lines
    max_symbols: int
    about: Mapping[str, Any]  # the settings as data, with the version of the model


def answer_shard(
    predictor: Predictor, shard: Shard, way: Way, out: str, told: Callable[[int], None]
) -> Record:
    """Predict a shard into the folder `out`; `told` receives progress after every few lines."""
    schema = _schema(way.settings.nbest)
    base = f"{out.rstrip('/')}/{shard.name}"
    with (
        opened(shard.url) as handle,
        written(f"{base}.parquet") as file,
        rejecting(base) as rejects,
    ):
        parse = question_parser(shard.url, predictor, way.text)
        reader, counted = ShardReader(handle, shard.url, parse), _Counted(file)
        num_answered = 0
        with parquet.ParquetWriter(counted, schema, compression="zstd") as table:
            for some in _parts(iter(reader)):
                answered = _answered(predictor, some, way, rejects)
                if answered:
                    table.write_table(pa.Table.from_pylist(answered, schema=schema))
                num_answered += len(answered)
                told(len(some))
    record = Record(
        input=shard.url,
        input_key=shard.key,
        input_sha256=reader.sha256,
        output_sha256=counted.sha256.hexdigest(),
        output_bytes=counted.size,
        rejects_sha256=rejects.sha256,
        lines=reader.num_lines,
        answered=num_answered,
        rejected=rejects.number,
        asked=way.about,
    )
    write_json(f"{base}.json", record.to_data())
    return record


def _answered(
    predictor: Predictor, some: Sequence[Asked | Rejected], way: Way, rejects: Rejects
) -> list[dict[str, Any]]:
    """Return the table rows for these lines, and reject lines without a row."""
    asked, most = list[Asked](), way.max_symbols
    for one in some:
        if isinstance(one, Rejected):
            rejects.add(one)
        elif (size := predictor.size(one.example)) > most:
            rejects.add(Rejected(one.line, f"{size:,} tokens, expected at most {most:,}"))
        else:
            asked.append(one)
    rows = list[dict[str, Any]]()
    for one, prediction in _predicted(predictor, asked, way.settings):
        if isinstance(prediction, FovealError):
            rejects.add(Rejected(one.line, str(prediction)))
        else:
            rows.append(_row(one, prediction, way.settings.nbest))
    return rows


def _predicted(
    predictor: Predictor, asked: Sequence[Asked], settings: PredictionSpec
) -> list[tuple[Asked, Prediction | FovealError]]:
    """Return a prediction for each example, or the reason for its failure."""
    try:
        found = predictor.predict([one.example for one in asked], settings)
    except FovealError as error:
        if len(asked) == 1:
            return [(asked[0], error)]
        # One example is at fault: predicted one by one, the others succeed.
        return [pair for one in asked for pair in _predicted(predictor, [one], settings)]
    return list(zip(asked, found, strict=True))


def _row(asked: Asked, prediction: Prediction, nbest: int) -> dict[str, Any]:
    row = {
        "line": asked.line,
        "source": str(asked.example.source),
        "features": asked.example.features,
        "output": prediction.output,
        "score": prediction.score,
        "confidence": prediction.confidence,
    }
    if nbest > 1:
        row["nbest"] = [
            {"output": one.output, "score": one.score, "p": one.probability}
            for one in prediction.nbest
        ]
    return row


def _schema(nbest: int) -> pa.Schema:
    texts = ("source", "features", "output")
    fields = [("line", pa.int64()), *((name, pa.string()) for name in texts)]
    fields += [("score", pa.float64()), ("confidence", pa.float64())]
    if nbest > 1:
        fields.append(("nbest", pa.list_(_CANDIDATE)))
    return pa.schema(fields)


def _parts(lines: Iterator[Asked | Rejected]) -> Iterator[list[Asked | Rejected]]:
    while some := list(islice(lines, _AT_ONCE)):
        yield some


@final
class _Counted:
    """A file that computes its size and checksum while it is written."""

    closed = False  # an attribute that pyarrow requires

    def __init__(self, file: Writable) -> None:
        self._file, self.sha256, self.size = file, hashlib.sha256(), 0

    def write(self, content: bytes) -> int:
        """Write more bytes."""
        self.sha256.update(content)
        self.size += len(content)
        return self._file.write(content)

    def tell(self) -> int:
        """Return the size so far."""
        return self.size

    def flush(self) -> None:
        """Do nothing: this file has no buffer."""

    def close(self) -> None:
        """Do nothing: the caller closes the underlying file."""
