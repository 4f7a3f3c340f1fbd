"""Implements the upkeep of a database: checks, copies, work in idle hours, and erasure."""

import getpass
import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import typer

from ....domain.errors import InvalidSettingError, NegativeAnswerError
from ...analysis.verifier import verify as verify_log
from ...runtime.erasing import ErasureReport
from ...runtime.idle.idle_status import IdleStatus, get_idle_status
from ...runtime.sessions.session_store import SessionStore
from ...transcripts.reports import VerificationReport
from ..command_line.options import SESSION
from ..command_line.printing import (
    escape_controls,
    format_count,
    format_value,
    list_fields,
    print_fields,
    print_rows,
    show_progress,
)
from ..command_line.sessions import (
    find_session,
    list_all,
    name_to_json,
    open_call_session,
    open_call_store,
)
from ..command_line.verbs import Answer, Invocation, argument, flag, option

_MAX_NAMES = 20
"""How many sessions the text names."""
BY = option("--by NAME", "Who wants it; else the user who runs the command.")
REASON = option("--reason TEXT", "Why, for the record.")


def verify(
    call: Invocation,
    session: str | None = argument("SESSION", "One session; else all.", None),
    adopt: bool = flag("--adopt", "Accept a copy that was made in use, if it is whole."),
) -> Answer:
    with open_call_store(call, adopts=adopt) as store:
        one = None if session is None else find_session(store, session, call.namespace)
        with show_progress("verifying") as progress:
            verdict = verify_log(store, one, progress=progress)
    lines = []
    for found in verdict.violations:
        where = found.session + (f" on {found.lineage}" if found.lineage else "")
        at = f" #{found.position}" if found.position else ""
        lines.append(f"{where}{at}: {found.rule}: {found.what}")
    document = verdict_to_json(verdict)
    return Answer(document, *lines, describe_verdict(document), is_good=verdict.is_ok)


def backup(call: Invocation, file: Path = argument("FILE", "A new file.")) -> Answer:
    with open_call_store(call) as store:
        store.backup(file)
        source = store.name
    size = file.stat().st_size
    document = {"database": source, "backup": str(file), "bytes": size}
    return Answer(document, f"{source} is copied to {file}, {size:,} bytes")


def rebuild(call: Invocation) -> Answer:
    with open_call_store(call) as store:
        models = store.read_models
        began = perf_counter()
        with show_progress("reading the log") as progress:
            # Each event is read twice, for the index and for search.
            events = models.rebuild(progress) // 2
        seconds = perf_counter() - began
        ((sessions, blocks),) = models.file.fetch_rows(
            "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM blocks)"
        )
        document: dict[str, Any] = {
            "database": store.name,
            "read_models": models.name,
            "position": models.position,
            "events": events,
            "sessions": sessions,
            "blocks": blocks,
            "seconds": round(seconds, 3),
        }
    file = Path(models.name)
    document["bytes"] = file.stat().st_size if file.exists() else 0
    read = f"{format_count(sessions, 'session')}, {format_count(blocks, 'block')}"
    return Answer(
        document, f"{models.name} is rebuilt from {format_count(events, 'event')}: {read}"
    )


def verdict_to_json(verdict: VerificationReport) -> dict[str, Any]:
    return {"ok": verdict.is_ok, **asdict(verdict)}


def describe_verdict(verdict: Mapping[str, Any]) -> str:
    """Describe a verification as `verify --json` has it."""
    outcome = "all is well" if verdict["ok"] else f"violations {len(verdict['violations']):,}"
    counts = {name: verdict[name] for name in ("sessions", "positions", "boundaries", "calls")}
    return f"{outcome}: {format_value(counts)}"


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


if TYPE_CHECKING:
    from ...runtime.idle.idle_worker import IdleWorker


def idle(
    call: Invocation,
    *,
    status: bool = flag("--status", "Say how the work stands, and do nothing."),
    last: int = option("--last", "How many of each kind --status names.", 5, min=1, max=1_000),
    once: bool = flag("--once", "Do what is due now, then exit: 1 if anything failed, else 0."),
    health: Path | None = option("--health FILE", "Says every few seconds how it does."),
    grace: float = option("--grace SECONDS", "For what runs, when it is to end.", 30.0, min=0),
    log: Literal["text", "json"] = option("--log", "The form of lines on stderr.", "text"),
    verbose: bool = flag("--verbose -v", "Log each look and each beginning."),
    quiet: bool = flag("--quiet -q", "Log warnings only."),
    namespace: list[str] | None = option(
        "--namespace NAME", "For idle.namespaces of the settings; may be repeated."
    ),
) -> Answer:
    if once and health is not None:
        raise InvalidSettingError("--once ends by itself: --health is for a worker that goes on")
    if named := namespace or ([call.named] if call.named else []):
        # The settings are read from the environment when the store is opened.
        os.environ["CUTBANK_IDLE_NAMESPACES"] = json.dumps(named)
    if status:
        with open_call_store(call) as store:
            found = get_idle_status(store, last=last)
        return Answer(found.to_json(), partial(_print_status, found))
    # Slow imports that `--status` does not need.
    from ...runtime.idle.foreground import run_worker  # noqa: PLC0415 - start-up time
    from ...runtime.idle.notices import log_notice, log_to_stderr  # noqa: PLC0415 - start-up time

    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    with log_to_stderr(log, level):
        with open_call_store(call) as store:
            ended = run_worker(
                store, once=once, listeners=[log_notice], health=health, grace_s=grace
            )
            if ended.running_attempts:
                _answer_run(ended, {}).print(as_json=call.as_json)
                # Closing the store would wait for work that never ends; its leases expire.
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(1)
        answer = _answer_run(ended, _count_session_states(call) if once else {})
    answer.is_good = ended.has_succeeded or not once
    return answer


def _answer_run(ended: "IdleWorker", left_alone: Mapping[str, int]) -> Answer:
    counts = {**ended.counts, "left_running": len(ended.running_attempts)}
    about = {"workers": [ended.name], "trouble": ended.trouble, "left_alone": left_alone}
    shown = {name: count for name, count in counts.items() if count}
    fields = list_fields(shown | {"trouble": ended.trouble, "left_alone": left_alone})
    nothing = [] if shown else ["nothing was to be done"]
    return Answer(counts | about, *nothing, partial(print_fields, fields))


def _count_session_states(call: Invocation) -> dict[str, int]:
    with open_call_store(call) as store:
        spaces = store.settings.idle.namespaces
        listed = list_all(store, None)
    return Counter(
        one["idle"] for one in listed if one["idle"] and (not spaces or one["namespace"] in spaces)
    )


def _print_status(status: IdleStatus) -> None:
    """Print the counts, and a table of the sessions of each kind."""
    document = asdict(status)
    tables = {name: rows for name, rows in document.items() if isinstance(rows, list)}
    print_fields(list_fields({name: document[name] for name in document if name not in tables}))
    for name, rows in tables.items():
        print_rows(rows, name.replace("_", " "))
