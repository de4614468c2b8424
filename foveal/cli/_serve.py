"""`foveal serve`: serve models by name over HTTP.

The work is in `_serve_job`, which imports more packages than --help needs.
"""

from pathlib import Path

from tyro.conf import Positional

from ..errors import ValueRangeError
from ..serving import Limits
from ..serving._engines import Engine

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
    engine: Engine = "auto",
    device: str = "auto",
) -> None:
    """Serve models over HTTP until SIGTERM or Ctrl-C. A model that changes on disk is reloaded.

    Args:
        runs: Folders of models that `foveal fit` saved. A model is served under the name of its folder, or under NAME
            if given as NAME=FOLDER.
        host: The address to listen on; 0.0.0.0 accepts requests from other machines.
        port: The port; 0 selects a free port.
        tokens: A file of bearer tokens, one per line. Every request must contain one of them.
        certificate: A TLS certificate in PEM format.
        key: The private key of the certificate, if it is in another file.
        proxies: Comma-separated addresses of proxies whose X-Forwarded-For is trusted.
        limits: Limits on the size and the duration of a request.
        pages: Serve a page for people, and its /api; --no-pages serves only the API for programs.
        ray: Run on the Ray cluster at RAY_ADDRESS or, without this variable, on this machine.
        replicas: The number of servers, with --ray: a number, or a range such as 2..8 that adapts to the load.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
        engine: The software that computes: torch, or onnx for ONNX Runtime, which is faster for single inputs. auto
            uses onnx for each model that has an export and gives the same answers as torch to examples of its run.
        device: The device to compute on: auto, cpu, cuda, cuda:1 or mps. auto uses a GPU if there is one. With --ray,
            the replicas share the GPUs of the cluster.
    """
    from ._serve_job import Listening, serve_here, serve_on_ray  # noqa: PLC0415 - an extra

    listening = Listening(host, port, tokens, limits)
    if ray:
        if certificate is not None or key is not None or proxies or not pages:
            raise ValueRangeError(
                "serve: --ray does not support --certificate, --key, --proxies and --no-pages. Remove them, and let a proxy "
                "in front of the cluster terminate TLS and select paths."
            )
        serve_on_ray(runs, listening, replicas, with_specs, engine, device)
    else:
        serve_here(
            runs,
            listening,
            certificate=certificate,
            key=key,
            proxies=proxies,
            pages=pages,
            specs=with_specs,
            engine=engine,
            device=device,
        )
