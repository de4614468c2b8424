"""A bulk run: predicts many shards, and on restart only the missing ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..bundles import load_bundle
from ..bundles._manifest import seal_of
from ..errors import ValueRangeError
from ..planning._files import trial_examples
from ..serving import Predictor
from ..serving._engines import Chosen, Engine, choose_engine
from ..specs._files import specs_in
from ._answering import Way, answer_shard
from ._lines import are_whole
from ._records import Record
from ._storage import Shard, clear_unfinished, find_shards, is_whole, read_json, size_of, write_json

MANIFEST = "manifest.json"


class Done(NamedTuple):
    """The totals of a bulk run over all shards."""

    shards: int
    lines: int
    answered: int
    rejected: int


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """A bulk run: the inputs, the model and the output folder.

    Args:
        bundle: The folder of a model that `fit` saved.
        inputs: Files, URLs or patterns: one text on each line, or JSON objects (.jsonl).
        out: A folder or URL for the predictions.
        nbest: The number of candidates for each line.
        beam_size: The beam size; defaults to the model's setting.
        text: The name of the input field in JSON lines.
        max_symbols: The maximum number of tokens in a line; longer lines are rejected.
        specs: A Python file with the parts of the model that are not from foveal; each process runs it.
        engine: The engine of each process: torch, onnx, or auto. Engines round differently, like different machines, so
            predictions of another engine count as predictions of the same model.
        device: The device of each process: auto, cpu, cuda, cuda:N or mps. The same holds as for engines.
    """

    bundle: Path
    inputs: Sequence[str]
    out: str
    nbest: int = 1
    beam_size: int | None = None
    text: str = "source"
    max_symbols: int = 2000
    specs: Path | None = None
    engine: Engine = "auto"
    device: str = "cpu"

    def shards(self) -> list[Shard]:
        """Return the input files.

        Returns:
            One shard per file, sorted by path.

        Raises:
            DataError: A pattern matches no file, two results would have the same name, or the output folder contains an
                input.
        """
        return find_shards(
            self.inputs, out=self.out, is_reserved=lambda name: f"{name}.json" == MANIFEST
        )

    def clear_unfinished(self) -> None:
        """Delete the incomplete files of killed runs."""
        clear_unfinished(self.out)

    def missing(self, shards: Sequence[Shard]) -> list[Shard]:
        """Return the shards that this model has not yet predicted with these settings.

        Args:
            shards: Shards of this run.

        Returns:
            The shards to predict, in order.
        """
        records = zip(shards, self._records(shards, read=True), strict=True)
        return [shard for shard, record in records if record is None]

    def _records(self, shards: Sequence[Shard], *, read: bool) -> list[Record | None]:
        about = self.about  # reads the seal of the model: once for all shards
        return [self._record(shard, about, read=read) for shard in shards]

    def _record(self, shard: Shard, about: Mapping[str, Any], *, read: bool) -> Record | None:
        """Return the record of a finished shard, or None. With `read`, compare the checksums of its files and not only
        their sizes.
        """
        base = f"{self.out.rstrip('/')}/{shard.name}"
        record = Record.from_data(read_json(f"{base}.json"))
        if (
            record is None
            or record.input_key != shard.key
            or record.asked != about
            or size_of(f"{base}.parquet") != record.output_bytes
        ):
            return None
        if read and not (
            is_whole(f"{base}.parquet", record.output_bytes, record.output_sha256)
            and are_whole(base, record.rejects_sha256)
        ):
            return None
        return record

    @property
    def about(self) -> Mapping[str, Any]:
        """Return the model version and the settings, which determine the predictions."""
        return {
            "model": seal_of(self.bundle),
            "nbest": self.nbest,
            "beam_size": self.beam_size,
            "text": self.text,
            "max_symbols": self.max_symbols,
        }

    def answerer(
        self, explain: Callable[[Chosen], None] = lambda chosen: None
    ) -> Callable[[Shard, Callable[[int], None]], Record]:
        """Load the model and return a function that predicts one shard after the other in this process.

        Args:
            explain: Receives the engine.

        Returns:
            A function of a shard and a progress callback. It writes the predictions and returns their record.
        """
        also = specs_in(self.specs)
        task = load_bundle(self.bundle, also=also, device=self.device)
        chosen = choose_engine(task, self.engine, lambda: trial_examples(self.bundle, also))
        explain(chosen)
        predictor = Predictor(task, task.spec, chosen.answerer)
        settings = predictor.settings(nbest=self.nbest, beam_size=self.beam_size)
        way = Way(settings, self.text, self.max_symbols, self.about)
        return lambda shard, told: answer_shard(predictor, shard, way, self.out, told)

    def finish(self, shards: Sequence[Shard]) -> Done:
        """Write the manifest over all shards; none may be missing.

        Args:
            shards: All shards of this run.

        Returns:
            The totals over all shards.

        Raises:
            ValueRangeError: A shard has no predictions, or has changed since its prediction.
        """
        found = [record for record in self._records(shards, read=False) if record is not None]
        if len(found) < len(shards):
            raise ValueRangeError(
                f"bulk: {len(shards) - len(found)} of {len(shards)} shards changed or lost their "
                f"answers during the run. Run the command again; it computes only the missing shards."
            )
        totals = Done(
            len(shards),
            sum(record.lines for record in found),
            sum(record.answered for record in found),
            sum(record.rejected for record in found),
        )
        data = {
            **totals._asdict(),
            "asked": self.about,
            "files": {
                shard.name: record.to_data() for shard, record in zip(shards, found, strict=True)
            },
        }
        write_json(f"{self.out.rstrip('/')}/{MANIFEST}", data)
        return totals
