"""The verbs that compare: what left a view, and which summary stands for what."""

from typing import Annotated

import typer

from ....projections.diffing.view_diff import ViewDiff
from ...analysis.auditing import diffs
from ...analysis.auditing.lineages import lineages_of, trees_of
from ...analysis.auditing.places import HOW
from ...runtime.sessions.stored_session import StoredSession
from . import coordinates, diff_json, diff_lines, lineage_json, lineage_lines
from .database import opened_session
from .invocation import Invocation
from .page_option import Html, say_page, write_page
from .printing import say, say_json
from .words import Lineage, SessionName

Full = Annotated[
    bool, typer.Option("--full", help="All blocks and facts; of a page, all text as well.")
]


def diff(
    call: Invocation,
    session: SessionName,
    number: Annotated[
        int | None,
        typer.Argument(
            metavar="COMPACTION", min=1, help="Which one, counted from 1; else the newest."
        ),
    ] = None,
    *,
    lineage: Lineage = "main",
    before: Annotated[
        str | None, typer.Option("--from", metavar="VIEW", help=f"The old view: {HOW}.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--to", metavar="VIEW", help="The new view, written likewise.")
    ] = None,
    full: Full = False,
    html: Html = None,
) -> None:
    """Show what left the view, and which facts are lost to it."""
    with opened_session(call, session) as found:
        places = (
            None if word is None else coordinates.place(found, word, lineage)
            for word in (before, after)
        )
        found.log.check_lineage(lineage)
        boundary = None if number is None else diffs.boundary_of(found, number, lineage)
        compared = diffs.compare(found, boundary, lineage, *places)
        counts = _counts(found, compared)
        if html is not None:
            write_page(found, html, lineage, full=full)
    if call.as_json:
        answer = diff_json.as_json(compared, counts)
        say_json({**answer, "page": None if html is None else str(html)})
    else:
        diff_lines.say_diff(compared, counts, most=None if full else diff_lines.MOST)
        say_page(html)


def lineage(
    call: Invocation,
    session: SessionName,
    *,
    named: Annotated[
        str | None,
        typer.Option("--lineage", metavar="NAME", help="Only this one; else all that there are."),
    ] = None,
    html: Html = None,
    full: Full = False,
) -> None:
    """Show which summary stands for what, compaction by compaction."""
    with opened_session(call, session) as found:
        if named is not None:
            found.log.check_lineage(named)
        trees = trees_of(found, [named] if named else lineages_of(found))
        if html is not None:
            write_page(found, html, named, full=full)
    if call.as_json:
        page = None if html is None else str(html)
        answer = {"session": found.key, "namespace": call.namespace, "page": page}
        say_json({**answer, "lineages": [lineage_json.as_json(tree) for tree in trees]})
    elif trees:
        lineage_lines.say_trees(trees, full=full)
        say_page(html)
    else:
        say(f"Nothing was compacted in {found.key} yet: its view is all of the log.")
        say_page(html)


def _counts(session: StoredSession, compared: ViewDiff) -> diff_json.Counts:
    """Which compaction each of the two views begins at; None for a view of all of the log."""
    return tuple(
        diffs.count_of(session, boundary.originator_version, at.lineage) if boundary else None
        for boundary, at in (
            (compared.boundary_before, compared.before),
            (compared.boundary, compared.after),
        )
    )
