"""Implements `diff` and `lineage`."""

from typing import Annotated

import typer

from ....projections.view_diff import ViewDiff
from ...analysis.auditing import diffs
from ...analysis.auditing.diffs import REFERENCE_SYNTAX
from ...analysis.auditing.lineages import list_session_lineages, read_lineage_trees
from ...runtime.sessions.stored_session import StoredSession
from . import coordinates, diff_json, diff_lines, lineage_json, lineage_lines
from .database import open_call_session
from .invocation import Invocation
from .page_option import HtmlOption, print_page_written, write_session_page
from .printing import print_json, print_text
from .shared_options import LineageOption, SessionArgument

Full = Annotated[
    bool, typer.Option("--full", help="All blocks and facts; of a page, all text as well.")
]


def diff(
    call: Invocation,
    session: SessionArgument,
    number: Annotated[
        int | None,
        typer.Argument(
            metavar="COMPACTION", min=1, help="Which one, counted from 1; else the newest."
        ),
    ] = None,
    *,
    lineage: LineageOption = "main",
    before: Annotated[
        str | None,
        typer.Option("--from", metavar="VIEW", help=f"The old view: {REFERENCE_SYNTAX}."),
    ] = None,
    after: Annotated[
        str | None, typer.Option("--to", metavar="VIEW", help="The new view, written likewise.")
    ] = None,
    full: Full = False,
    html: HtmlOption = None,
) -> None:
    """Show what left the view, and which facts are lost to it."""
    with open_call_session(call, session) as found:
        places = (
            None if word is None else coordinates.read_place(found, word, lineage)
            for word in (before, after)
        )
        found.log.check_lineage(lineage)
        boundary = None if number is None else diffs.find_boundary(found, number, lineage)
        compared = diffs.compare(found, boundary, lineage, *places)
        counts = _count_compactions(found, compared)
        if html is not None:
            write_session_page(found, html, lineage, full=full)
    if call.as_json:
        answer = diff_json.diff_to_json(compared, counts)
        print_json({**answer, "page": None if html is None else str(html)})
    else:
        diff_lines.print_diff(compared, counts, most=None if full else diff_lines.MAX_LISTED)
        print_page_written(html)


def lineage(
    call: Invocation,
    session: SessionArgument,
    *,
    named: Annotated[
        str | None,
        typer.Option("--lineage", metavar="NAME", help="Only this one; else all that there are."),
    ] = None,
    html: HtmlOption = None,
    full: Full = False,
) -> None:
    """Show which summary stands for what, compaction by compaction."""
    with open_call_session(call, session) as found:
        if named is not None:
            found.log.check_lineage(named)
        trees = read_lineage_trees(found, [named] if named else list_session_lineages(found))
        if html is not None:
            write_session_page(found, html, named, full=full)
    if call.as_json:
        page = None if html is None else str(html)
        answer = {"session": found.key, "namespace": call.namespace, "page": page}
        print_json({**answer, "lineages": [lineage_json.lineage_to_json(tree) for tree in trees]})
    elif trees:
        lineage_lines.print_trees(trees, full=full)
        print_page_written(html)
    else:
        print_text(f"Nothing was compacted in {found.key} yet: its view is all of the log.")
        print_page_written(html)


def _count_compactions(session: StoredSession, compared: ViewDiff) -> diff_json.CompactionNumbers:
    """Return the compaction that each of the two views begins at; None for a view of all of the
    log.
    """
    return tuple(
        diffs.find_compaction_number(session, boundary.originator_version, at.lineage)
        if boundary
        else None
        for boundary, at in (
            (compared.boundary_before, compared.before),
            (compared.boundary, compared.after),
        )
    )
