"""The synchronous client."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import final

import httpx2 as httpx

from ._answers import Answer, Model
from ._requests import (
    Received,
    Reply,
    Retries,
    TooLongError,
    Trying,
    answers_of,
    body_of,
    headers_of,
    is_passing,
    models_of,
    path_of,
)


@final
class Client:
    """A synchronous, thread-safe client of a server. It keeps connections open, so reuse one client for many
    requests.

    Args:
        address: The address of the server, such as http://127.0.0.1:8000.
        token: The bearer token, if the server requires one.
        retries: The retry policy.
        timeout: The time limit of one attempt, in seconds.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        retries: Retries | None = None,
        timeout: float = 30.0,
    ) -> None:
        self._http = httpx.Client(base_url=address, headers=headers_of(token), timeout=timeout)
        self._retries = retries or Retries()

    def predict(
        self,
        model: str,
        inputs: Sequence[str],
        *,
        features: Sequence[str] | None = None,
        nbest: int = 1,
        attention: bool = False,
        confidence: bool = True,
        deadline: float | None = None,
    ) -> list[Answer]:
        """Return an answer to each input, in order.

        Args:
            model: The name of the model.
            inputs: The input texts.
            features: One for each input, for a model that reads features.
            nbest: The number of candidates for each input.
            attention: Return the attention weights.
            confidence: Return scores and probabilities.
            deadline: Seconds after which the server may drop the request.

        Returns:
            One answer per input.

        Raises:
            ServerError: The server rejects the request, or is unreachable after all retries.
        """
        body = body_of(
            inputs,
            features=features,
            nbest=nbest,
            attention=attention,
            confidence=confidence,
            deadline=deadline,
        )
        return answers_of(self._sent("POST", path_of(model), body))

    def models(self) -> list[Model]:
        """Return the models of the server.

        Returns:
            The models, with their names, versions and tasks.

        Raises:
            ServerError: The server rejects the request, or is unreachable after all retries.
        """
        return models_of(self._sent("GET", "/v1/models"))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _sent(self, method: str, path: str, body: bytes | None = None) -> Reply:
        trying = Trying(self._retries)
        while True:
            reply, failed = None, None
            try:
                reply = self._reply(method, path, body)
            except (httpx.TransportError, TooLongError) as error:
                failed = error
            if reply is not None and not is_passing(reply):
                return reply
            time.sleep(trying.delay(reply, failed))

    def _reply(self, method: str, path: str, body: bytes | None) -> Reply:
        with self._http.stream(method, path, content=body) as response:
            received = Received(response)
            for part in response.iter_raw():
                received.add(part)
            return received.reply
