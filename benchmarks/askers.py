"""Clients that send requests with retries while the server is disturbed."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from foveal.serving.client import Client, ServerError
from foveal.serving.client._answers import Answer

_SECONDS = 120  # for a request with all its retries, on a busy machine


class Askers:
    """Threads that send one text after the other until the block ends.

    Args:
        client: the client that all threads share.
        model: the name of the model.
        texts: the texts to send.
        number: the number of threads.
        pause: seconds between an answer and the next request.
    """

    def __init__(
        self, client: Client, model: str, texts: Sequence[str], *, number: int, pause: float = 0.0
    ) -> None:
        self._client, self._model, self._texts = client, model, texts
        self._number, self._pause = number, pause
        self.answers: list[Answer] = []
        self.failures: list[ServerError] = []
        self._is_over = threading.Event()

    @contextmanager
    def asking(self) -> Iterator["Askers"]:
        """Run the threads for the duration of a `with` block."""
        threads = [threading.Thread(target=self._ask, args=(each,)) for each in range(self._number)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join(_SECONDS)
                assert not thread.is_alive()

    def _ask(self, start: int) -> None:
        place = start % len(self._texts)
        while not self._is_over.wait(self._pause):
            try:
                self.answers += self._client.predict(self._model, [self._texts[place]])
            except ServerError as error:
                self.failures.append(error)
            place = (place + self._number) % len(self._texts)
