"""Implements `audit`: the history of a session, and what a call was sent."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from ....domain.errors import InvalidSettingError
from ....projections.audit_entries import REFUTED_PROOFS, AuditEntry, ModelCallEntry, RequestProof
from ....projections.rendering.catalog import RENDERERS
from ...analysis.auditing.audit import Audit
from ...analysis.auditing.audit import audit as audit_session
from ...analysis.auditing.audited_call import AuditedCall, audit_call
from ...analysis.auditing.call_index import find_calls
from ...analysis.auditing.diffs import find_compaction_number
from ...runtime.sessions.stored_session import StoredSession
from . import audit_json, audit_lines, coordinates, handle_parsing
from .database import open_call_session
from .invocation import Invocation
from .page_option import HtmlOption, print_page_written, write_session_page
from .printing import print_json, print_json_story
from .shared_options import LineageOption, SessionArgument

_NUMBER = re.compile(r"[0-9]{1,15}")


def audit(
    call: Invocation,
    session: SessionArgument,
    *,
    number: Annotated[
        str | None,
        typer.Option(
            "--call",
            metavar="N",
            help="One call: its number, last, or '#12', the handle of its answer or record.",
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="HANDLE", help="Where the story begins.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="HANDLE", help="Where the story ends.")
    ] = None,
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
        typer.Option("--as", metavar="FORMAT", help="Say the call's request in another format."),
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="One line for each thing.")] = False,
    html: HtmlOption = None,
    full: Annotated[bool, typer.Option("--full", help="Of a page, all text.")] = False,
) -> None:
    """Tell what happened, and prove what models were sent."""
    if form is not None and number is None:
        raise InvalidSettingError("--as says one call's request: name the call with --call")
    if form is not None and form not in RENDERERS:
        raise InvalidSettingError(f"no format {form!r}; there are {', '.join(RENDERERS)}")
    parts = (start, end, at, lineage_version)
    if html is not None and any(part is not None for part in parts):
        raise InvalidSettingError(
            "--html shows a whole session: remove --from, --to, --at and --lineage-version"
        )
    with open_call_session(call, session) as found:
        if number is not None:
            others = (start, end, at, brief, html, full, lineage_version is not None)
            if any(others) or lineage != "main":
                raise InvalidSettingError("--call shows one call: remove the other options")
            _print_call(call, found, _find_call(found, number), form)
            return
        place = coordinates.read_view_place(found, at, lineage, lineage_version)
        told = audit_session(
            found, lineage=place.lineage, at=place.position, lineage_version=place.version
        )
        first, last = (
            None if word is None else coordinates.read_position(found, word)
            for word in (start, end)
        )
        story = told.read_between(first or 1, last)
        if html is not None:
            write_session_page(found, html, place.lineage, full=full)
            if not call.as_json:
                print_page_written(html)
                return
        refuted = _print_story(call, told, story, brief=brief, page=html)
    if refuted:
        raise typer.Exit(1)


def _print_story(
    call: Invocation, told: Audit, story: Iterable[AuditEntry], *, brief: bool, page: Path | None
) -> bool:
    """Print the history, and return whether the log contradicts itself."""
    if not call.as_json:
        proofs = audit_lines.print_story(told, story, brief=brief)
        return any(proofs[proof] for proof in REFUTED_PROOFS)
    proofs = Counter[RequestProof]()
    head = {**audit_json.audit_to_json(told), "page": None if page is None else str(page)}
    print_json_story(head, "story", audit_json.story_to_json(told, _count_proofs(story, proofs)))
    return any(proofs[proof] for proof in REFUTED_PROOFS)


def _count_proofs(
    story: Iterable[AuditEntry], proofs: Counter[RequestProof]
) -> Iterator[AuditEntry]:
    for happening in story:
        if isinstance(happening, ModelCallEntry):
            proofs[happening.sent_view.proof] += 1
        yield happening


def _print_call(
    call: Invocation, session: StoredSession, audited: AuditedCall, form: str | None
) -> None:
    if call.as_json:
        print_json(audit_json.audited_call_to_json(session.key, audited, form))
    else:
        audit_lines.print_call(audited, _find_compaction(session, audited), form)
    if audited.shown.is_refuted:
        raise typer.Exit(1)


def _find_compaction(session: StoredSession, audited: AuditedCall) -> int | None:
    """Return the compaction that the call's view begins at; None if the view is all of the log."""
    if audited.view is None or audited.view.boundary is None:
        return None
    lineage = audited.view.coordinate.lineage
    return find_compaction_number(session, audited.view.boundary.originator_version, lineage)


def _find_call(session: StoredSession, word: str) -> AuditedCall:
    """Return the call that a word names: `12` is the twelfth, `#12` the one at that handle."""
    if word.strip().startswith("#"):
        return audit_call(session, at=handle_parsing.parse_handle(word, _fail_if_asked))
    if word.strip().lower() == "last":
        return audit_call(session, len(find_calls(session).read_calls()))
    if not _NUMBER.fullmatch(word.strip()):
        raise InvalidSettingError(f"{word!r} is no call: write 12, last, or '#12'")
    return audit_call(session, int(word))


def _fail_if_asked(_: int) -> int:
    raise AssertionError("asked only where a word says `last`")
