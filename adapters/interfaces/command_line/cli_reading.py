"""Implements the verbs that read: `sessions`, `show`, `view` and `recall`."""

from typing import Annotated

import typer

from ....projections.read_models.timestamps import format_timestamp
from . import coordinates, handle_parsing, session_json, session_lines, session_list, session_table
from .database import open_call_session, open_call_store
from .invocation import Invocation
from .logged_blocks import BlockLog
from .printing import format_count, print_json, print_text
from .session_lookup import shorten_names
from .shared_options import HANDLES_HELP, LineageOption, SessionArgument
from .time_parsing import parse_since


def sessions(
    call: Invocation,
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="WHEN",
            help="Where something was said since: 2026-01-31, or 7d.",
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="TEXT", help="Whose project holds this text.")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="COLUMN", help=f"By {', '.join(session_table.SORT_FIELDS)}."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help="Only the first so many."),
    ] = None,
) -> None:
    """List the sessions: what they are about and what they cost."""
    start = format_timestamp(parse_since(since)) if since is not None else None
    with open_call_store(call) as store:
        found = session_list.list_all(store, call.named)
        found = session_list.add_costs(store, found, call.named)
        name = store.name
    names = shorten_names(one["session"] for one in found)
    # JSON is sorted by name unless another order is requested.
    order = sort or (
        session_table.SORT_BY_NAME if call.as_json and limit is None else session_table.SORT_BY_TIME
    )
    chosen = session_table.choose_sessions(found, start, project, order)[:limit]
    if call.as_json:
        print_json(chosen)
    elif not found:
        print_text(f"No sessions yet in {name}.")
        print_text(
            "Try `cutbank demo`, or `cutbank import PATH` with a transcript or a folder of them."
        )
    elif not chosen:
        print_text(f"None of {format_count(len(found), 'session')} fits.")
    else:
        session_table.print_sessions(chosen, names)


def show(
    call: Invocation,
    session: SessionArgument,
    *,
    start: Annotated[
        str | None, typer.Option("--from", metavar="HANDLE", help="The first block to show.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="HANDLE", help="The last block to show.")
    ] = None,
    lineage: LineageOption = "main",
    brief: Annotated[bool, typer.Option("--brief", help="One line a block.")] = False,
) -> None:
    """Show the whole log, with what became of each block."""
    with open_call_session(call, session) as found:
        log = BlockLog(found, lineage)
        first = 1 if start is None else handle_parsing.parse_handle(start, log.find_newest)
        last = log.position if end is None else handle_parsing.parse_handle(end, log.find_newest)
        blocks = log.read_between(first, last)
        if call.as_json:
            print_json(session_json.log_to_json(log, blocks))
        else:
            session_lines.print_log(log, blocks, brief=brief)


def view(
    call: Invocation,
    session: SessionArgument,
    *,
    lineage: LineageOption = "main",
    at: Annotated[
        str | None, typer.Option("--at", metavar="HANDLE", help=coordinates.COORDINATE_HELP)
    ] = None,
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
    with open_call_session(call, session) as found:
        place = coordinates.read_view_place(found, at, lineage, lineage_version)
        seen = found.view(lineage=place.lineage, at=place.position, lineage_version=place.version)
        if call.as_json or form is not None:
            print_json(session_json.view_to_json(seen, form or "neutral"))
        else:
            session_lines.print_view(seen, brief=brief)


def recall(
    call: Invocation,
    session: SessionArgument,
    handle: Annotated[list[str] | None, typer.Argument(metavar="HANDLE", help=HANDLES_HELP)] = None,
    search: Annotated[
        str | None,
        typer.Option("--search", metavar="TEXT", help="Only blocks that hold it, in any case."),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="The text byte for byte, with nothing around it.")
    ] = False,
) -> None:
    """Give back originals by their handles, in the view or not."""
    with open_call_session(call, session) as found:
        wanted = (
            [handle_parsing.parse_handles(handle, BlockLog(found).find_newest)] if handle else []
        )
        blocks = found.recall(*wanted, search=search)
        if call.as_json:
            print_json(session_json.recalled_to_json(found, blocks, search))
        elif raw:
            session_lines.write_raw(blocks)
        elif blocks:
            session_lines.print_recalled(blocks, search)
        else:
            where = " ".join(map(str, wanted)) or "the session"
            print_text(f"No block in {where}" + (f" holds {search!r}." if search else "."))
    if not blocks:
        raise typer.Exit(1)
