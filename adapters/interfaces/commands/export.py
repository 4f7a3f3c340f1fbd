"""Implements `export`, `formats` and `reread`: sessions in other formats, sources read again."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import ExportError
from ...runtime.archives import write_archive
from ...runtime.exporter import export as export_session
from ...runtime.importing.reread import ChangedEntry, ReadBlock, RereadReport
from ...runtime.importing.reread import reread as reread_session
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...transcripts.formats.catalog import ARCHIVE_FORMAT, FORMATS
from ...transcripts.reports import ExportReport
from ..command_line.options import FULL, SESSION, suggest_formats, suggest_sessions
from ..command_line.printing import (
    escape_controls,
    format_count,
    print_list,
    print_note,
    print_rows,
    print_text,
)
from ..command_line.sessions import find_session, open_call_session, open_call_store
from ..command_line.verbs import Answer, Invocation, argument, flag, option

_MAX_ENTRIES = 20
"""Entries read otherwise that `reread` lists without --full."""


def export(
    call: Invocation,
    keys: list[str] | None = argument(
        "SESSION",
        "One; several only for cutbank's own archive.",
        None,
        autocompletion=suggest_sessions,
    ),
    *,
    to: str = option(
        "--to FORMAT",
        "The format to write; `cutbank formats` lists them.",
        ...,
        autocompletion=suggest_formats,
    ),
    out: Path | None = option("--out PATH", "A new file or folder; else standard output."),
    view: bool = flag("--view", "What a model would be sent now, and not all of the log."),
    lineage: str = option(
        "--lineage NAME", "The lineage whose compactions are written.", MAIN_LINEAGE
    ),
    every: bool = flag("--all", "Every session, of the namespace if one is named."),
    sub_agents: bool = flag("--sub-agents", "In an archive: include their sub-agents' sessions."),
) -> Answer:
    if out is None and call.as_json:
        raise ExportError("--json answers with a report: name a file for the session with --out")
    with open_call_store(call) as store:
        sessions = _find_sessions(store, call, keys or [], every=every)
        shown = BytesIO() if out is None and sys.stdout.isatty() else None
        target = out or shown or sys.stdout.buffer
        if to == ARCHIVE_FORMAT:
            if view:
                raise ExportError("an archive holds the log: leave out --view")
            report = write_archive(sessions, target, sub_agents=sub_agents)
        elif len(sessions) != 1 or sub_agents:
            raise ExportError(f"{to} holds one session: name one, or write a {ARCHIVE_FORMAT}")
        else:
            report = export_session(sessions[0], to, target, view=view, lineage=lineage)
        if shown is not None:
            sys.stdout.write(escape_controls(shown.getvalue().decode(errors="replace")))
        if out is None:
            sys.stdout.buffer.flush()  # report success only after the output is written
    return Answer(asdict(report), partial(_print_report, report))


def formats(_call: Invocation) -> Answer:
    listed: list[dict[str, Any]] = [
        {
            "name": one.name,
            "what": one.description,
            "read": True,
            "write": one.write is not None,
            "follow": one.begin_reading is not None,
            "folder": one.is_folder,
            "homes": list(one.home_patterns),
        }
        for one in FORMATS.values()
    ]
    own = {"name": ARCHIVE_FORMAT, "what": "sessions whole, of cutbank itself"}
    can = {"read": True, "write": True, "follow": False, "folder": False}
    listed.append(own | can | {"homes": []})
    rows = [
        {
            "format": one["name"],
            **{name: one[name] for name in ("read", "write", "follow", "what")},
            "where its agent keeps them": ", ".join(one["homes"]),
        }
        for one in listed
    ]
    return Answer(listed, partial(print_rows, rows))


def _find_sessions(
    store: SessionStore, call: Invocation, keys: list[str], *, every: bool
) -> list[StoredSession]:
    if every == bool(keys):
        raise ExportError("name the sessions to write, or say --all")
    if every:
        return store.sessions(call.named)
    return [find_session(store, key, call.namespace) for key in keys]


def _print_report(report: ExportReport) -> None:
    # The session may go to standard output, so messages do not.
    where = f" to {report.path}" if report.path else ""
    if report.of == "archive":
        said = f"{format_count(len(report.sessions), 'session')} in one {report.format}"
    else:
        said = f"{report.session}: the {report.of} as {report.format}"
    print_note(f"{said}{where}, {report.bytes:,} bytes")
    for thing, count in report.lost.items():
        print_note(f"    {report.format} cannot hold {thing}: {count:,} left out")


def reread(
    call: Invocation,
    session: str = SESSION,
    *,
    into: str | None = option("--into NAMESPACE", "Store the new reading there, by the same name."),
    full: bool = FULL,
) -> Answer:
    """The session stays as it is; without --into nothing is stored."""
    with open_call_session(call, session) as found:
        report = reread_session(found, into=into)
    return Answer(asdict(report), partial(_print_reading, report, None if full else _MAX_ENTRIES))


def _print_reading(report: RereadReport, most: int | None) -> None:
    for line in _list_totals(report):
        print_text(line)
    hint = ": --full lists all"
    rows = [_make_row(entry, report) for entry in report.changed]
    print_rows(rows, "read otherwise than before", most, hint)
    print_list("not read", report.errors, most, hint)


def _list_totals(report: RereadReport) -> Iterator[str]:
    files = format_count(len(report.files), "file")
    lines = format_count(len(report.changed), "entry")
    blocks = format_count(report.blocks, "block")
    yield f"{report.session}: {files} read again: {blocks} as before, {lines} read otherwise"
    if report.into is not None:
        names = ", ".join(f"{report.into}/{key}" for key in report.sessions)
        yield f"stored as {names}"


def _make_row(entry: ChangedEntry, report: RereadReport) -> dict[str, object]:
    return {
        "session": entry.session if len(report.sessions) > 1 else "",
        "file": entry.file if len(report.files) > 1 else "",
        "line": entry.line,
        "before": _format_blocks(entry.before),
        "now": _format_blocks(entry.now),
    }


def _format_blocks(blocks: Iterable[ReadBlock]) -> str:
    return ", ".join(
        f"{block.kind} {block.handle} of {format_count(block.characters, 'character')}"
        + (", retracted" if block.retracted else "")
        for block in blocks
    )
