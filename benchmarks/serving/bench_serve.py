"""Measure the throughput and latency of a server on this machine.

    python -m benchmarks.serving.bench_serve http://127.0.0.1:8000 --seconds 30

The load generator runs on this machine too and uses some of its CPU time: on a busy machine the figures are low.
"""

import asyncio
import json
import random
import string
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from foveal.data import LineReader
from foveal.errors import ValueRangeError

from .load import BROKEN, OK, REJECTED, Load, Request, closed_loop
from .loopback import Connection, Loopback, loopback

MOST_SECONDS, MOST_CONCURRENCY, MOST_REQUESTS = 600.0, 256, 1_000_000
_MOST_INPUTS = 10_000  # lines of a file
_LONGEST = 24  # letters of an input that is made up


def command(
    url: Positional[str],
    /,
    *,
    seconds: float = 30.0,
    concurrency: int = 32,
    model: str | None = None,
    inputs: Path | None = None,
    nbest: int = 1,
    attention: bool = False,
    token_file: Annotated[Path | None, arg(name="token-file")] = None,
    seed: int = 0,
) -> None:
    """Put a server on this machine under full load, and print the results.

    Args:
        url: of the server, such as http://127.0.0.1:8000; only this machine's.
        seconds: how long, at most 600.
        concurrency: how many ask at once, at most 256; each waits for its answer before it asks again.
        model: which to ask. By default all, in turn.
        inputs: a file with texts, one on each line. By default random letters, 1 to 24 of them.
        nbest: answers for each text.
        attention: ask where the model looked, too.
        token_file: a file whose first line is the token to show.
        seed: of the order of the texts.
    """
    address = loopback(url)
    _check("seconds", seconds, MOST_SECONDS)
    _check("concurrency", float(concurrency), float(MOST_CONCURRENCY))
    token = None if token_file is None else token_file.read_text(encoding="utf-8").split("\n")[0]
    texts = made_up(seed) if inputs is None else _read(inputs)
    models = asyncio.run(_models(address, token))
    if model is not None and model not in models:
        raise ValueRangeError(
            f"bench-serve: the server has no model {model!r}. It has: {', '.join(models)}."
        )
    asked = requests(
        models if model is None else [model], texts, seed=seed, nbest=nbest, attention=attention
    )
    load = asyncio.run(
        closed_loop(
            *(address, asked),
            concurrency=concurrency,
            seconds=seconds,
            most=MOST_REQUESTS,
            token=token,
        )
    )
    Console(file=sys.stdout, highlight=False).print(table(load))


async def _models(address: Loopback, token: str | None) -> list[str]:
    try:
        async with Connection(address, token=token) as connection:
            reply = await connection.ask("GET", "/v1/models")
    except (OSError, EOFError) as error:
        raise ValueRangeError(
            f"bench-serve: no server answers at {address.host}, port {address.port}: {error}. "
            f"Start one with foveal serve, and give the address that it prints."
        ) from error
    if reply.status != OK:
        raise ValueRangeError(
            f"bench-serve: the server answers {reply.status} to GET /v1/models: "
            f"{reply.body[:200].decode('utf-8', 'replace')}. Where it asks for a token, give "
            f"--token-file."
        )
    return [model["name"] for model in json.loads(reply.body)["models"]]


def requests(
    models: Sequence[str],
    texts: Sequence[str],
    *,
    seed: int = 0,
    nbest: int = 1,
    attention: bool = False,
) -> Iterator[Request]:
    """Yield requests of one text each in random order, for each model in turn, forever."""
    generator = random.Random(seed)
    more = {"nbest": nbest} | ({"attention": True} if attention else {})
    while True:
        for text in generator.sample(texts, len(texts)):
            for model in models:
                data = {"inputs": [text], **more}
                yield Request(f"/v1/models/{model}/predict", json.dumps(data).encode())


def made_up(seed: int) -> list[str]:
    """Return texts of random letters, uniform over lengths."""
    generator = random.Random(seed)
    return [
        "".join(generator.choices(string.ascii_lowercase, k=1 + number % _LONGEST))
        for number in range(40 * _LONGEST)
    ]


def _read(file: Path) -> list[str]:
    texts = [line.partition("\t")[0] for line in islice(LineReader(str(file)), _MOST_INPUTS)]
    if not texts:
        raise ValueRangeError(f"bench-serve: {file} has no lines, expected a text on each.")
    return texts


def _check(name: str, got: float, most: float) -> None:
    if not 0 < got <= most:
        raise ValueRangeError(
            f"bench-serve: --{name} must be more than 0 and at most {most:g}, got {got:g}."
        )


def table(load: Load) -> Table:
    """Return the results of a load as a table."""
    found = Table("measured", "value", box=None, padding=(0, 2, 0, 0))
    found.add_row("requests/s", f"{load.rate:,.1f}")
    found.add_row("answered", f"{load.count(OK):,} in {load.seconds:.1f} s")
    found.add_row("p50", f"{load.percentile(0.5):.1f} ms")
    found.add_row("p99", f"{load.percentile(0.99):.1f} ms")
    found.add_row("batch size", f"{load.batches.mean:.1f} on average")
    number, lower = load.batches.counts.total(), 0.0
    for edge, count in load.batches.sizes.items():
        sizes = f"{edge:.0f}" if edge == lower + 1 else f"{lower + 1:.0f} to {edge:.0f}"
        if count:
            found.add_row(f"  {sizes}", f"{count / number:.0%} of {number:,} batches")
        lower = edge
    found.add_row("rejected", f"{load.count(REJECTED):,} (503)")
    for status, count in sorted(load.statuses.items()):
        if status not in (OK, REJECTED):
            name = "no answer" if status == BROKEN else str(status)
            found.add_row("failed", f"{count:,} ({name})")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, and print errors in one line."""
    try:
        tyro.cli(command, args=arguments)
    except ValueRangeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
