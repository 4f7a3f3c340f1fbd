"""The verbs that look: what sessions there are, what was logged, what is sent, what left."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from . import coordinates, handles, session_json, session_lines, session_list
from .database import opened_session, opened_store
from .invocation import Invocation
from .logged_blocks import BlockLog
from .printing import clipped, say, say_json, say_table
from .words import HANDLES, Lineage, SessionName

COLUMNS = {
    "session": "session",
    "source": "source",
    "turn": "turns",
    "blocks": "blocks",
    "tokens": "tokens",
    "open_calls": "open",
    "prepared": "prepared",
    "incomplete": "import",
    "idle": "idle",
    "title": "title",
}
"""What the list of sessions shows, and above it."""
TITLE = 40


def sessions(call: Invocation) -> None:
    """List the sessions: how long they are, and what is open."""
    with opened_store(call) as store:
        found = session_list.all_of(store, call.named)
        name = store.name
    if call.as_json:
        say_json(found)
    elif not found:
        say(f"No sessions yet in {name}.")
        say("Try `cutbank demo`, or `cutbank import PATH` with a transcript or a folder of them.")
    else:
        # What no session has needs no column.
        shown = [name for name in COLUMNS if any(one[name] for one in found)]
        if len({one["namespace"] for one in found}) > 1:
            shown.insert(0, "namespace")
        headings = [COLUMNS.get(name, name) for name in shown]
        say_table(headings, [[_cell(name, one) for name in shown] for one in found])


def show(
    call: Invocation,
    session: SessionName,
    *,
    start: Annotated[
        str | None, typer.Option("--from", metavar="HANDLE", help="The first block to show.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="HANDLE", help="The last block to show.")
    ] = None,
    lineage: Lineage = "main",
    brief: Annotated[bool, typer.Option("--brief", help="One line a block.")] = False,
) -> None:
    """Show the whole log, with what became of each block."""
    with opened_session(call, session) as found:
        log = BlockLog(found, lineage)
        first = 1 if start is None else handles.position(start, log.newest)
        last = log.position if end is None else handles.position(end, log.newest)
        blocks = log.between(first, last)
        if call.as_json:
            say_json(session_json.logged(log, blocks))
        else:
            session_lines.say_log(log, blocks, brief=brief)


def view(
    call: Invocation,
    session: SessionName,
    *,
    lineage: Lineage = "main",
    at: Annotated[str | None, typer.Option("--at", metavar="HANDLE", help=coordinates.HELP)] = None,
    lineage_version: Annotated[
        int | None,
        typer.Option(
            "--lineage-version", min=0, max=2**53, help="As it was at this version of the lineage."
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="JSON: neutral, or a request: anthropic, anthropic-cached, openai-chat, "
            "openai-responses.",
        ),
    ] = None,
) -> None:
    """Show what a model is sent: the summary and the kept blocks."""
    with opened_session(call, session) as found:
        place = coordinates.looked_at(found, at, lineage, lineage_version)
        seen = found.view(lineage=place.lineage, at=place.position, lineage_version=place.version)
        if call.as_json or form is not None:
            say_json(session_json.viewed(seen, form or "neutral"))
        else:
            session_lines.say_view(seen)


def recall(
    call: Invocation,
    session: SessionName,
    handle: Annotated[list[str] | None, typer.Argument(metavar="HANDLE", help=HANDLES)] = None,
    search: Annotated[
        str | None,
        typer.Option("--search", metavar="TEXT", help="Only blocks that hold it, in any case."),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="The text byte for byte, with nothing around it.")
    ] = False,
) -> None:
    """Give back originals by their handles, in the view or not."""
    with opened_session(call, session) as found:
        wanted = [handles.parsed(handle, BlockLog(found).newest)] if handle else []
        blocks = found.recall(*wanted, search=search)
        if call.as_json:
            say_json(session_json.recalled(found, blocks, search))
        elif raw:
            session_lines.write_raw(blocks)
        elif blocks:
            session_lines.say_recalled(blocks, search)
        else:
            where = " ".join(map(str, wanted)) or "the session"
            say(f"No block in {where}" + (f" holds {search!r}." if search else "."))
    if not blocks:
        raise typer.Exit(1)


def _cell(name: str, session: Mapping[str, Any]) -> str | int:
    value = session[name]
    if name == "title":
        return clipped(value or "", TITLE)
    if name == "incomplete":
        return "interrupted" if value else ""
    if name == "idle":
        return session_list.idle_in_words(session)
    return value if isinstance(value, int) else str(value or "")
