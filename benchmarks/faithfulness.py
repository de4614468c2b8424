"""Do the models of `python -m benchmarks.first_models` need what they attend to?

    python -m benchmarks.first_models --keep runs          the models, about two hours
    python -m benchmarks.faithfulness runs                 erase positions and measure the change

On the first hundred test examples of each kind of file, either the position with the highest attention
weight or another one is replaced by the unknown token; see docs/explain.md. Spreads are 95 % bootstrap
intervals over examples.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from examples.support import DATA
from foveal.bundles import load_bundle
from foveal.data import open_source
from foveal.inspection import faithfulness
from foveal.inspection.explaining._faithfulness import Faithfulness

from .first_models import CASES, Case
from .results import Results, Row, digest

OUT = Path("results/faithfulness.json")
NUM_EXAMPLES = 100


def measure(case: Case, run: Path) -> list[Row]:
    """Return the rows of one model."""
    with tempfile.TemporaryDirectory(prefix="faithfulness") as folder:
        test = case.files(Path(folder)).test
        source = open_source(test[0], test[1] if len(test) > 1 else None).source
        examples = list(islice(source, NUM_EXAMPLES))
    return _rows(case.title, faithfulness(load_bundle(run), examples))


def _rows(title: str, found: Faithfulness) -> list[Row]:
    figures = {
        "attended place erased, change of log p of the step's symbol": found.attended,
        "another place erased": found.random,
        "attended place erased, change of log p of the whole output": found.whole_attended,
        "another place erased, whole output": found.whole_random,
    }
    rows = [
        Row(name=f"{title}: {name}", value=value, unit="nats", spread=(low, high))
        for name, (value, low, high) in figures.items()
    ]
    value, low, high = (100 * part for part in found.share)
    name = "other places that matter less (chance: 50)"
    return [*rows, Row(name=f"{title}: {name}", value=value, unit="%", spread=(low, high))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every model in the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", type=Path, help="where first_models has left its runs")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    results = Results.here("python -m benchmarks.faithfulness runs")
    for name, case in CASES.items():
        if (given.runs / name).is_dir():
            rows = measure(case, given.runs / name)
            data = {**results.data, **{path: digest(DATA / path) for path in case.data}}
            results = replace(results.with_rows(rows), data=data)
            results.save(given.out)


if __name__ == "__main__":
    main()
