"""Limits on the size and the duration of a request."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Request limits. A request beyond them is rejected with 413 or 422, before any computation.

    Args:
        body_bytes: The maximum size of the body of a request.
        inputs: The maximum number of inputs in a request.
        characters: The maximum number of characters in an input.
        nbest: The maximum number of answers for an input.
        attention_cells: The maximum sum of squared input lengths, in characters, over the inputs of a request for
            attention.
        body_seconds: The maximum time to send the head of a request, and the maximum time to send its body.
        answer_seconds: The default deadline of a request, and the latest deadline that it can set.
        waiting_seconds: The maximum CPU time of the queued work. Requests beyond it are rejected with 503.
        head_bytes: The maximum size of the head of a request.
        head_fields: The maximum number of header fields.
        bodies_bytes: The maximum total size of the bodies of all requests in flight. One client gets at most half.
        connections: The maximum number of open connections.
        address_connections: The maximum number of open connections from one address.
        silent_seconds: The maximum time without a heartbeat before the computing process is replaced.
    """

    body_bytes: int = 1 << 20
    inputs: int = 256
    characters: int = 2000
    nbest: int = 16
    attention_cells: int = 500_000
    body_seconds: float = 10.0
    answer_seconds: float = 30.0
    waiting_seconds: float = 1.0
    head_bytes: int = 16 << 10
    head_fields: int = 100
    bodies_bytes: int = 64 << 20
    connections: int = 1000
    address_connections: int = 500
    silent_seconds: float = 10.0
