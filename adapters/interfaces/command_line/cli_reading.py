"""The verbs that look: what sessions there are, what was logged, what is sent, what left."""

from typing import Annotated

import typer

from ....projections.read_models.moments import moment
from . import coordinates, handles, session_json, session_lines, session_list, session_table
from .database import opened_session, opened_store
from .invocation import Invocation
from .logged_blocks import BlockLog
from .printing import counted, say, say_json
from .session_words import shortest_names
from .times import read_since
from .words import HANDLES, Lineage, SessionName


def sessions(
    call: Invocation,
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="WHEN", help="Where something was said since: 2026-01-31, or 7d."
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="TEXT", help="Whose project holds this text.")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="COLUMN", help=f"By {', '.join(session_table.SORTS)}."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Only the first so many.")
    ] = None,
) -> None:
    """List the sessions: what they are about and what they cost."""
    start = moment(read_since(since)) if since is not None else None
    with opened_store(call) as store:
        found = session_list.all_of(store, call.named)
        found = session_list.add_costs(store, found, call.named)
        name = store.name
    names = shortest_names(one["session"] for one in found)
    # What reads JSON finds the sessions by name, as long as it asks for no other order.
    order = sort or (session_table.NAME if call.as_json and limit is None else session_table.WHEN)
    chosen = session_table.chosen(found, start, project, order)[:limit]
    if call.as_json:
        say_json(chosen)
    elif not found:
        say(f"No sessions yet in {name}.")
        say("Try `cutbank demo`, or `cutbank import PATH` with a transcript or a folder of them.")
    elif not chosen:
        say(f"None of {counted(len(found), 'session')} fits.")
    else:
        session_table.say_sessions(chosen, names)


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
    brief: Annotated[bool, typer.Option("--brief", help="One line a block.")] = False,
) -> None:
    """Show what a model is sent: the summary and the kept blocks."""
    with opened_session(call, session) as found:
        place = coordinates.looked_at(found, at, lineage, lineage_version)
        seen = found.view(lineage=place.lineage, at=place.position, lineage_version=place.version)
        if call.as_json or form is not None:
            say_json(session_json.viewed(seen, form or "neutral"))
        else:
            session_lines.say_view(seen, brief=brief)


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
