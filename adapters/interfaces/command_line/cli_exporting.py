"""Implements `export`: writes a session in another agent's format."""

import sys
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import ExportError
from ...runtime.archive import archive_writer as archive
from ...runtime.exporting.exporter import export as export_session
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...transcripts.reports import ExportReport
from .database import open_call_store
from .invocation import Invocation
from .printing import escape_controls, format_count, print_json, print_note
from .session_lookup import find_session
from .suggestions import suggest_formats, suggest_sessions


def export(
    call: Invocation,
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SESSION",
            help="One; several only for cutbank's own archive.",
            autocompletion=suggest_sessions,
        ),
    ] = None,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="The format to write; `cutbank formats` lists them.",
            autocompletion=suggest_formats,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PATH", help="A new file or folder; else standard output."),
    ] = None,
    view: Annotated[
        bool, typer.Option("--view", help="What a model would be sent now, and not all of the log.")
    ] = False,
    lineage: Annotated[
        str, typer.Option("--lineage", metavar="NAME", help="Whose compactions are told.")
    ] = MAIN_LINEAGE,
    every: Annotated[
        bool, typer.Option("--all", help="Every session, of the namespace if one is named.")
    ] = False,
    sub_agents: Annotated[
        bool, typer.Option("--sub-agents", help="In an archive: whoever works for them, too.")
    ] = False,
) -> None:
    """Write a session in another format, or some as an archive."""
    if out is None and call.as_json:
        raise ExportError("--json answers with a report: name a file for the session with --out")
    with open_call_store(call) as store:
        sessions = _find_sessions(store, call, keys or [], every=every)
        shown = BytesIO() if out is None and sys.stdout.isatty() else None
        target = out or shown or sys.stdout.buffer
        if to == archive.ARCHIVE_FORMAT:
            if view:
                raise ExportError("an archive holds the log: leave out --view")
            report = archive.write_archive(sessions, target, sub_agents=sub_agents)
        elif len(sessions) != 1 or sub_agents:
            raise ExportError(
                f"{to} holds one session: name one, or write a {archive.ARCHIVE_FORMAT}"
            )
        else:
            report = export_session(sessions[0], to, target, view=view, lineage=lineage)
        if shown is not None:
            sys.stdout.write(escape_controls(shown.getvalue().decode(errors="replace")))
        if out is None:
            sys.stdout.buffer.flush()  # report success only after the output is written
    if call.as_json:
        print_json(asdict(report))
    else:
        _print_report(report)


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
