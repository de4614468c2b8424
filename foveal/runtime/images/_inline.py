"""Read the file that a data URL contains, for example an image: data:image/png;base64,iVBORw0KGgo=."""

import base64


def inline_bytes(text: str) -> bytes:
    """Return the content of a data URL; raise `ValueError` if it is not base64."""
    head, comma, data = text.partition(",")
    if not (comma and head.endswith(";base64")):
        raise ValueError("no base64")
    return base64.b64decode(data, validate=True)  # its error is a ValueError
