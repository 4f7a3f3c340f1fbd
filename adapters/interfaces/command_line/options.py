"""Defines the options that several verbs share, completes them, and parses their texts."""

import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import typer

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import CutbankError, InvalidSettingError
from ....domain.policies.catalog import DEFAULT_POLICY, find_alias
from ....domain.policies.policy import get_presets
from ....domain.settings import NO_VALUE, SettingInfo, list_settings
from ...runtime.sessions.stored_session import StoredSession
from .verbs import Invocation, argument, flag, option

Suggestions = list[tuple[str, str]]
"""Words with their descriptions."""


def suggest_policies(incomplete: str) -> Suggestions:
    """Suggest `NAME` and `NAME@PRESET` of every policy, including its alias."""
    from ...settings.policy_catalog import list_policies  # noqa: PLC0415 - start-up time

    named = [
        (f"{name}{preset}", getattr(policy, "source", ""))
        for policy in list_policies().values()
        for name in filter(None, (policy.name, find_alias(policy)))
        for preset in ("", *(f"@{preset}" for preset in get_presets(policy)))
    ]
    return _match_suggestions(incomplete, named)


def suggest_settings(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Suggest `KEY=` for the chosen or default policy; after it the values, if they are few."""
    from ...settings.policy_catalog import find_policy_class  # noqa: PLC0415 - start-up time

    try:
        policy = find_policy_class((ctx.params.get("policy") or DEFAULT_POLICY).partition("@")[0])
    except CutbankError:
        return []
    return _match_suggestions(incomplete, _setting_pairs(list_settings(policy)))


def suggest_formats(incomplete: str) -> Suggestions:
    from ...transcripts.formats import catalog  # noqa: PLC0415 - start-up time

    named = [(one.name, one.description) for one in catalog.FORMATS.values() if one.write]
    return _match_suggestions(incomplete, [*named, (catalog.ARCHIVE_FORMAT, "sessions whole")])


def suggest_sessions(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Suggest the sessions of the chosen database; none if it cannot be read."""
    from .sessions import open_call_store  # noqa: PLC0415 - start-up time

    call = Invocation(db=_read_option(ctx, "db"), settings_file=_read_option(ctx, "settings_file"))
    namespace = _read_option(ctx, "namespace") or call.namespace
    try:
        with open_call_store(call) as store:
            names = [session.key for session in store.sessions(namespace)]
    except (CutbankError, OSError):
        return []
    # Leave out names that a shell would have to quote.
    plain = ((name, "") for name in names if shlex.quote(name) == name)
    return _match_suggestions(incomplete, plain)


def _setting_pairs(settings: Iterable[SettingInfo]) -> Iterator[tuple[str, str]]:
    for one in settings:
        yield f"{one.name}=", one.help
        values = [*one.among, *(["true", "false"] if one.value_type is bool else [])]
        for value in [*values, *([NO_VALUE] if one.may_be_none else [])]:
            yield f"{one.name}={value}", one.help


def _match_suggestions(incomplete: str, words: Iterable[tuple[str, str]]) -> Suggestions:
    return [(word, about) for word, about in words if word.startswith(incomplete)]


def _read_option(ctx: typer.Context, name: str) -> str | None:
    """Return a shared option: the last value given, before or after the verb."""
    return ctx.params.get(name) or ctx.find_root().params.get(name)


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


def read_input(path: str) -> bytes:
    """Read a file or standard input."""
    try:
        return sys.stdin.buffer.read() if path == STDIN_WORD else Path(path).read_bytes()
    except OSError as error:
        raise InvalidSettingError(
            f"{name_input(path)} cannot be read: {error.strerror or error}"
        ) from None


def read_input_text(path: str) -> str:
    """Read a file or standard input as UTF-8, whatever the locale."""
    try:
        return read_input(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSettingError(
            f"{name_input(path)} is not UTF-8: see byte {error.start:,}"
        ) from None


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
    from ...analysis.session_page import write_page  # noqa: PLC0415 - start-up time

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
