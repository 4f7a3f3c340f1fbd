"""Encodes JSON as bytes, even with invalid text."""

import json
from typing import Any


def encode_document(value: Any) -> bytes:
    return _encode_utf8(json.dumps(value, ensure_ascii=False, indent=2)) + b"\n"


def encode_line(value: Any) -> bytes:
    return _encode_utf8(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) + b"\n"


def _encode_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # A call's arguments may contain an unpaired surrogate, which becomes U+FFFD.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
