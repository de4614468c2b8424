"""Clients of the soak test: correct, slow, careless and malicious ones."""

import asyncio
import json
import random
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.serving.load import OK, REJECTED
from benchmarks.serving.loopback import Connection, Loopback, Reply, read_reply

MOST_FAULTS = 20  # recorded at most
_SLOW_WRITING = 2.0  # seconds for sending a body, within the server's timeout
_SMALL_BUFFER = 4096
_FLOOD = 64 * 1024


class Way(NamedTuple):
    """The options of a request."""

    nbest: int
    attention: bool


@dataclass
class Soak:
    """The shared state and observations of the clients."""

    address: Loopback
    model: str
    version: str
    expected: dict[Way, dict[str, str]]  # output of the command line, a line of JSON for each text
    body_bytes: int  # the server's limit
    generator: random.Random
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    seen: Counter[tuple[str, int]] = field(default_factory=Counter)
    num_answers: int = 0  # compared with the command line byte by byte
    faults: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Return the path of the model's predict endpoint."""
        return f"/v1/models/{self.model}/predict"

    def fault(self, text: str) -> None:
        """Record a violation."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(text)

    def question(self, most: int, *, stream: bool = False) -> "Question":
        """Draw a question of random texts and options."""
        way = self.generator.choice(list(self.expected))
        texts = self.generator.choices(list(self.expected[way]), k=self.generator.randint(1, most))
        return Question(way, texts, stream)

    def check(self, kind: str, question: "Question", reply: Reply) -> None:
        """Check that an answer equals the output of the command line, or is a rejection due to overload."""
        self.seen[kind, reply.status] += 1
        if reply.status == REJECTED:
            if "retry-after" not in reply.headers:
                self.fault(f"{kind}: 503 without Retry-After")
        elif reply.status != OK:
            self.fault(f"{kind}: {reply.status} {reply.body[:200]!r}")
        elif reply.body != self.whole(question):
            self.fault(f"{kind}: {question} was answered {reply.body[:400]!r}")
        else:
            self.num_answers += len(question.texts)

    def whole(self, question: "Question") -> bytes:
        """Return the expected body of the answer to a question."""
        lines = [self.expected[question.way][text] for text in question.texts]
        if question.stream:
            return "".join(f"{line}\n" for line in lines).encode()
        head = json.dumps({"model": self.model, "version": self.version})[:-1]
        return f'{head}, "answers": [{", ".join(lines)}]}}\n'.encode()


class Question(NamedTuple):
    """Texts and the options of their request."""

    way: Way
    texts: Sequence[str]
    stream: bool

    @property
    def body(self) -> bytes:
        """Return the body of the request."""
        more = {"nbest": self.way.nbest, "attention": self.way.attention, "stream": self.stream}
        return json.dumps({"inputs": list(self.texts), **more}).encode()


async def good(soak: Soak) -> None:
    """Send requests and compare the answers; a duplicate answer would be read as the next one."""
    async with Connection(soak.address) as connection:
        while not soak.stop.is_set():
            question = soak.question(8, stream=soak.generator.random() < 0.2)
            try:
                reply = await connection.ask("POST", soak.path, question.body)
            except (OSError, EOFError) as error:
                soak.fault(f"good: no answer: {error!r}")
                continue
            soak.check("good", question, reply)
            # Shorter than the server requests, to keep up the pressure.
            await asyncio.sleep(0.2 if reply.status == REJECTED else 0.0)


async def leaving(soak: Soak) -> None:
    """Close the connection in the middle of a request, or while the server answers."""
    while not soak.stop.is_set():
        reader, writer = await asyncio.open_connection(*soak.address)
        del reader
        body = soak.question(8).body
        sent = len(body) if soak.generator.random() < 0.5 else soak.generator.randrange(len(body))
        writer.write(_head(soak, f"content-length: {len(body)}") + body[:sent])
        await asyncio.sleep(soak.generator.random() * 0.05)
        writer.transport.abort()
        soak.seen["leaving", 0] += 1
        await asyncio.sleep(0.05)


async def slow_writer(soak: Soak) -> None:
    """Send a request in ten pieces; the server must answer it like any other."""
    while not soak.stop.is_set():
        question = soak.question(8)
        body = question.body
        data = _head(soak, f"content-length: {len(body)}") + body
        reader, writer = await asyncio.open_connection(*soak.address)
        try:
            for start in range(0, len(data), max(1, len(data) // 10)):
                writer.write(data[start : start + max(1, len(data) // 10)])
                await asyncio.sleep(_SLOW_WRITING / 11)
            soak.check("slow writer", question, await read_reply(reader))
        except (OSError, EOFError) as error:
            soak.fault(f"slow writer: no answer: {error!r}")
        writer.transport.abort()


async def never_written(soak: Soak) -> None:
    """Announce a body and never send it; the server must reply with an error or close the connection."""
    while not soak.stop.is_set():
        reader, writer = await asyncio.open_connection(*soak.address)
        writer.write(_head(soak, "content-length: 100") + b"{")
        try:
            async with asyncio.timeout(60):
                reply = await read_reply(reader)
            soak.seen["never written", reply.status] += 1
            if reply.status != 408:
                soak.fault(f"never written: {reply.status}")
        except TimeoutError:
            soak.fault("never written: the server waits for ever")
        except (OSError, EOFError):
            soak.seen["never written", 0] += 1
        writer.transport.abort()


async def slow_reader(soak: Soak) -> None:
    """Request a large answer and read it slowly through a small window, or give up halfway."""
    while not soak.stop.is_set():
        question = soak.question(32, stream=soak.generator.random() < 0.5)
        plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, soak.address)
        reader, writer = await asyncio.open_connection(sock=plain, limit=_SMALL_BUFFER)
        body = question.body
        writer.write(_head(soak, f"content-length: {len(body)}", "connection: close") + body)
        slow = asyncio.StreamReader()
        gives_up = soak.generator.random() < 0.3
        try:
            while piece := await reader.read(_SMALL_BUFFER):
                slow.feed_data(piece)
                if gives_up:
                    break
                await asyncio.sleep(0.01)
            slow.feed_eof()
            if gives_up:
                soak.seen["slow reader who gives up", 0] += 1
            else:
                soak.check("slow reader", question, await read_reply(slow))
        except (OSError, EOFError) as error:
            soak.fault(f"slow reader: no answer: {error!r}")
        writer.transport.abort()


async def oversized(soak: Soak) -> None:
    """Send bodies beyond the limit, with and without a declared length."""
    most = soak.body_bytes
    while not soak.stop.is_set():
        chunk = b"%x\r\n%s\r\n" % (_FLOOD, b" " * _FLOOD)
        for kind, data in {
            "said to be too large": _head(soak, f"content-length: {most + 1}"),
            "too large": _head(soak, f"content-length: {2 * most}") + b" " * 2 * most,
            "too large, in chunks": _head(soak, "transfer-encoding: chunked")
            + chunk * (most // _FLOOD + 2),
        }.items():
            await _refused(soak, kind, data, {413})
        await asyncio.sleep(0.2)


async def malformed(soak: Soak) -> None:
    """Send invalid HTTP."""
    bodies = {
        "no JSON": b'{"inputs": ["a"',
        "no text": b"\xff\xfe\x00",
        "nothing": b"",
        "another type": b'{"inputs": "a"}',
        "no inputs": b'{"inputs": []}',
        "an unknown field": b'{"inputs": ["a"], "shell": "true"}',
        "a number too large": b'{"inputs": ["a"], "nbest": 1e999}',
        "deep": b'{"inputs": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        "too many": json.dumps({"inputs": ["a"] * 10_000}).encode(),
        "too long": json.dumps({"inputs": ["a" * 100_000]}).encode(),
    }
    host = f"host: {soak.address.host}:{soak.address.port}\r\n".encode()
    while not soak.stop.is_set():
        for kind, body in bodies.items():
            data = _head(soak, f"content-length: {len(body)}") + body
            await _refused(soak, kind, data, {422})
        for kind, data in {
            "no HTTP": b"\x16\x03\x01\x02\x00" * 20 + b"\r\n\r\n",
            "a long head": b"GET /healthz HTTP/1.1\r\n" + host + b"x: " + b"y" * 200_000,
            "another host": b"GET /v1/models HTTP/1.1\r\nhost: example.org\r\n\r\n",
            "no such model": _head(soak, "content-length: 2", path="/v1/models/../x/predict")
            + b"{}",
            "another method": b"DELETE /v1/models HTTP/1.1\r\n" + host + b"\r\n",
        }.items():
            await _refused(soak, kind, data, {400, 403, 404, 405, 422, 431})
        await asyncio.sleep(0.2)


async def _refused(soak: Soak, kind: str, data: bytes, statuses: set[int]) -> None:
    """Send data and check that the server rejects it or closes the connection."""
    reader, writer = await asyncio.open_connection(*soak.address)
    writer.write(data)
    try:
        async with asyncio.timeout(30):
            reply = await read_reply(reader)
        soak.seen[kind, reply.status] += 1
        if reply.status not in statuses:
            soak.fault(f"{kind}: {reply.status} {reply.body[:200]!r}")
    except TimeoutError:
        soak.fault(f"{kind}: no word within 30 s")
    except (OSError, EOFError):
        soak.seen[kind, 0] += 1
    writer.transport.abort()


def _head(soak: Soak, *fields: str, path: str | None = None) -> bytes:
    host = f"host: {soak.address.host}:{soak.address.port}"
    lines = (f"POST {path or soak.path} HTTP/1.1", host, "content-type: application/json", *fields)
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"
