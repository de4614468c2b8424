"""The main program of the computing process: loads models and carries out orders.

It ends when the server's side of a pipe closes for any reason, and ignores the signals that a service manager
and a terminal send to both processes.
"""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from torch import set_num_threads

from ...data import Example
from ...errors import BundleError, ExportError
from ...planning._files import trial_examples
from ...specs._files import specs_in
from .._answer import answer_json
from .._engines import choose_engine, reason_of
from .._predictor import Predictor
from ._bundles import load_version
from ._interrupting import INTERRUPT, Carrier, Models
from ._orders import Load, Loaded, Model, failed

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Compute the orders from the pipes whose file descriptors are the arguments."""
    orders, urgent, loads, pulse = (_connection(word) for word in sys.argv[1:])
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    set_num_threads(1)
    # A full garbage collection visits all objects of the imported modules, and for more than 0.1 s no order can
    # interrupt it. These objects are never garbage, so the collection can skip them.
    gc.freeze()
    models = Models()
    # In a thread: requests for the old model do not wait until a new one is loaded.
    threading.Thread(target=_load_all, args=(loads, models), daemon=True).start()
    threading.Thread(target=_beat, args=(pulse,), daemon=True).start()
    with _until_closed():
        Carrier(orders, urgent, models).run()
    os._exit(0)  # there is nothing to clean up, and a regular interpreter exit takes seconds


def _connection(word: str) -> "Connection[Any, Any]":
    return Connection(int(word))


def _beat(pulse: "Connection[Any, Any]") -> None:
    """Send a heartbeat, and another one whenever the server asks for it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {INTERRUPT})
    with _until_closed():
        pulse.send(None)
        while True:
            pulse.send(pulse.recv())


def _load_all(loads: "Connection[Any, Any]", models: Models) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {INTERRUPT})
    with _until_closed():
        while True:
            load: Load = loads.recv()
            try:
                models[load.number], loaded = _loaded(load)
            except Exception as error:  # as above
                loads.send(failed(error))
            else:
                loads.send(loaded)


def _loaded(load: Load) -> tuple[Model, Loaded]:
    task, _ = load_version(load.folder, load.version, load.specs, load.device)
    try:
        chosen = choose_engine(
            task, load.engine, lambda: trial_examples(load.folder, specs_in(load.specs))
        )
    except ExportError as error:
        # The rest of the message may quote an input.
        raise ExportError(
            f"{load.folder}: {reason_of(error)}. Serve the model with --engine auto."
        ) from error
    model = Model(task, Predictor(task, task.spec, chosen.answerer))
    try:
        return model, Loaded(_is_exact(model.predictor, load.inputs), str(chosen))
    except Exception as error:
        # Leave out the error message: it may quote an input.
        raise BundleError(
            f"{load.folder}: the model does not give finite outputs for its test inputs "
            f"({failed(error).text}); training may have diverged. Save another model there."
        ) from error


def _is_exact(predictor: Predictor, inputs: Sequence[str]) -> bool:
    """Return whether the answers are the same for every batch size; raises an error if an answer cannot be written as
    JSON, which has no NaN and no infinity. This call also does torch's one-time work, such as choosing kernels,
    before the first request.
    """
    settings = predictor.settings(attention=True)
    examples = [Example(text) for text in inputs]
    alone = [predictor.predict([example], settings)[0] for example in examples]
    for example, prediction in zip(examples, alone, strict=True):
        answer_json(example, prediction)
    return predictor.predict([*examples, *examples], settings) == [*alone, *alone]


@contextmanager
def _until_closed() -> Iterator[None]:
    """Wait until the other end is closed."""
    try:
        yield
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
