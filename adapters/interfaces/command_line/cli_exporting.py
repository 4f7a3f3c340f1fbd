"""The verb that writes a session in the format of another agent."""

import sys
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from ....domain.compaction import MAIN
from ....domain.errors import ExportError
from ...runtime.archive import writer as archive
from ...runtime.exporting.exporter import export as export_session
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...transcripts.reports import ExportReport
from .completing import format_names, session_names
from .database import opened_store
from .invocation import Invocation
from .printing import counted, readable, remark, say_json
from .session_words import find_session


def export(
    call: Invocation,
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SESSION",
            help="One; several only for cutbank's own archive.",
            autocompletion=session_names,
        ),
    ] = None,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="The format to write; `cutbank formats` lists them.",
            autocompletion=format_names,
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
    ] = MAIN,
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
    with opened_store(call) as store:
        sessions = _named(store, call, keys or [], every=every)
        shown = BytesIO() if out is None and sys.stdout.isatty() else None
        target = out or shown or sys.stdout.buffer
        if to == archive.NAME:
            if view:
                raise ExportError("an archive holds the log: leave out --view")
            report = archive.write_archive(sessions, target, sub_agents=sub_agents)
        elif len(sessions) != 1 or sub_agents:
            raise ExportError(f"{to} holds one session: name one, or write a {archive.NAME}")
        else:
            report = export_session(sessions[0], to, target, view=view, lineage=lineage)
        if shown is not None:
            sys.stdout.write(readable(shown.getvalue().decode(errors="replace")))
        if out is None:
            sys.stdout.buffer.flush()  # nothing is said to be written that is not
    if call.as_json:
        say_json(asdict(report))
    else:
        _say_report(report)


def _named(
    store: SessionStore, call: Invocation, keys: list[str], *, every: bool
) -> list[StoredSession]:
    if every == bool(keys):
        raise ExportError("name the sessions to write, or say --all")
    if every:
        return store.sessions(call.named)
    return [find_session(store, key, call.namespace) for key in keys]


def _say_report(report: ExportReport) -> None:
    # What is written may be on standard output: what is said of it is not.
    where = f" to {report.path}" if report.path else ""
    if report.of == "archive":
        said = f"{counted(len(report.sessions), 'session')} in one {report.format}"
    else:
        said = f"{report.session}: the {report.of} as {report.format}"
    remark(f"{said}{where}, {report.bytes:,} bytes")
    for thing, count in report.lost.items():
        remark(f"    {report.format} cannot hold {thing}: {count:,} left out")
