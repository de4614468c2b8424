"""`foveal serve`: models by name over HTTP.

The work is in `_serve_job`, which needs more packages than --help does.
"""

from pathlib import Path

from tyro.conf import Positional

from ..errors import ValueRangeError
from ..serving import Limits

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
    with_specs: Path | None = None,
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
        with_specs: a Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The file is run.
    """
    from ._serve_job import Listening, serve_here, serve_on_ray  # noqa: PLC0415 - an extra

    listening = Listening(host, port, tokens, limits)
    if ray:
        if certificate is not None or key is not None or proxies or not pages:
            raise ValueRangeError(
                "serve: with --ray there is no --certificate, --key, --proxies or --no-pages. Let a proxy in front of "
                "the cluster terminate TLS and choose paths."
            )
        serve_on_ray(runs, listening, replicas, with_specs)
    else:
        serve_here(
            runs,
            listening,
            certificate=certificate,
            key=key,
            proxies=proxies,
            pages=pages,
            specs=with_specs,
        )
