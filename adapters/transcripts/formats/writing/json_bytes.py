"""JSON as bytes, whatever the texts in it are."""

import json
from typing import Any


def encode_document(value: Any) -> bytes:
    """A whole document."""
    return _encode_utf8(json.dumps(value, ensure_ascii=False, indent=2)) + b"\n"


def encode_line(value: Any) -> bytes:
    """One line of a file of lines."""
    return _encode_utf8(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) + b"\n"


def _encode_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # A call's arguments may spell half a surrogate pair: no text, it becomes U+FFFD.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
