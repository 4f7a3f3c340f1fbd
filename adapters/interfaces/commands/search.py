"""Implements `search` and `rebuild`, which use the read models."""

from pathlib import Path
from time import perf_counter
from typing import Any

import typer

from ...storage.read_models.search import SearchHit
from ..command_line.printing import (
    format_count,
    pick,
    print_answer,
    print_error,
    print_json,
    print_text,
    show_progress,
)
from ..command_line.sessions import find_session, open_call_store
from ..command_line.verbs import Invocation, argument, option

_QUICK_EVENTS = 2_000
"""Events that are read too fast for a progress bar."""


def search(
    call: Invocation,
    query: list[str] = argument(
        "QUERY", "Words; '\"a phrase\"', 'word -without', begin* in quotes."
    ),
    session: str | None = option("--session SESSION", "Only in this one."),
    limit: int = option("--limit", "How many.", 20, min=1, max=1_000),
) -> None:
    """Find words in everything ever said, hidden or not."""
    words = " ".join(query)
    with open_call_store(call) as store:
        models = store.read_models
        behind = store.events.recorder.max_notification_id() - models.position
        if behind > _QUICK_EVENTS:
            with show_progress("reading what is new") as progress:
                models.catch_up(progress)
        namespace = call.named
        if session is not None:
            namespace = call.namespace
            session = find_session(store, session, namespace).key
        found = store.search(words, session=session, namespace=namespace, limit=limit)
        reason, file, position = models.rebuild_reason, models.name, models.position
    if reason:
        print_error(f"{reason}, and is rebuilt")
    if call.as_json:
        hits = [_hit_to_json(one) for one in found]
        about = {"query": words, "read_models": file, "position": position, "made_anew": reason}
        print_json(about | {"found": hits})
    elif found:
        for one in found:
            _print_hit(one)
        whole = f"`cutbank recall {found[0].session} {found[0].position or 'HANDLE'}`"
        print_text(f"{format_count(len(found), 'block')}; {whole} gives all of one.")
    else:
        print_text(f"No block contains {words!r}.")
    if not found:
        raise typer.Exit(1)


def rebuild(call: Invocation) -> None:
    """Rebuild the read models from the log."""
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
    done = f"{models.name} is rebuilt from {format_count(events, 'event')}: {read}"
    print_answer(call.as_json, document, done)


def _hit_to_json(found: SearchHit) -> dict[str, Any]:
    return {
        **pick(found, "session namespace handle position turn kind name lineage boundary tokens"),
        "said_at": found.said_at.isoformat(),
        "snippet": found.snippet.text,
        "marks": found.snippet.marks,
    }


def _print_hit(found: SearchHit) -> None:
    where = found.handle or f"boundary {found.boundary} on {found.lineage}"
    what = f"{found.kind} {found.name}" if found.name else found.kind
    turn = f", turn {found.turn}" if found.turn else ""
    when = found.said_at.astimezone().strftime("%Y-%m-%d %H:%M")
    print_text(f"{found.session} {where} {what}{turn}, {when}", bold=True)
    print_text(f"    {found.snippet.mark_matches()}")
