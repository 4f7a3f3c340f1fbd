"""The verbs that look after the database: prove that it is whole, and copy it."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ...analysis.verifier import verify as verdict_on
from ...transcripts.reports import Verdict
from .database import opened_store
from .invocation import Invocation
from .printing import counted, say, say_json
from .progress_bar import progress_bar
from .session_words import find_session


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
    with opened_store(call, adopts=adopt) as store:
        one = None
        if session is not None:
            one = find_session(store, session, call.namespace)
        with progress_bar("verifying") as progress:
            verdict = verdict_on(store, one, progress=progress)
    if call.as_json:
        say_json(as_json(verdict))
    else:
        _say_verdict(verdict)
    if not verdict.ok:
        raise typer.Exit(1)


def backup(
    call: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")],
) -> None:
    """Copy the database into a new file, while others write on."""
    with opened_store(call) as store:
        store.backup(file)
        source = store.name
    size = file.stat().st_size
    if call.as_json:
        say_json({"database": source, "backup": str(file), "bytes": size})
    else:
        say(f"{source} is copied to {file}, {size:,} bytes")


def as_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as `verify --json` and `demo --json` say it."""
    return {"ok": verdict.ok, **asdict(verdict)}


def _say_verdict(verdict: Verdict) -> None:
    for found in verdict.violations:
        where = found.session + (f" on {found.lineage}" if found.lineage else "")
        at = f" #{found.position}" if found.position else ""
        say(f"{where}{at}: {found.rule}: {found.what}")
    said = "all is well" if verdict.ok else counted(len(verdict.violations), "violation")
    read = (
        counted(verdict.sessions, "session"),
        counted(verdict.positions, "event"),
        counted(verdict.boundaries, "boundary"),
        counted(verdict.calls, "recorded call"),
    )
    say(f"{said}: {', '.join(read)}")
