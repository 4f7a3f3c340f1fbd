"""Collects the status, codes and texts of an error of any type.

No provider's library is imported: exceptions, responses, decoded bodies and plain text are read by
the names of their parts. Requests are never read, because a user's text may be about overflows.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

_STATUS = {"status_code", "statuscode", "http_status", "httpstatuscode", "raw_status_code"}
_CODES = {"code", "type", "status", "reason", "error_type", "error_code", "__type", "errortype"}
_WORDS = {"message", "msg", "error_message", "errormessage", "title"}
_PARTS = {
    "body", "content", "data", "detail", "details", "error", "errors", "metadata", "param",
    "previous_errors", "raw", "response", "responsemetadata", "text",
}  # fmt: skip
_COUNTS = {"n_prompt_tokens": "tokens", "n_ctx": "limit"}
_ATTRIBUTES = ("status_code", "code", "status", "type", "message", "body", "details", "response")
_RESPONSE = ("status_code", "status", "text", "content", "body")
_STATUS_IN_TEXT = re.compile(
    r"(?:^|error code[: ]+|status(?: code)?[:= ]+|http(?:/[\d.]+)? |\()([45]\d\d)\b", re.IGNORECASE
)
_JSON_BEGINS = re.compile(r"[\[{]")

_MAX_DEPTH = 12
_MAX_TEXT_CHARS = 50_000
_MAX_PARTS = 400
"""The limits of reading, for errors that repeat a whole request."""


@dataclass
class Evidence:
    """Everything that one error says."""

    statuses: set[int] = field(default_factory=set)
    codes: set[str] = field(default_factory=set)
    """In lower case: codes, types and the names of the error's classes."""
    texts: list[str] = field(default_factory=list)
    """Each on one line."""
    numbers: dict[str, int] = field(default_factory=dict)
    """Counts with a field of their own: `tokens`, `limit`."""
    read: int = 0

    def look_at(self, thing: object, depth: int = 0) -> None:
        """Read anything: an exception, a body, a response, a text."""
        self.read += 1
        if depth > _MAX_DEPTH or self.read > _MAX_PARTS:
            return
        match thing:
            case None | bool() | int() | float():
                return
            case str():
                self._take_text(thing, depth)
            case bytes() | bytearray():
                self._take_text(bytes(thing[:_MAX_TEXT_CHARS]).decode(errors="replace"), depth)
            case BaseException():
                self._look_at_exception(thing, depth)
            case Mapping():
                for key, part in _read_safely(partial(_list_items, thing), ()):
                    self._take(key, part, depth)
            case list() | tuple():
                for part in thing[:_MAX_PARTS]:
                    self.look_at(part, depth + 1)
            case _:
                self._look_at_parts(thing, _RESPONSE, depth)

    def _look_at_exception(self, error: BaseException, depth: int) -> None:
        for kind in type(error).__mro__:
            if kind not in (BaseException, Exception, object):
                self.codes.add(kind.__name__.lower())
        self._look_at_parts(error, _ATTRIBUTES, depth)
        for argument in _read_safely(partial(getattr, error, "args", None), None) or ():
            if isinstance(argument, str | bytes | Mapping):
                self.look_at(argument, depth + 1)
        if not self.texts:
            self._take_text(_read_safely(partial(str, error), ""), depth + 1)

    def _look_at_parts(self, thing: object, names: Iterable[str], depth: int) -> None:
        for name in names:
            part = _read_safely(partial(getattr, thing, name, None), None)
            if part is not None and not callable(part):
                self._take(name, part, depth)

    def _take(self, key: str, part: object, depth: int) -> None:
        name = key.lower()
        if name in _COUNTS and isinstance(part, int):
            self.numbers[_COUNTS[name]] = part
        elif name in _STATUS or name in _CODES:
            self._take_code(name, part, depth)
        elif name in _WORDS or name in _PARTS:
            self.look_at(part, depth + 1)

    def _take_code(self, name: str, part: object, depth: int) -> None:
        match part:
            case bool():
                return
            case int():
                self._take_number(part)
            case str() if part.isdecimal() and part.isascii() and len(part) < 9:
                self._take_number(int(part))
            case str() if " " in part.strip():
                self.look_at(part, depth + 1)
            case str():
                self.codes.add(part.strip().rpartition("#")[2].lower()[:200])
            case Mapping() | list() if name not in _STATUS:
                self.look_at(part, depth + 1)
            case _:
                return

    def _take_number(self, number: int) -> None:
        if 100 <= number < 600:
            self.statuses.add(number)
        self.codes.add(str(number))

    def _take_text(self, text: str, depth: int) -> None:
        text = text[:_MAX_TEXT_CHARS]
        line = " ".join(text.split())
        if not line:
            return
        inner = _parse_json_tail(text) if depth <= _MAX_DEPTH else None
        if inner is not None:
            self.look_at(inner, depth + 1)
        if spoken := _STATUS_IN_TEXT.search(line[:200]):
            self.statuses.add(int(spoken[1]))
        self.texts.append(line)


def _parse_json_tail(text: str) -> Any:
    """Return the JSON that begins near the start of a text and ends with it, or None."""
    begins = _JSON_BEGINS.search(text[:500])
    if begins is None:
        return None
    try:
        return json.loads(text[begins.start() :])
    except (ValueError, RecursionError):
        return None


def _read_safely(read: Callable[[], Any], default: Any) -> Any:
    """Return what `read` finds; a foreign mapping, property or `__str__` may raise anything."""
    try:
        return read()
    except Exception:  # noqa: BLE001 - then that part says nothing
        return default


def _list_items(body: Mapping[Any, Any]) -> list[tuple[str, object]]:
    return [(key, body[key]) for key in list(body)[:_MAX_PARTS] if isinstance(key, str)]
