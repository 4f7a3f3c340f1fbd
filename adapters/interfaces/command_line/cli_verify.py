"""Implements `verify` and `backup`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ...analysis.verifier import verify as verdict_on
from ...transcripts.reports import VerificationReport
from .database import open_call_store
from .invocation import Invocation
from .printing import format_count, print_json, print_text
from .progress_bar import show_progress
from .session_lookup import find_session


def verify(
    call: Invocation,
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="One session; else all.")
    ] = None,
    *,
    adopt: Annotated[
        bool,
        typer.Option("--adopt", help="Accept a copy that was made in use, if it is whole."),
    ] = False,
) -> None:
    """Prove that nothing was lost and nothing changed."""
    with open_call_store(call, adopts=adopt) as store:
        one = None
        if session is not None:
            one = find_session(store, session, call.namespace)
        with show_progress("verifying") as progress:
            verdict = verdict_on(store, one, progress=progress)
    if call.as_json:
        print_json(verdict_to_json(verdict))
    else:
        _print_verdict(verdict)
    if not verdict.is_ok:
        raise typer.Exit(1)


def backup(
    call: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")],
) -> None:
    """Copy the database into a new file, while others write on."""
    with open_call_store(call) as store:
        store.backup(file)
        source = store.name
    size = file.stat().st_size
    if call.as_json:
        print_json({"database": source, "backup": str(file), "bytes": size})
    else:
        print_text(f"{source} is copied to {file}, {size:,} bytes")


def verdict_to_json(verdict: VerificationReport) -> dict[str, Any]:
    """Return a verdict as `verify --json` and `demo --json` print it."""
    return {"ok": verdict.is_ok, **asdict(verdict)}


def _print_verdict(verdict: VerificationReport) -> None:
    for found in verdict.violations:
        where = found.session + (f" on {found.lineage}" if found.lineage else "")
        at = f" #{found.position}" if found.position else ""
        print_text(f"{where}{at}: {found.rule}: {found.what}")
    said = "all is well" if verdict.is_ok else format_count(len(verdict.violations), "violation")
    read = (
        format_count(verdict.sessions, "session"),
        format_count(verdict.positions, "event"),
        format_count(verdict.boundaries, "boundary"),
        format_count(verdict.calls, "recorded call"),
    )
    print_text(f"{said}: {', '.join(read)}")
