"""Limits on the size and the duration of a request."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Request limits. A request beyond them is rejected with 413 or 422, before any computation."""

    body_bytes: int = 1 << 20
    inputs: int = 256  # of one request
    characters: int = 2000  # of one input
    nbest: int = 16
    attention_cells: int = 500_000  # squared characters of all inputs with requested attention
    body_seconds: float = 10.0  # to send a body, and to send the head of a request
    answer_seconds: float = 30.0  # the default deadline of a request, and the latest one
    waiting_seconds: float = 1.0  # processor time of waiting work; more is rejected with 503
    head_bytes: int = 16 << 10
    head_fields: int = 100
    bodies_bytes: int = (
        64 << 20
    )  # total of all requests in flight; at most half of it for one client
    connections: int = 1000
    address_connections: int = 500  # from one address
    silent_seconds: float = (
        10.0  # without a heartbeat, after which the computing process is replaced
    )
