"""`foveal explore`: a page to query a model, inspect it and override its decisions."""

import secrets
import sys
import webbrowser
from pathlib import Path
from threading import Thread

from tyro.conf import Positional

from ..specs._files import specs_in


def command(
    runs: Positional[tuple[Path, ...]],
    /,
    *,
    port: int = 0,
    browser: bool = True,
    with_specs: Path | None = None,
) -> None:
    """Serve a page for one run, or two to compare, only on this machine; Ctrl-C ends it.

    Args:
        runs: the folders of one or two models that `fit` saved.
        port: port on 127.0.0.1; 0 takes a free one.
        browser: open the page; --no-browser only prints its address.
        with_specs: a Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The file is run.
    """
    from ..explorer import build_app, serve  # noqa: PLC0415 - an extra
    from ..web._runs import load_runs  # noqa: PLC0415 - an extra

    token = secrets.token_urlsafe()
    app = build_app(load_runs(runs, also=specs_in(with_specs)), token=token)

    def ready(address: str) -> None:
        sys.stdout.write(f"{address}  (Ctrl-C ends)\n")
        sys.stdout.flush()
        if browser:
            # A text-mode browser would block the server that it waits for.
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    try:
        serve(app, port=port, ready=ready, token=token)
    except KeyboardInterrupt:  # the usual end of a server, not a failure
        sys.stdout.write("ended\n")
