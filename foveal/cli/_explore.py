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
    """Serve a page to query a model, inspect its attention and override its decisions, until Ctrl-C.

    With two models, the page compares them. Only this machine can reach the page.

    Args:
        runs: The folders of one or two models that `foveal fit` saved.
        port: The port on 127.0.0.1; 0 selects a free port.
        browser: Open the page in the browser; --no-browser only prints its address.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
    """
    from ..explorer import build_app, serve  # noqa: PLC0415 - an extra
    from ..web._runs import load_runs  # noqa: PLC0415 - an extra

    token = secrets.token_urlsafe()
    app = build_app(load_runs(runs, also=specs_in(with_specs)), token=token)

    def ready(address: str) -> None:
        sys.stdout.write(f"{address}  (press Ctrl-C to stop)\n")
        sys.stdout.flush()
        if browser:
            # A text-mode browser would block the server that it waits for.
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    try:
        serve(app, port=port, ready=ready, token=token)
    except KeyboardInterrupt:  # the usual end of a server, not a failure
        sys.stdout.write("stopped\n")
