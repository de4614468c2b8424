"""`foveal serve`: serve models by name over HTTP.

The work is in `_serve_job`, which imports more packages than --help needs.
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
    """Serve models until SIGTERM or Ctrl-C; a folder that changes is reloaded.

    Args:
        runs: folders of models that `fit` saved, each under its own name or as NAME=FOLDER.
        host: the address to listen on; other machines can reach 0.0.0.0.
        port: the port; 0 takes a free one.
        tokens: a file of bearer tokens, one on each line; every request must contain one of them.
        certificate: a TLS certificate in PEM format.
        key: the key of the certificate, if it is in another file.
        proxies: comma-separated addresses of proxies whose X-Forwarded-For is trusted.
        limits: limits on the size and the duration of a request.
        pages: serve a page for people, and its /api; --no-pages leaves only the API for programs.
        ray: run on a Ray cluster, the one at RAY_ADDRESS or else one of this machine.
        replicas: with --ray, the number of servers: a number, or bounds such as 2..8 between which
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
