"""Replaces the secrets in what was parsed of one transcript, and remembers where they were."""

import json
import re
from typing import Any

from .secret_kinds import SecretKind, list_secret_kinds

_MIN_SECRET_CHARACTERS = 12
"""Characters of the shortest text that holds a secret."""
_MAX_NESTED_JSON = 4
"""How often JSON text within JSON text is opened."""

_OPAQUE_FIELDS = re.compile(r"(?i)signature$|^encrypted|_encrypted|opaque$")
"""Fields that their provider has to get back byte for byte."""
_OPAQUE_TEXT = re.compile(r"[!-~]{24,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]{200,}={0,2}")
_DATA_ADDRESS = re.compile(r"data:[a-z0-9.+/-]{1,99};base64,")
_TOKEN_GOES_ON = re.compile(r"[A-Za-z0-9_-]*")
_PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|redacted|your[_-]|changeme|\.\.\.|^(.)\1*$"
    r"|^(?:pass(?:word)?|passwd|pwd|secret|token|key|user(?:name)?)$"
)
MAX_PLACEHOLDER_CHARACTERS = 120
_SECRET_FIELDS = re.compile(
    r"(?i)secret_?access_?key$|session_?token$|SharedAccessKey$|api-key$|-token$|^authorization$"
    r"|^(?:PGPASSWORD|MYSQL_PWD|REDISCLI_AUTH)$|_auth(?:Token)?$"
)
"""Fields whose values are read like a header or a setting of that name."""


class Redactor:
    """One file's: the same secret has the same mark all through it, whatever it was."""

    def __init__(self, path: str) -> None:
        self.kinds = list_secret_kinds()
        self._hints = [
            (hint, number) for number, kind in enumerate(self.kinds) for hint in kind.hints
        ]
        self.found: dict[str, list[str]] = {}
        """Kind to where each was: `file:line`."""
        self._marks: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._seen: set[tuple[str, int]] = set()
        self._place: str | None = None
        self._is_text = False
        self.path = self.redact_text(path)

    def __call__(self, line: int, value: Any, member: str = "") -> Any:
        """The same object, or one without its secrets. Line 0 is only looked at in advance."""
        place = (member, line)
        self._place = None
        if line and place not in self._seen:
            self._seen.add(place)
            self._place = f"{self.path}{f'/{self.redact_text(member)}' if member else ''}"
        self._line = line
        self._is_text = isinstance(value, str)
        try:
            return self._redact_value(value, 0)
        finally:
            self._place = None

    def redact_text(self, text: str) -> str:
        """A text without its secrets; counted nowhere."""
        return self._redact_plain_text(text)

    def _redact_value(self, value: Any, depth: int) -> Any:
        match value:
            case str():
                return self._redact_string(value, depth)
            case list():
                items = [self._redact_value(item, depth) for item in value]
                changed = any(new is not old for new, old in zip(items, value, strict=True))
                return items if changed else value
            case dict():
                return self._redact_object(value, depth)
            case _:
                return value

    def _redact_object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        changed = False
        for key, item in value.items():
            named = self._redact_plain_text(key)
            told = self._redact_field(key, item, depth)
            changed |= named is not key or told is not item
            made[named] = told
        return made if changed else value

    def _redact_field(self, key: str, item: Any, depth: int) -> Any:
        if isinstance(item, str):
            if _OPAQUE_FIELDS.search(key) and _OPAQUE_TEXT.fullmatch(item) and item[0] not in "{[":
                return item
            if _SECRET_FIELDS.search(key):
                named = f"{key}: {item}"
                told = self._redact_plain_text(named)
                return told.removeprefix(f"{key}: ") if told is not named else item
        return self._redact_value(item, depth)

    def _redact_string(self, text: str, depth: int) -> str:
        if len(text) > 200 and (_BASE64.fullmatch(text) or _DATA_ADDRESS.match(text)):
            return text  # media, which no pattern has a business with
        if depth < _MAX_NESTED_JSON and text.lstrip()[:1] in ("{", "["):
            try:
                inner = json.loads(text)
            except (ValueError, RecursionError):
                return self._redact_plain_text(text)
            if isinstance(inner, dict | list):
                told = self._redact_value(inner, depth + 1)
                return text if told is inner else json.dumps(told, ensure_ascii=False)
        return self._redact_plain_text(text)

    def _redact_plain_text(self, text: str) -> str:
        if len(text) < _MIN_SECRET_CHARACTERS:
            return text
        # A search for a word takes next to no time, so that most texts meet no pattern.
        for number in dict.fromkeys([number for hint, number in self._hints if hint in text]):
            if self.kinds[number].pattern.search(text):
                text = self._remove_secrets(self.kinds[number], text)
        return text

    def _remove_secrets(self, kind: SecretKind, text: str) -> str:
        pieces: list[str] = []
        end = 0
        for match in kind.pattern.finditer(text):
            start, stop = match.span(kind.group)
            if start < end or _is_part(text, start) or _is_placeholder(text[start:stop]):
                continue
            if kind.group == 0 and text[stop - 1].isalnum():
                # A longer one than the pattern knows: what it leaves over is part of it.
                goes_on = _TOKEN_GOES_ON.match(text, stop)
                stop = goes_on.end() if goes_on else stop
            line = text.count("\n", 0, start) if self._is_text else 0
            pieces += text[end:start], self._make_mark(kind.name, text[start:stop], line)
            end = stop
        return "".join([*pieces, text[end:]]) if pieces else text

    def _make_mark(self, kind: str, secret: str, below: int = 0) -> str:
        if self._place is not None:
            self.found.setdefault(kind, []).append(f"{self._place}:{self._line + below}")
        if secret not in self._marks:
            self._numbers[kind] = self._numbers.get(kind, 0) + 1
            self._marks[secret] = f"[redacted: {kind} {self._numbers[kind]}]"
        return self._marks[secret]


def _is_placeholder(secret: str) -> bool:
    """Whether it is what documentation writes in place of a secret."""
    return len(secret) <= MAX_PLACEHOLDER_CHARACTERS and _PLACEHOLDER.search(secret) is not None


def _is_part(text: str, start: int) -> bool:
    """Whether a word began before it: then it is a stretch of a hash, or of something encoded."""
    return start > 0 and text[start].isalnum() and text[start - 1].isalnum()
