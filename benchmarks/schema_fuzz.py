"""Does the server conform to its OpenAPI schema, for valid and for invalid requests?

    python -m benchmarks.schema_fuzz                 5,000 requests, some minutes

schemathesis reads /openapi.json and generates valid and invalid requests for every operation: examples, boundary
values and random ones. Every answer must have a status, a type and a body of the schema, none may be a server
error, and the server must reject every request that violates the schema. The server may reject a request that
the schema allows, because the schema cannot express, for example, whether a model reads features.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .results import Results, Row
from .served import served
from .serving.models import USUAL, fitted

OUT = Path("results/serving_schema.json")
SEED = 1
_EXAMPLES = 800  # per operation
_LEAST = 5000  # requests
_SECONDS = 7200
_NOT_ASKED = ("positive_data_acceptance",)
# A random model name would almost never exist, and no model would be tested. Two of the 5xx are not errors:
# overload, and an expired deadline (of a millisecond, for example).
_CONFIGURATION = """
[parameters]
"path.name" = "{name}"

[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "503", "504"]
"""


@dataclass(frozen=True, kw_only=True)
class Fuzzed:
    """The results of a fuzzing run."""

    num_cases: int
    failures: Sequence[Any]
    said: str  # output of schemathesis
    log: str  # log of the server


def fuzzed(run: Path, *, examples: int, seed: int = SEED, seconds: float = _SECONDS) -> Fuzzed:
    """Serve a run, and send it valid and invalid requests."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served([run], Path(folder) / "log") as server,
    ):
        here = Path(folder)
        (here / "schemathesis.toml").write_text(_CONFIGURATION.format(name=run.name))
        words = ["run", f"{server.url}/openapi.json", "--no-color", "--checks", "all"]
        words += ["--exclude-checks", ",".join(_NOT_ASKED), "--continue-on-failure"]
        words += ["--max-examples", str(examples), "--seed", str(seed)]
        words += ["--generation-database", "none", "--report-json-path", str(here / "report.json")]
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", *words],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        said = done.stdout + done.stderr
        report = here / "report.json"
        content = json.loads(report.read_text()) if report.is_file() else None
        log = server.log.read_text()
    if content is None or not content["complete"]:
        raise RuntimeError(f"schemathesis did not come to an end: {said[-4000:]}")
    return Fuzzed(
        num_cases=content["test_cases"]["generated"],
        failures=[*content["failures"], *content["errors"]],
        said=said,
        log=log,
    )


def main() -> None:
    """Run the fuzzer and write the results."""
    parser = argparse.ArgumentParser(description="Ask a server whatever its schema allows.")
    parser.add_argument("--examples", type=int, default=_EXAMPLES, help="of each operation")
    parser.add_argument("--runs", type=Path, help="a folder of runs, fitted there if need be")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = fuzzed(fitted(options.runs or Path(folder))[USUAL], examples=options.examples)
    print(found.said)
    number, failures = found.num_cases, len(found.failures)
    rows = [
        Row(name="requests made of the schema", value=number, unit="", target=_LEAST, sense=">="),
        Row(name="answers not as the schema says", value=failures, unit="", target=0, sense="<="),
    ]
    command = f"python -m benchmarks.schema_fuzz --examples {options.examples}"
    result = Results.here(command, packages=("fastapi", "schemathesis"))
    replace(result.with_rows(rows), spec={"seed": SEED}).save(options.out)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
