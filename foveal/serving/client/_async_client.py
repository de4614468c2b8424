"""The client for programs that do other things meanwhile."""

import asyncio
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
class AsyncClient:
    """Asks a server, many things at once if wanted. Connections are kept, so that one client is for many
    requests.

    Args:
        address: of the server, such as http://127.0.0.1:8000.
        token: to show, if the server asks for one.
        retries: how often a request is tried.
        timeout: seconds that one attempt may take.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        retries: Retries | None = None,
        timeout: float = 30.0,
    ) -> None:
        self._http = httpx.AsyncClient(base_url=address, headers=headers_of(token), timeout=timeout)
        self._retries = retries or Retries()

    async def predict(
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
        """An answer to each input, in their order.

        Args:
            model: its name.
            inputs: texts.
            features: one for each input, of a model that reads features.
            nbest: candidates for each input.
            attention: say where the model looked.
            confidence: say scores and probabilities.
            deadline: seconds after which the server need not answer any more.
        """
        body = body_of(
            inputs,
            features=features,
            nbest=nbest,
            attention=attention,
            confidence=confidence,
            deadline=deadline,
        )
        return answers_of(await self._sent("POST", path_of(model), body))

    async def models(self) -> list[Model]:
        """What is served."""
        return models_of(await self._sent("GET", "/v1/models"))

    async def close(self) -> None:
        """End the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _sent(self, method: str, path: str, body: bytes | None = None) -> Reply:
        trying = Trying(self._retries)
        while True:
            reply, failed = None, None
            try:
                reply = await self._reply(method, path, body)
            except (httpx.TransportError, TooLongError) as error:
                failed = error
            if reply is not None and not is_passing(reply):
                return reply
            await asyncio.sleep(trying.delay(reply, failed))

    async def _reply(self, method: str, path: str, body: bytes | None) -> Reply:
        async with self._http.stream(method, path, content=body) as response:
            received = Received(response)
            async for part in response.aiter_raw():
                received.add(part)
            return received.reply
