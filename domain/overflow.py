"""Recognizes refusals of long requests: by structured codes first, by wording second.

No provider's library is imported: exceptions, responses, decoded bodies and plain text are read by
the names of their parts. Requests are never read, because a user's text may be about overflows.
"""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from .overflow_wordings import (
    ANSWER_SHARE_PATTERN,
    OTHER_CODES,
    OTHER_SIZES_PATTERN,
    OTHER_STATUSES,
    OVERFLOW_CODES,
    RATE_OR_QUOTA_PATTERN,
    SPECIFIC_WORDINGS,
    WEAK_WORDINGS,
)

_CODES = {
    "status_code", "statuscode", "http_status", "httpstatuscode", "raw_status_code",
    "code", "type", "status", "reason", "error_type", "error_code", "__type", "errortype",
}  # fmt: skip
_STATUS = re.compile(r"[1-5]\d\d", re.ASCII)
_PARTS = {
    "message", "msg", "error_message", "errormessage", "title",
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
_MAX_MESSAGE_CHARS: Final = 300
_CHARS_BEFORE: Final = 80
_MAX_CHAIN: Final = 20
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|ak|hf|fw|gsk|csk|xai|key|org|proj|req|user|AIza|AKIA|ASIA|eyJ)"
    r"[-_A-Za-z0-9]{10,}|(?<=bearer )\S+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """A request that was too long for its model."""

    message: str
    """One line of the provider's text, shortened, with possible keys masked."""
    tokens: int | None = None
    """Tokens of the prompt by the provider's count, without the answer's share if stated."""
    limit: int | None = None
    """Tokens that the model accepts, according to the provider."""


class _OtherErrorFound(Exception):  # noqa: N818 - it ends a search and is not an error
    """The error is about something else."""


def recognize_overflow(error: object) -> Overflow | None:
    """Return the overflow that `error` reports; None if it is about anything else.

    `error` is an exception, a decoded body or the text of either. In a chain of exceptions, the
    outermost one with a known subject decides: an overflow that was handled before a rate limit is
    over. Never raises.
    """
    try:
        return _recognize_in_chain(error)
    except Exception:  # noqa: BLE001 - about something else, or a part of it cannot be read
        return None


def _recognize_in_chain(error: object) -> Overflow | None:
    seen: set[int] = set()
    link: object = error
    while link is not None and id(link) not in seen and len(seen) < _MAX_CHAIN:
        seen.add(id(link))
        if isinstance(link, BaseExceptionGroup):
            # The others were alternatives.
            members = map(recognize_overflow, link.exceptions[:_MAX_CHAIN])
            found = next(filter(None, members), None)
        else:
            found = _recognize_in_one(link)
        if found is not None or not isinstance(link, BaseException):
            return found
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return None


def _recognize_in_one(error: object) -> Overflow | None:
    evidence = Evidence()
    evidence.look_at(error)
    texts = evidence.texts
    if evidence.statuses & OTHER_STATUSES or evidence.codes & OTHER_CODES:
        raise _OtherErrorFound
    worded = _match_first(texts, SPECIFIC_WORDINGS)
    if codes := evidence.codes & OVERFLOW_CODES:
        worded = worded or Overflow(_excerpt_line([*texts, *codes][0]))
        counts = {"tokens": worded.tokens, "limit": worded.limit} | evidence.numbers
        return Overflow(worded.message, **counts)
    if any(map(RATE_OR_QUOTA_PATTERN.search, texts)):
        raise _OtherErrorFound
    plain = [text for text in texts if not OTHER_SIZES_PATTERN.search(text)]
    return worded or _match_first(plain, WEAK_WORDINGS)


def _match_first(texts: list[str], wordings: tuple[re.Pattern[str], ...]) -> Overflow | None:
    for text in texts:
        for wording in wordings:
            if match := wording.search(text):
                counts = match.groupdict()
                tokens = _parse_count(counts.get("tokens"))
                answer = ANSWER_SHARE_PATTERN.search(text, match.start(), match.start() + 400)
                if tokens is not None and answer and (share := _parse_count(answer[1])) is not None:
                    tokens = tokens - share if share < tokens else tokens
                message = _excerpt_line(text, match.start())
                return Overflow(message, tokens, _parse_count(counts.get("limit")))
    return None


def _parse_count(digits: str | None) -> int | None:
    """Return the number; None if it is too long for a count of tokens."""
    plain = (digits or "").replace(",", "")
    return int(plain) if plain.isascii() and plain.isdecimal() and len(plain) <= 12 else None


def _excerpt_line(text: str, at: int = 0) -> str:
    """Return one line of the text around `at`, shortened, with possible keys masked."""
    begins = 0 if len(text) <= _MAX_MESSAGE_CHARS else max(0, at - _CHARS_BEFORE)
    line = _SECRET.sub("…", text[begins : begins + 2 * _MAX_MESSAGE_CHARS])
    ends = len(line) > _MAX_MESSAGE_CHARS or begins + 2 * _MAX_MESSAGE_CHARS < len(text)
    return ("…" if begins else "") + line[:_MAX_MESSAGE_CHARS] + ("…" if ends else "")


@dataclass
class Evidence:
    """The status, codes and texts of an error of any type."""

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
                for key in list(thing)[:_MAX_PARTS]:
                    self._take(key, thing[key], depth)
            case list() | tuple():
                for part in thing[:_MAX_PARTS]:
                    self.look_at(part, depth + 1)
            case _:
                self._look_at_parts(thing, _RESPONSE, depth)

    def _look_at_exception(self, error: BaseException, depth: int) -> None:
        self.codes.update(kind.__name__.lower() for kind in type(error).__mro__)
        self._look_at_parts(error, _ATTRIBUTES, depth)
        for argument in error.args:
            if isinstance(argument, str | bytes | Mapping):
                self.look_at(argument, depth + 1)
        if not self.texts:
            self._take_text(str(error), depth + 1)

    def _look_at_parts(self, thing: object, names: Iterable[str], depth: int) -> None:
        for name in names:
            part = None
            with suppress(Exception):  # such as the body of a response that was not read
                part = getattr(thing, name, None)
            if part is not None and not callable(part):
                self._take(name, part, depth)

    def _take(self, key: Any, part: object, depth: int) -> None:
        name = key.lower() if isinstance(key, str) else ""
        if name in _COUNTS and isinstance(part, int):
            self.numbers[_COUNTS[name]] = part
        elif name in _CODES and isinstance(part, int | str) and " " not in str(part).strip():
            code = str(part).strip().rpartition("#")[2].lower()[:200]
            self.codes.add(code)
            if _STATUS.fullmatch(code):
                self.statuses.add(int(code))
        elif name in _CODES or name in _PARTS:
            self.look_at(part, depth + 1)

    def _take_text(self, text: str, depth: int) -> None:
        text = text[:_MAX_TEXT_CHARS]
        line = " ".join(text.split())
        if not line:
            return
        if begins := _JSON_BEGINS.search(text[:500]):
            with suppress(ValueError, RecursionError):  # it may end before the text does
                self.look_at(json.loads(text[begins.start() :]), depth + 1)
        if spoken := _STATUS_IN_TEXT.search(line[:200]):
            self.statuses.add(int(spoken[1]))
        self.texts.append(line)
