"""Implements `search` and `rebuild`."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from ...storage.read_models.search import SearchHit
from .database import open_call_store
from .invocation import Invocation
from .printing import format_count, print_error, print_json, print_text
from .progress_bar import show_progress
from .session_lookup import find_session

_EXCERPT_CHARACTERS = 2_000
"""Events that are read too fast for a progress bar."""


def search(
    call: Invocation,
    query: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY", help="Words; '\"a phrase\"', 'word -without', begin* in quotes."
        ),
    ],
    *,
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Only in this one.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="How many.")] = 20,
) -> None:
    """Find words in everything ever said, hidden or not."""
    words = " ".join(query)
    with open_call_store(call) as store:
        models = store.read_models
        behind = store.events.recorder.max_notification_id() - models.position
        # Show a progress bar only if many events must be read.
        if behind > _EXCERPT_CHARACTERS:
            with show_progress("reading what is new") as progress:
                models.catch_up(progress)
        namespace = call.named
        if session is not None:
            namespace = call.namespace
            session = find_session(store, session, namespace).key
        found = store.search(words, session=session, namespace=namespace, limit=limit)
        anew, file, position = models.rebuild_reason, models.name, models.position
    if anew:
        print_error(f"{anew}, and is rebuilt")
    if call.as_json:
        print_json(
            {
                "query": words,
                "read_models": file,
                "position": position,
                "made_anew": anew,
                "found": [hit_to_json(one) for one in found],
            }
        )
    elif found:
        for one in found:
            _print_hit(one)
        whole = f"`cutbank recall {found[0].session} {found[0].position or 'HANDLE'}`"
        print_text(f"{format_count(len(found), 'block')}; {whole} gives all of one.")
    else:
        print_text(f"Nothing that was said holds {words!r}.")
    if not found:
        raise typer.Exit(1)


def rebuild(call: Invocation) -> None:
    """Make the read models anew from the log."""
    with open_call_store(call) as store:
        models = store.read_models
        began = perf_counter()
        with show_progress("reading the log") as progress:
            # Each event is read twice, for the index and for search.
            events = models.rebuild(progress) // 2
        seconds = perf_counter() - began
        (counts,) = models.file.fetch_rows(
            "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM blocks)"
        )
        document: dict[str, Any] = {
            "database": store.name,
            "read_models": models.name,
            "position": models.position,
            "events": events,
            "sessions": counts[0],
            "blocks": counts[1],
            "seconds": round(seconds, 3),
        }
    file = Path(models.name)
    document["bytes"] = file.stat().st_size if file.exists() else 0
    if call.as_json:
        print_json(document)
    else:
        read = ", ".join(
            format_count(document[f"{thing}s"], thing) for thing in ("session", "block")
        )
        print_text(f"{models.name} is rebuilt from {format_count(events, 'event')}: {read}")


def hit_to_json(found: SearchHit) -> dict[str, Any]:
    """Return a hit as `search --json` prints it."""
    return {
        "session": found.session,
        "namespace": found.namespace,
        "handle": found.handle,
        "position": found.position,
        "turn": found.turn,
        "kind": found.kind,
        "name": found.name,
        "lineage": found.lineage,
        "boundary": found.boundary,
        "tokens": found.tokens,
        "said_at": found.said_at.isoformat(),
        "snippet": found.snippet.text,
        "marks": [list(mark) for mark in found.snippet.marks],
    }


def _print_hit(found: SearchHit) -> None:
    where = found.handle or f"boundary {found.boundary} on {found.lineage}"
    what = f"{found.kind} {found.name}" if found.name else found.kind
    turn = f", turn {found.turn}" if found.turn else ""
    when = found.said_at.astimezone().strftime("%Y-%m-%d %H:%M")
    print_text(f"{found.session} {where} {what}{turn}, {when}", bold=True)
    print_text(f"    {found.snippet.mark_matches()}")
