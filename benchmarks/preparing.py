"""How much time does a prepared corpus save, and how long does its preparation take?

    python -m benchmarks.preparing

The benchmark prepares a million made-up words with made-up phones in eight compressed files, and starts
`foveal fit` on the texts and on the prepared corpus. It measures the time to read an example in this process,
from texts and corpus in turn. All times are CPU time.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from foveal.data import open_source
from foveal.data.streams._prepared import PreparedCorpus
from foveal.planning._choices import load_plan
from foveal.tasks._prepared import build_for_corpus

from .large_corpus import Fit, write
from .results import Results, Row
from .timing import Plan, compare, use_one_thread

OUT = Path("results/scale_prepare.json")
LINES = 1_000_000
TOO_LONG = 1800.0  # seconds for one command


def prepared(files: str, out: Path) -> float:
    """Return the seconds that `foveal prepare` takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["prepare", files, "--out", str(out)]
    subprocess.run([sys.executable, "-m", "foveal.cli", *words], timeout=TOO_LONG, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_step(train: str, dev: Path, out: Path) -> float:
    """Return the seconds until `foveal fit` has made its first step."""
    with Fit(train, dev, out) as fit:
        return fit.wait_for(1).processor


def reading(text: Path, corpus: Path) -> Iterator[Row]:
    """Yield the time to read an example from a text and from a prepared corpus, measured in turn."""
    numbers = load_plan(corpus).run.train
    assert isinstance(numbers, PreparedCorpus)
    task, lines = build_for_corpus(load_plan(corpus).run.task, numbers), open_source(text).source
    examples = len(list(numbers.open(numbers.shards()[0])))

    def from_text() -> None:
        cursor = lines.open(lines.shards()[0])
        for _ in range(examples):
            task.encode(next(cursor))

    def from_numbers() -> None:
        for _ in numbers.open(numbers.shards()[0]):
            pass

    found = compare(
        {"text": from_text, "corpus": from_numbers}, reference="corpus", plan=Plan(rounds=15)
    )
    for name, timing in found.items():
        each = [1e6 * seconds / examples for seconds in timing.seconds]
        yield _row(f"reading an example, {name}", sorted(each)[len(each) // 2], "µs", each)
    yield _row("reading an example, text to corpus", found["text"].ratio, "x", found["text"].ratios)


def measured(folder: Path, say: Callable[[str], None]) -> Iterator[Row]:
    """Yield all figures."""
    files, text, dev = write(folder, LINES)
    corpus = folder / "corpus"
    seconds = prepared(files, corpus)
    say(f"prepared in {seconds:.1f} s of the processor")
    yield _row("prepared in a second, each core", LINES / seconds, "lines/s")
    size = sum(path.stat().st_size for path in corpus.glob("*.safetensors"))
    yield _row("bytes of an example", size / LINES, "B")
    yield from reading(text, corpus)
    for name, train in (("texts", files), ("corpus", str(corpus))):
        seconds = first_step(train, dev, folder / f"run-{name}")
        say(f"{name}: first step after {seconds:.1f} s of the processor")
        yield _row(f"fit on the {name}: processor time before the first step", seconds, "s")


def _row(name: str, value: float, unit: str, values: Sequence[float] = ()) -> Row:
    spread = (min(values), max(values)) if values else None
    return Row(name=name, value=value, unit=unit, spread=spread)


def main() -> None:
    """Measure, print and write all figures."""
    use_one_thread()
    say = Console(highlight=False).print
    with tempfile.TemporaryDirectory() as name:
        found = list(measured(Path(name), say))
    results = Results.here("python -m benchmarks.preparing").with_rows(found)
    results.save(OUT)
    for row in results.rows:
        say(f"{row.name}: {row.value:.3f} {row.unit} {row.spread or ''}")


if __name__ == "__main__":
    main()
