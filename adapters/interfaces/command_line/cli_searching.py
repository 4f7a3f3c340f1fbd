"""The verbs of the read models: search all that was ever said, and make them anew."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from ...storage.read_models.search import Found
from .database import opened_store
from .invocation import Invocation
from .printing import complain, counted, say, say_json
from .progress_bar import progress_bar
from .session_words import find_session

SHORT = 2_000
"""Events that are read before anybody would look for a progress bar."""


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
    with opened_store(call) as store:
        models = store.read_models
        behind = store.events.recorder.max_notification_id() - models.position
        # Only who has a long way to go says how far it is.
        if behind > SHORT:
            with progress_bar("reading what is new") as progress:
                models.catch_up(progress)
        namespace = call.named
        if session is not None:
            namespace = call.namespace
            session = find_session(store, session, namespace).key
        found = store.search(words, session=session, namespace=namespace, limit=limit)
        anew, file, position = models.made_anew, models.name, models.position
    if anew:
        complain(f"{anew}, and is made anew")
    if call.as_json:
        say_json(
            {
                "query": words,
                "read_models": file,
                "position": position,
                "made_anew": anew,
                "found": [as_json(one) for one in found],
            }
        )
    elif found:
        for one in found:
            _say_found(one)
        whole = f"`cutbank recall {found[0].session} {found[0].position or 'HANDLE'}`"
        say(f"{counted(len(found), 'block')}; {whole} gives all of one.")
    else:
        say(f"Nothing that was said holds {words!r}.")
    if not found:
        raise typer.Exit(1)


def rebuild(call: Invocation) -> None:
    """Make the read models anew from the log."""
    with opened_store(call) as store:
        models = store.read_models
        began = perf_counter()
        with progress_bar("reading the log") as progress:
            events = models.rebuild(progress) // 2  # each is read for the index and for search
        seconds = perf_counter() - began
        (counts,) = models.file.rows(
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
        say_json(document)
    else:
        read = ", ".join(counted(document[f"{thing}s"], thing) for thing in ("session", "block"))
        say(f"{models.name} is made anew from {counted(events, 'event')}: {read}")


def as_json(found: Found) -> dict[str, Any]:
    """One thing that was found, as `search --json` says it."""
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


def _say_found(found: Found) -> None:
    where = found.handle or f"boundary {found.boundary} on {found.lineage}"
    what = f"{found.kind} {found.name}" if found.name else found.kind
    turn = f", turn {found.turn}" if found.turn else ""
    when = found.said_at.astimezone().strftime("%Y-%m-%d %H:%M")
    say(f"{found.session} {where} {what}{turn}, {when}", bold=True)
    say(f"    {found.snippet.marked()}")
