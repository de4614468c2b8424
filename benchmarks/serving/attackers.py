"""Run one client of a server under attack as a separate process: a victim, a health check, or an attacker.

    python -m benchmarks.serving.attackers KIND PORT TOKEN MODEL START PHASE UNTIL

An attacker is active in every second phase of PHASE seconds, counted from the time START; at UNTIL all clients end.
A victim and a health check print one line of JSON for each request: the time it was sent, its status, its seconds.
The module imports only the standard library, for a fast start.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_EVERY = 0.25  # seconds between two requests of the victim
_PATIENCE = 60.0
_NUM_BODIES, _NUM_IDLE = 900, 1200
_BODY = 1 << 20
_REOPENED = 5.0  # seconds after which a connection that the server closed is opened again
_LETTERS = "abcde"


@dataclass(frozen=True)
class Attack:
    """The target, the identity and the schedule of a client."""

    port: int
    token: str
    model: str
    start: float
    phase: float
    until: float

    @property
    def is_over(self) -> bool:
        """Return whether the test is over."""
        return time.time() >= self.until

    @property
    def is_active(self) -> bool:
        """Return whether attackers are active now."""
        return not self.is_over and int((time.time() - self.start) / self.phase) % 2 == 1

    @property
    def predict(self) -> str:
        """Return the path of the model's predict endpoint."""
        return f"/v1/models/{self.model}/predict"

    def head(self, method: str, path: str, size: int = 0) -> bytes:
        """Return the head of a request."""
        lines = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{self.port}", "connection: close"]
        lines += [f"authorization: Bearer {self.token}"] if self.token else []
        lines += ["content-type: application/json", f"content-length: {size}"] if size else []
        return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send one request on a new connection; return its status (0 without an answer) and its body."""
        try:
            async with asyncio.timeout(_PATIENCE):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    writer.write(self.head(method, path, len(body)) + body)
                    answer = await reader.read()
                finally:
                    writer.transport.abort()
        except (OSError, TimeoutError):
            return 0, b""
        status, _, rest = answer.partition(b" ")[2].partition(b" ")
        return int(status) if status.isdigit() else 0, rest.partition(b"\r\n\r\n")[2]


async def _measured(attack: Attack, method: str, path: str, body: bytes = b"") -> None:
    began = time.time()
    status, _ = await attack.ask(method, path, body)
    print(json.dumps([began, status, time.time() - began]), flush=True)


async def victim(attack: Attack) -> None:
    """Send one word every quarter of a second."""
    body = json.dumps({"inputs": [_LETTERS]}).encode()
    while not attack.is_over:
        began = time.time()
        await _measured(attack, "POST", attack.predict, body)
        await asyncio.sleep(max(0.0, _EVERY - (time.time() - began)))


async def health(attack: Attack) -> None:
    """Request the liveness and readiness checks in turn."""
    while not attack.is_over:
        for path in ("/healthz", "/readyz"):
            await _measured(attack, "GET", path)
            await asyncio.sleep(0.25)


async def _posting(attack: Attack, path: str, *bodies: bytes) -> None:
    """Send requests back to back."""
    while not attack.is_over:
        for body in bodies:
            if attack.is_active:
                await attack.ask("POST", path, body)
            else:
                await asyncio.sleep(0.05)


async def largest(attack: Attack) -> None:
    """Send the largest request that the limits allow."""
    body = json.dumps({"inputs": [_LETTERS * 400] * 256, "nbest": 16}).encode()
    await _posting(attack, attack.predict, body)


async def texts(attack: Attack) -> None:
    """Send requests with 64 texts of 300 letters."""
    body = json.dumps({"inputs": [_LETTERS * 60] * 64}).encode()
    await _posting(attack, attack.predict, body)


async def prefix(attack: Attack) -> None:
    """Send a prefix that is far too long for its input, and a long prefix for a long input."""
    asked = {"run": attack.model, "input": "ab", "prefix": ["A"] * 2000}
    allowed = asked | {"input": _LETTERS * 140, "prefix": ["A"] * 650}
    bodies = [json.dumps(each).encode() for each in (asked, allowed)]
    await _posting(attack, "/api/explain", *bodies)


async def bodies(attack: Attack) -> None:
    """Send 900 bodies without their last 16 bytes."""
    start = attack.head("POST", attack.predict, _BODY)
    await _holding(attack, _NUM_BODIES, start + b"a" * (_BODY - 16))


async def idle(attack: Attack) -> None:
    """Open 1,200 connections without a token, and send nothing."""
    await _holding(attack, _NUM_IDLE, b"")


async def _holding(attack: Attack, number: int, sent: bytes) -> None:
    """Keep `number` connections open; reopen closed ones after some seconds."""

    async def hold() -> None:
        while not attack.is_over:
            if not attack.is_active:
                await asyncio.sleep(0.1)
                continue
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", attack.port)
            except OSError:
                await asyncio.sleep(_REOPENED)
                continue
            try:
                writer.write(sent)
                async with asyncio.timeout(max(0.1, _end_of_phase(attack) - time.time())):
                    await reader.read()
            except (OSError, TimeoutError):
                pass
            finally:
                writer.transport.abort()
            await asyncio.sleep(min(_REOPENED, max(0.1, _end_of_phase(attack) - time.time())))

    await asyncio.gather(*(hold() for _ in range(number)))


def _end_of_phase(attack: Attack) -> float:
    past = int((time.time() - attack.start) / attack.phase)
    return min(attack.until, attack.start + (past + 1) * attack.phase)


ATTACKS: dict[str, Callable[[Attack], Awaitable[None]]] = {
    "largest": largest,
    "texts": texts,
    "prefix": prefix,
    "bodies": bodies,
    "idle": idle,
}
KINDS = ATTACKS | {"victim": victim, "health": health}


def main() -> None:
    """Run one client."""
    kind, port, token, model, *times = sys.argv[1:]
    asyncio.run(_run(KINDS[kind], Attack(int(port), token, model, *map(float, times))))


async def _run(kind: Callable[[Attack], Awaitable[None]], attack: Attack) -> None:
    await kind(attack)


if __name__ == "__main__":
    main()
