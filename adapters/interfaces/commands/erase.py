"""Implements `delete`, `erase` and `retention`, which let sessions go."""

import getpass
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

from ....domain.errors import InvalidSettingError, NegativeAnswerError
from ...runtime.erasing import ErasureReport
from ...runtime.sessions.session_store import SessionStore
from ..command_line.options import SESSION
from ..command_line.printing import escape_controls, format_count
from ..command_line.sessions import find_session, name_to_json, open_call_session, open_call_store
from ..command_line.verbs import Answer, Invocation, argument, flag, option

_MAX_NAMES = 20
"""How many sessions the text names."""
BY = option("--by NAME", "Who wants it; else the user who runs the command.")
REASON = option("--reason TEXT", "Why, for the record.")


def delete(
    call: Invocation, session: str = SESSION, *, by: str | None = BY, reason: str | None = REASON
) -> Answer:
    """Its name is free at once; forks keep what they share. `erase` removes the content, too."""
    with open_call_session(call, session) as found:
        SessionStore(found.log.context).delete(found, by=by or _find_user(), reason=reason)
    return Answer(
        name_to_json(found) | {"deleted": True},
        f"{found.key} is deleted; its content is in the file until it is erased",
    )


def erase(
    call: Invocation,
    session: str | None = argument("SESSION", "The session; one deleted before by its name.", None),
    *,
    subject: str | None = option("--subject NAME", "Instead, all sessions about this subject."),
    forks: bool = flag("--forks", "Erase the forks that share a part of it as well."),
    file: Path | None = option("--in FILE", "Erase it in this backup or archive."),
    yes: bool = flag("--yes", "Do not ask."),
    by: str | None = BY,
    reason: str | None = REASON,
) -> Answer:
    """What stays is the skeleton: types, positions, sizes and digests of the events."""
    if file is not None:
        call = replace(call, db=str(file))
    if (session is None) == (subject is None):
        raise InvalidSettingError("erase takes one of SESSION and --subject NAME")
    with open_call_store(call) as store:
        found = [] if session is None else [_find_key(store, session, call.namespace)]
        erase = partial(store.erase, *found, namespace=call.namespace, subject=subject, forks=forks)
        if not yes:
            _confirm(erase(dry_run=True))
        report = erase(by=by or _find_user(), reason=reason)
    return Answer(report_to_json(report), *_describe(report, "erased"))


def retention(
    call: Invocation,
    *,
    dry_run: bool = flag("--dry-run", "Only say what would be erased."),
    by: str | None = BY,
) -> Answer:
    """The settings, section `retention`, say how long sessions are kept."""
    with open_call_store(call) as store:
        report = store.apply_retention(dry_run=dry_run, by=by or _find_user())
    lines = _describe(report, "to be erased" if dry_run else "erased")
    lines += [f"kept for a younger fork: {key}" for _, key in report.kept_for_forks]
    return Answer(report_to_json(report), *lines)


def _confirm(report: ErasureReport) -> None:
    """Ask whether to erase. Raises NegativeAnswerError if not, or without a terminal to ask on."""
    what = escape_controls("; ".join(_describe(report, "to be erased")))
    if not sys.stdin.isatty():
        raise NegativeAnswerError(f"{what}: nothing was erased, --yes erases it")
    if not typer.confirm(f"{what}\nErase this for good?", err=True):
        raise NegativeAnswerError("nothing was erased")


def report_to_json(report: ErasureReport) -> dict[str, Any]:
    document = asdict(report)
    document["dry_run"] = document.pop("is_dry_run")
    for name in ("sessions", "kept_for_forks"):
        if name in document:
            names = document[name]
            document[name] = [{"namespace": space, "session": key} for space, key in names]
    return {**document.pop("content"), **document}


def _describe(report: ErasureReport, what: str) -> list[str]:
    sessions, content = format_count(len(report.sessions), "session"), report.content
    lines = [
        f"{sessions} {what}: {_list_keys(report.sessions)}"
        if report.sessions
        else f"nothing {what}"
    ]
    if content.events:
        segments = f"{format_count(content.segments, 'segment')} of sources"
        sources = "and sources that nothing else needs" if report.is_dry_run else segments
        lines.append(f"{format_count(content.events, 'event')}, {content.bytes:,} bytes, {sources}")
    lines += [f"still in {path}: erase it there with --in" for path in report.still_in]
    return lines


def _list_keys(names: Sequence[tuple[str, str]]) -> str:
    shown = ", ".join(key for _, key in names[:_MAX_NAMES])
    more = len(names) - _MAX_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown


def _find_key(store: SessionStore, word: str, namespace: str) -> str:
    """Return the key of the session that a word names; of a deleted one, only its whole key."""
    if any(one.lineage is None for one in store.events.recorder.select_deleted(namespace, word)):
        return word
    return find_session(store, word, namespace).key


def _find_user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without names of users
        return None
