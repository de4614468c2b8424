"""`sightline serve`: models by name over HTTP."""

import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from ..errors import ValueRangeError
from ..serving import Limits

if TYPE_CHECKING:
    from ..serving.server import Tokens

_LIMITS = Limits()


def command(
    runs: Positional[tuple[str, ...]],
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    proxies: str = "",
    limits: Limits = _LIMITS,
    pages: bool = True,
    ray: bool = False,
    replicas: str = "2",
) -> None:
    """Serve models until SIGTERM or Ctrl-C; a folder that changes is loaded anew.

    Args:
        runs: folders of models that `fit` made, each under its own name or as NAME=FOLDER.
        host: the address to listen on; other machines can reach 0.0.0.0.
        port: 0 takes one that is free.
        tokens: a file of bearer tokens, one on each line, one of which every request must show.
        certificate: for TLS, a file in PEM format.
        key: of the certificate, if it is not in the same file.
        proxies: addresses of proxies, with commas, whose X-Forwarded-For is believed.
        limits: how much a request may ask for, and how long it may take.
        pages: serve a page where a person asks each model, and the /api that it uses; --no-pages leaves only
            the API for programs.
        ray: on a Ray cluster, that of RAY_ADDRESS or else one of this machine.
        replicas: with --ray, how many servers there are: a number, or bounds such as 2..8 between which
            the load decides.
    """
    from ..serving.server import (  # noqa: PLC0415 - an extra, which --help does without
        Computing,
        Tokens,
        build_app,
        named_folders,
        read_tokens,
        serve,
    )

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    folders = named_folders(runs)
    let_in = Tokens() if tokens is None else read_tokens(tokens)
    is_public = _is_public(host)
    if is_public and tokens is None:
        sys.stderr.write(
            "note: whoever reaches this address may ask. Give --tokens FILE to let in only some.\n"
        )

    def ready(address: str) -> None:
        sys.stdout.write(f"{address}  {', '.join(folders)}  (Ctrl-C ends)\n")
        sys.stdout.flush()

    if ray:
        if certificate is not None or key is not None or proxies or not pages:
            raise ValueRangeError(
                "serve: with --ray there is no --certificate, --key, --proxies or --no-pages. Let a proxy in "
                "front of the cluster terminate TLS and choose paths."
            )
        _serve_on_ray(folders, replicas, limits, let_in, host=host, port=port, ready=ready)
    else:
        with Computing(silent_seconds=limits.silent_seconds) as computing:
            served = [computing.load(name, folder) for name, folder in folders.items()]
            serve(
                build_app(
                    served,
                    computing,
                    limits=limits,
                    tokens=let_in,
                    is_public=is_public,
                    token_file=tokens,
                    pages=pages,
                ),
                host=host,
                port=port,
                ready=ready,
                certificate=certificate,
                key=key,
                proxies=proxies,
            )
    sys.stdout.write("ended\n")


def _serve_on_ray(
    folders: Mapping[str, Path],
    replicas: str,
    limits: Limits,
    tokens: "Tokens",
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
) -> None:
    from ..scale.cluster import (  # noqa: PLC0415 - an extra
        Deployment,
        Replicas,
        serve_by_replicas,
    )

    deployment = Deployment(
        folders=folders,
        replicas=Replicas.from_text(replicas),
        limits=limits,
        tokens=tokens,
        is_public=_is_public(host),
    )
    serve_by_replicas(deployment, host=host, port=port, ready=ready)


def _is_public(host: str) -> bool:
    return host not in ("127.0.0.1", "localhost", "::1")
