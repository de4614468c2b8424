"""The work of `foveal serve`: loads and serves models, in this process or by replicas on a cluster."""

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..devices import resolve_device
from ..serving import Limits
from ..serving._engines import Engine
from ..serving.computing._process import Computing
from ..serving.computing._served import named_folders
from ..serving.server import build_app, serve
from ..serving.server._tokens import Tokens, read_tokens
from ._speech import explain_engine


class Listening(NamedTuple):
    """The address of a server, and its authentication."""

    host: str
    port: int
    token_file: Path | None
    limits: Limits

    @property
    def is_public(self) -> bool:
        """Whether other machines can reach the address."""
        return self.host not in ("127.0.0.1", "localhost", "::1")

    def begin(self) -> Tokens:
        """Set up the log, and return the accepted tokens."""
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
        if self.token_file is not None:
            return read_tokens(self.token_file)
        if self.is_public:
            sys.stderr.write(
                "note: anyone who can reach this address can query the models. Use --tokens FILE to restrict access.\n"
            )
        return Tokens()


def serve_here(
    runs: Sequence[str],
    listening: Listening,
    *,
    certificate: Path | None,
    key: Path | None,
    proxies: str,
    pages: bool,
    specs: Path | None,
    engine: Engine,
    device: str,
) -> None:
    """Serve models from this machine until SIGTERM or Ctrl-C."""
    folders, limits, tokens = named_folders(runs), listening.limits, listening.begin()
    # An unknown device is an error of this command, not of the computing process.
    resolve_device(device)
    with Computing(
        silent_seconds=limits.silent_seconds, specs=specs, engine=engine, device=device
    ) as computing:
        served = [computing.load(name, folder) for name, folder in folders.items()]
        for one in served:
            explain_engine(one.engine, f"{one.name}, ")
        serve(
            build_app(
                served,
                computing,
                limits=limits,
                tokens=tokens,
                is_public=listening.is_public,
                token_file=listening.token_file,
                pages=pages,
            ),
            host=listening.host,
            port=listening.port,
            ready=_announcing(folders),
            certificate=certificate,
            key=key,
            proxies=proxies,
        )
    sys.stdout.write("stopped\n")


def serve_on_ray(
    runs: Sequence[str],
    listening: Listening,
    replicas: str,
    specs: Path | None,
    engine: Engine,
    device: str,
) -> None:
    """Serve models from replicas on a cluster until SIGTERM or Ctrl-C."""
    from ..scale.cluster._serving import Deployment, Replicas, serve_with_replicas  # noqa: PLC0415 - an extra

    folders = named_folders(runs)
    deployment = Deployment(
        folders=folders,
        replicas=Replicas.from_text(replicas),
        limits=listening.limits,
        tokens=listening.begin(),
        is_public=listening.is_public,
        specs=specs,
        engine=engine,
        device=device,
    )
    serve_with_replicas(
        deployment, host=listening.host, port=listening.port, ready=_announcing(folders)
    )
    sys.stdout.write("stopped\n")


def _announcing(names: Iterable[str]) -> Callable[[str], None]:
    def ready(address: str) -> None:
        sys.stdout.write(f"{address}  {', '.join(names)}  (press Ctrl-C to stop)\n")
        sys.stdout.flush()

    return ready
