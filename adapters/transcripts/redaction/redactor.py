"""Replaces the secrets in one parsed transcript, and records where they were."""

import json
import re
from typing import Any

from .secret_kinds import SecretKind, list_secret_kinds

_MIN_SECRET_CHARACTERS = 12
"""Characters of the shortest text that may hold a secret."""
_MAX_NESTED_JSON = 4
"""Levels of JSON text within JSON text that are searched."""

_OPAQUE_FIELDS = re.compile(r"(?i)signature$|^encrypted|_encrypted|opaque$")
"""Fields that the provider must get back byte for byte."""
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
"""Fields whose values are searched like a header or a setting of that name."""


class Redactor:
    """The redactor of one file, in which the same secret always gets the same mark."""

    def __init__(self, path: str) -> None:
        self.kinds = list_secret_kinds()
        self._hints = [
            (hint, number) for number, kind in enumerate(self.kinds) for hint in kind.hints
        ]
        self.found: dict[str, list[str]] = {}
        """Locations by kind: `file:line`."""
        self._marks: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._seen: set[tuple[str, int]] = set()
        self._place: str | None = None
        self._is_text = False
        self.path = self.redact_text(path)

    def __call__(self, line: int, value: Any, member: str = "") -> Any:
        """Return the same object, or one without its secrets. Line 0 is a preview, and not
        recorded.
        """
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
            named = self.redact_text(key)
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
                told = self.redact_text(named)
                return told.removeprefix(f"{key}: ") if told is not named else item
        return self._redact_value(item, depth)

    def _redact_string(self, text: str, depth: int) -> str:
        if len(text) > 200 and (_BASE64.fullmatch(text) or _DATA_ADDRESS.match(text)):
            return text  # media have no secrets to find
        if depth < _MAX_NESTED_JSON and text.lstrip()[:1] in ("{", "["):
            try:
                inner = json.loads(text)
            except (ValueError, RecursionError):
                return self.redact_text(text)
            if isinstance(inner, dict | list):
                told = self._redact_value(inner, depth + 1)
                return text if told is inner else json.dumps(told, ensure_ascii=False)
        return self.redact_text(text)

    def redact_text(self, text: str) -> str:
        """Return a text without its secrets; they are recorded only during a call."""
        if len(text) < _MIN_SECRET_CHARACTERS:
            return text
        # A word search is nearly free, and saves most texts from the patterns.
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
                # A secret longer than its pattern: the remaining characters belong to it.
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
    """Return whether it is a placeholder from documentation."""
    return len(secret) <= MAX_PLACEHOLDER_CHARACTERS and _PLACEHOLDER.search(secret) is not None


def _is_part(text: str, start: int) -> bool:
    """Return whether a word continues from before it: then it is a part of a hash or of encoded
    data.
    """
    return start > 0 and text[start].isalnum() and text[start - 1].isalnum()
