"""Implements `verify`, `backup` and `rebuild`, which check and keep a database."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from ...analysis.verifier import verify as verify_log
from ...transcripts.reports import VerificationReport
from ..command_line.printing import format_count, format_value, show_progress
from ..command_line.sessions import find_session, open_call_store
from ..command_line.verbs import Answer, Invocation, argument, flag


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
