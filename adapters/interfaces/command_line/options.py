"""Defines the options that several verbs share, and parses texts, settings and times of options."""

import json
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidSettingError
from ...runtime.sessions.stored_session import StoredSession
from .completion import suggest_sessions, suggest_settings
from .verbs import argument, flag, option

HANDLES_HELP = "12, 3-9, last or last-3; '#12' in quotes, or a shell takes it for a comment."
STDIN_WORD = "-"
"""Names standard input in place of a text or a file."""

SESSION = argument("SESSION", "The session's name.", autocompletion=suggest_sessions)
HANDLES = argument("HANDLE", HANDLES_HELP)
LINEAGE = option("--lineage NAME", "Which of its lines of compaction.", MAIN_LINEAGE)
PLACE = option("--at HANDLE", "As it was at this position, or at a coordinate: main@3#120.")
REQUEST_FORMAT = option(
    "--as FORMAT",
    "JSON: neutral, or a request: anthropic, anthropic-cached, openai-chat, openai-responses.",
)
POLICY_SETTINGS = option(
    "--set KEY=VALUE", "One of the policy's settings.", autocompletion=suggest_settings
)
BRIEF = flag("--brief", "One line a block.")
FULL = flag("--full", "All blocks and facts; of a page, all text as well.")
HTML = option("--html FILE", "Write one page that you can share: a new file.")

_SPAN = re.compile(r"(\d{1,9}(?:\.\d+)?)\s*([smhdw]?)", re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LONGEST_S = 1_000 * 365 * 86_400


def parse_settings(words: Iterable[str]) -> dict[str, str]:
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise InvalidSettingError(f"--set takes KEY=VALUE, not {word!r}")
        settings[name.strip()] = value.strip()
    return settings


def name_input(path: str) -> str:
    return "standard input" if path == STDIN_WORD else path


def read_input_text(path: str) -> str:
    """Read a file or standard input as UTF-8, whatever the locale."""
    where = name_input(path)
    try:
        content = sys.stdin.buffer.read() if path == STDIN_WORD else Path(path).read_bytes()
    except OSError as error:
        raise InvalidSettingError(f"{where} cannot be read: {error.strerror or error}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSettingError(f"{where} is not UTF-8: see byte {error.start:,}") from None


def read_input_json(path: str) -> Any:
    text, where = read_input_text(path), name_input(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidSettingError(f"{where} is not JSON: {error}") from None
    except RecursionError:
        raise InvalidSettingError(f"{where} is nested too deeply") from None


def write_session_page(
    session: StoredSession, path: Path | None, lineage: str | None, *, full: bool
) -> str | None:
    """Write the page if one is wanted, and return its path."""
    if path is None:
        return None
    # Avoid a slow import where no page is written.
    from ...analysis.pages.session_page import write_page  # noqa: PLC0415 - start-up time

    write_page(session, path, lineage=lineage, is_full=full)
    return str(path)


def parse_moment(text: str, option: str, example: str = "a time as 2026-01-31T09:00") -> datetime:
    """Parse a date, or a date and a time; without a zone it is local."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        raise InvalidSettingError(f"{option} takes {example}, not {text!r}") from None


def parse_span(text: str, option: str) -> timedelta:
    """Parse a duration of at most a thousand years; a number without a unit is seconds."""
    said = _SPAN.fullmatch(text.strip())
    if said is None:
        raise InvalidSettingError(f"{option} takes a span as 90s, 20m, 2h or 1d, not {text!r}")
    seconds = float(said[1]) * _SECONDS[said[2].lower()]
    if seconds > _LONGEST_S:
        raise InvalidSettingError(f"{text} is further away than a calendar goes")
    return timedelta(seconds=seconds)


def parse_since(text: str) -> datetime:
    """Parse a date, a date and time, or a duration before now."""
    said = _SPAN.fullmatch(text.strip())
    if said and said[2]:
        return datetime.now(UTC) - parse_span(text, "--since")
    return parse_moment(text, "--since", "a date as 2026-01-31, or a span as 7d")
