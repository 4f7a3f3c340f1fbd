"""What a model server may answer, in no provider's words, and how it goes over the wire."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import unquote

Body = dict[str, Any]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """By names in lower case."""
    raw: bytes
    body: Body
    number: int

    @property
    def model(self) -> str:
        named = self.body.get("model")
        if isinstance(named, str):
            return named
        in_path = re.search(r"/models?/(.+?)(:\w+|/converse(-stream)?)?\Z", self.path)
        return unquote(in_path[1]) if in_path else ""


@dataclass(frozen=True)
class Tokens:
    """Usage as cutbank has it: `input` is what came from no cache."""

    input: int = 1_000
    output: int = 50
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


class Stop(StrEnum):
    END = "end"
    LENGTH = "length"
    TOOL = "tool"
    REFUSAL = "refusal"


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Body = field(default_factory=dict)
    id: str = "call_1"


@dataclass(frozen=True)
class Says:
    text: str = ""
    usage: Tokens | Body | None = Tokens()
    """None leaves it out; a mapping is sent as it is, true or not."""
    stop: Stop = Stop.END
    calls: tuple[Call, ...] = ()
    model: str | None = None


class Why(StrEnum):
    OVERFLOW = "overflow"
    RATE_LIMIT = "rate limit"
    INTERNAL = "internal"
    WRONG_KEY = "wrong key"


@dataclass(frozen=True)
class Refuses:
    why: Why
    tokens: int = 214_315
    limit: int = 200_000
    retry_after_s: float | None = None
    detail: str | None = None
    """Said in place of the provider's own message."""


@dataclass(frozen=True)
class Raw:
    content: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BreaksOff:
    answer: Says
    after: int = 2
    """Pieces of the stream that still arrive; 0 is not even a status line."""


@dataclass(frozen=True)
class Waits:
    """Nothing until whoever asked leaves."""

    answer: Says = Says()
    after: int = 0
    """Pieces of a stream of the answer that arrive before that."""


@dataclass(frozen=True)
class Endless:
    text: str = "and so on " * 50


Answer = Says | Refuses | Raw | BreaksOff | Waits | Endless
Script = Callable[[Request], Answer]


def in_turn(*answers: Answer) -> Script:
    """These answers one after the other; the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@dataclass(frozen=True)
class Refusal:
    status: int
    body: Body
    headers: Mapping[str, str] = field(default_factory=dict)


class Wire(Protocol):
    stream_type: str

    def takes(self, request: Request) -> bool: ...

    def wants_stream(self, request: Request) -> bool: ...

    def whole(self, says: Says, request: Request) -> Body: ...

    def pieces(self, says: Says, request: Request) -> Iterator[bytes]:
        """The same answer as a stream; there are several pieces of text."""
        ...

    def refusal(self, refuses: Refuses) -> Refusal: ...


def as_json(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")


def event(body: Any, name: str | None = None) -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + as_json(body) + b"\n\n"


def in_parts(text: str, parts: int = 4) -> list[str]:
    size = max(1, -(-len(text) // parts))
    return [text[start : start + size] for start in range(0, len(text), size)]
