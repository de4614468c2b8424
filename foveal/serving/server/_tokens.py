"""Bearer tokens for authentication. Only their digests are stored, and all are compared."""

import hashlib
import hmac
from collections.abc import Sequence
from pathlib import Path
from typing import final

from ...errors import ValueRangeError

_LEAST_CHARACTERS = 16


@final
class Tokens:
    """The tokens of a server; an empty set accepts every client."""

    def __init__(self, tokens: Sequence[str] = ()) -> None:
        for token in tokens:
            if len(token) < _LEAST_CHARACTERS or not token.isascii() or not token.isprintable():
                raise ValueRangeError(
                    f"serve: a token must have at least {_LEAST_CHARACTERS} printable ASCII "
                    f"characters, got {len(token)}. Generate one: python -c 'import secrets; "
                    f"print(secrets.token_urlsafe())'"
                )
        self._digests = [_digest(token.encode()) for token in tokens]

    def take(self, other: "Tokens") -> None:
        """Replace the accepted tokens."""
        self._digests = other._digests

    def __bool__(self) -> bool:
        return bool(self._digests)

    def client(self, authorization: str) -> str | None:
        """Return a name for the client that sends this header, without revealing the token; None for an invalid token.
        Comparison takes constant time: it depends neither on the token nor on the number of matching characters.
        """
        scheme, _, token = authorization.partition(" ")
        shown, found = _digest(token.strip().encode("latin-1", "replace")), None
        for digest in self._digests:
            if hmac.compare_digest(shown, digest):
                found = digest
        is_bearer = scheme.lower() == "bearer"
        return f"token-{found.hex()[:8]}" if found is not None and is_bearer else None


def read_tokens(file: Path) -> Tokens:
    """Read the tokens in a file, one on each line; empty lines and lines that begin with # are skipped."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueRangeError(
            f"serve: cannot read the tokens in {file}: {error}. Use a text file with one token per line."
        ) from error
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens:
        raise ValueRangeError(
            f"serve: expected at least one token in {file}, got none. Write one token per line."
        )
    return Tokens(tokens)


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
