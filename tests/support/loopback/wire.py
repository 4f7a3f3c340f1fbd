"""What every provider's dialect has to say."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .answers import Body, Refuses, Request, Says


@dataclass(frozen=True)
class Refusal:
    """An error on the wire."""

    status: int
    body: Body
    headers: Mapping[str, str] = field(default_factory=dict)


class Wire(Protocol):
    """The format of one provider's API."""

    stream_type: str
    """The content type of a stream."""

    def takes(self, request: Request) -> bool:
        """Whether a request is one of this API."""
        ...

    def wants_stream(self, request: Request) -> bool: ...

    def whole(self, says: Says, request: Request) -> Body:
        """The answer in one piece."""
        ...

    def pieces(self, says: Says, request: Request) -> Iterator[bytes]:
        """The same answer as a stream; there are several pieces of text."""
        ...

    def refusal(self, refuses: Refuses) -> Refusal: ...


def as_json(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")


def event(body: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + as_json(body) + b"\n\n"


def in_parts(text: str, parts: int = 4) -> list[str]:
    """A text as it comes in a stream: several parts where there is enough of it."""
    size = max(1, -(-len(text) // parts))
    return [text[start : start + size] for start in range(0, len(text), size)]
