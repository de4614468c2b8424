"""Clients that send requests with retries while the server is disturbed."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from foveal.serving.client import Client, ServerError
from foveal.serving.client._answers import Answer

_SECONDS = 120  # that a request may take until its last attempt has failed, on a busy machine


class Askers:
    """Threads that each ask for one text after the other until it is over.

    Args:
        client: that all of them use.
        model: whom they ask.
        texts: what they ask.
        number: how many they are.
        pause: seconds between an answer and the next question.
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
        """While they ask."""
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
