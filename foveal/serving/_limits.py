"""How much a request may ask for, and how long it may take."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What is refused beyond these: with 413 or 422, before anything is computed."""

    body_bytes: int = 1 << 20
    inputs: int = 256  # of one request
    characters: int = 2000  # of one input
    nbest: int = 16
    attention_cells: int = 500_000  # squared characters of all inputs whose attention is asked for
    body_seconds: float = 10.0  # to send a body, and to send the head of a request
    answer_seconds: float = 30.0  # the deadline of a request that gives none, and the latest of all
    waiting_seconds: float = 1.0  # processor time of work that waits; more is refused with 503
    head_bytes: int = 16 << 10
    head_fields: int = 100
    bodies_bytes: int = 64 << 20  # of all requests under way; half of it for one client at most
    connections: int = 1000
    address_connections: int = 500  # from one address
    silent_seconds: float = (
        10.0  # without a sign of life, after which the computing process is replaced
    )
