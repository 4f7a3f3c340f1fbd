"""Implements `audit`: the history of a session, and what a call was sent."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from ....domain.blocks import UNSENT_KINDS, Block, ToolCall
from ....domain.compaction_events import CompactBoundary
from ....domain.errors import InvalidSettingError
from ....domain.event import Event, Record
from ....domain.session_events import TurnStarted
from ....projections.audit_entries import (
    REFUTED_PROOFS,
    AuditedBlock,
    AuditedCall,
    AuditedDecision,
    AuditedEvent,
    AuditEntry,
    RequestProof,
    find_source_time,
)
from ....projections.read_models.timestamps import format_timestamp
from ....projections.rendering.neutral import MESSAGE_ROLES
from ...analysis.auditing.audit import Audit
from ...analysis.auditing.audit import audit as audit_session
from ..command_line.blocks import find_position, format_block_heading, list_marks
from ..command_line.options import (
    HTML,
    LINEAGE,
    LINEAGE_VERSION,
    PLACE,
    SESSION,
    write_session_page,
)
from ..command_line.printing import (
    INDENT,
    clip_text,
    format_count,
    pick,
    print_brief,
    print_json_story,
    print_text,
)
from ..command_line.sessions import open_call_session, session_to_json
from ..command_line.verbs import Invocation, flag, option
from ..command_line.views import check_format, format_coordinate, read_view_place
from .audit_calls import call_to_json, find_call, print_call, print_call_summary

_JSON_TEXT_CHARACTERS, _TEXT_CHARACTERS = 160, 100
"""Characters of a block that an audit shows; `recall` returns all of it."""
_VALUE_CHARACTERS = 60
"""Characters of a value of an event; the JSON has all of it."""
_ENVELOPE_FIELDS = {"originator_id", "originator_version", "timestamp", "subject", "key_id"}
_NOT_SHOWN = _ENVELOPE_FIELDS | {
    *("key", "namespace", "request_id", "lease_s", "activate", "previous", "calibration"),
    *("pre_tokens", "post_tokens", "sections", "digest", "cites"),
}


def audit(
    call: Invocation,
    session: str = SESSION,
    *,
    number: str | None = option(
        "--call N", "One call: its number, last, or '#12', the handle of its answer or record."
    ),
    start: str | None = option("--from HANDLE", "Where the story begins."),
    end: str | None = option("--to HANDLE", "Where the story ends."),
    lineage: str = LINEAGE,
    at: str | None = PLACE,
    lineage_version: int | None = LINEAGE_VERSION,
    form: str | None = option("--as FORMAT", "Say the call's request in another format."),
    brief: bool = flag("--brief", "One line for each thing."),
    html: Path | None = HTML,
    full: bool = flag("--full", "Of a page, all text."),
) -> None:
    """Tell what happened, and prove what models were sent."""
    if form is not None and number is None:
        raise InvalidSettingError("--as says one call's request: name the call with --call")
    check_format(form)
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
            print_call(call, found, find_call(found, number), form)
            return
        place = read_view_place(found, at, lineage, lineage_version)
        audited = audit_session(
            found, lineage=place.lineage, at=place.position, lineage_version=place.version
        )
        first, last = (
            None if word is None else find_position(found, word) for word in (start, end)
        )
        page = write_session_page(found, html, place.lineage, full=full)
        if page and not call.as_json:
            print_text(f"wrote {page}")
            return
        proofs = Counter[RequestProof]()
        story = _count_proofs(audited.read_between(first or 1, last), proofs)
        if call.as_json:
            ends = audited.coordinate
            head = {
                **session_to_json(found),
                "at": ends.position,
                **pick(ends, "lineage lineage_version"),
                "boundary": audited.view_epochs[-1].number,
                "calls": len(audited.calls),
                "page": page,
            }
            print_json_story(head, "story", story_to_json(audited, story))
        else:
            _print_story(audited, story, brief=brief)
            counts = ", ".join(f"{number:,} {proof}" for proof, number in proofs.items())
            calls = format_count(proofs.total(), "call")
            print_text(f"\n{calls}{f': {counts}' if counts else ''}")
    if any(proofs[proof] for proof in REFUTED_PROOFS):
        raise typer.Exit(1)


def _count_proofs(
    story: Iterable[AuditEntry], proofs: Counter[RequestProof]
) -> Iterator[AuditEntry]:
    for entry in story:
        if isinstance(entry, AuditedCall):
            proofs[entry.shown.proof] += 1
        yield entry


def story_to_json(audit: Audit, story: Iterable[AuditEntry]) -> Iterator[dict[str, Any]]:
    for entry in story:
        match entry:
            case AuditedBlock():
                yield _block_to_json(entry)
            case AuditedCall():
                yield {"what": "call", **call_to_json(entry)}
            case AuditedEvent(position=position, event=event, is_superseded=superseded):
                place = {"position": position, "superseded": superseded}
                yield {"what": "event", **_event_to_json(event), **place}
            case AuditedDecision(version=version, position=position, event=event):
                decision = {"what": "decision", **_event_to_json(event)}
                decision |= {"version": version, "place": position}
                if isinstance(event, CompactBoundary):
                    sizes = audit.sizes[event.originator_version]
                    decision |= pick(
                        sizes, "pre_tokens=before post_tokens=after tokens_basis=basis"
                    )
                yield decision


def _block_to_json(said: AuditedBlock) -> dict[str, Any]:
    block, became = said.block, said.status
    return {
        "what": "block",
        "handle": f"#{said.position}",
        **pick(said, "position turn"),
        "kind": block.kind,
        "who": None if block.kind in UNSENT_KINDS else MESSAGE_ROLES.get(block.kind, "user"),
        "name": block.name if isinstance(block, Block | ToolCall) else None,
        "tool_call_id": None if isinstance(block, Block) else block.tool_call_id,
        "tokens": said.tokens,
        "when": said.time and format_timestamp(said.time),
        **pick(became, "fate=status since boundary"),
        "open": said.is_open,
        "shortened": said.ends is not None,
        "text": clip_text(block.text, _JSON_TEXT_CHARACTERS),
    }


def _event_to_json(event: Event) -> dict[str, Any]:
    return {
        "event": type(event).__name__,
        "when": format_timestamp(find_source_time(event) or event.timestamp),
        "said": event.model_dump(mode="json", exclude=_ENVELOPE_FIELDS, exclude_defaults=True),
    }


def _print_story(audit: Audit, story: Iterable[AuditEntry], *, brief: bool) -> None:
    title = f" - {audit.session.info.title}" if audit.session.info.title else ""
    print_text(f"{audit.session.key}{title}", bold=True)
    print_text(
        f"{format_count(audit.turns, 'turn')}, {format_count(audit.blocks, 'block')},"
        f" {format_count(audit.tokens, 'token')} estimated; statuses as of "
        f"{format_coordinate(audit.coordinate)}"
    )
    for entry in story:
        match entry:
            case AuditedBlock(block=block, time=time):
                marks = _list_marks(entry, audit.compaction_numbers)
                heading = format_block_heading(entry.position, block, marks, entry.tokens)
                if brief:
                    print_brief(heading, block.text)
                else:
                    when = f"{format_timestamp(time)}  " if time else ""
                    print_text(heading, bold=True)
                    print_text(f"{INDENT}{when}{clip_text(block.text, _TEXT_CHARACTERS)}")
            case AuditedCall():
                print_call_summary(entry, audit, brief=brief)
            case AuditedEvent(event=TurnStarted(turn=turn)):
                print_text(f"\nturn {turn}", bold=True)
            case AuditedEvent(position=position, event=event):
                print_text(f"#{position} {_describe_event(event, audit)}")
            case AuditedDecision(event=event):
                print_text(f"== {_describe_event(event, audit)} ==", bold=True)


def _list_marks(entry: AuditedBlock, numbers: Mapping[int, int]) -> Iterator[str]:
    status = entry.status
    by = f" by compaction {numbers[status.boundary]}" if status.boundary else ""
    since = f" since #{status.since}" if status.since else ""
    yield from list_marks(entry.block, status.status, by + since, is_open=entry.is_open)
    if entry.ends is not None:
        yield "shown shortened from the first on"


def _describe_event(event: Event, audit: Audit) -> str:
    """Return the name and the values of an event, as in `block pinned: positions #6`."""
    numbers, parts = audit.compaction_numbers, []
    if isinstance(event, CompactBoundary):
        version = event.originator_version
        parts = [f"compaction {numbers[version]}", str(audit.sizes[version])]
    required = {name for name, field in type(event).model_fields.items() if field.is_required()}
    for name, value in event:
        if name in {"boundary", "to"}:
            compaction = f"compaction {numbers.get(value)}" if value else "all of the log"
            parts.append(f"to {compaction}" if name == "to" else compaction)
        elif name not in _NOT_SHOWN and (value or name in required):
            shown = clip_text(_format_value(value), _VALUE_CHARACTERS)
            parts.append(f"{name.replace('_', ' ')} {shown}")
    words = re.sub("(?<!^)(?=[A-Z])", " ", type(event).__name__).lower()
    return f"{words}: {', '.join(parts)}" if parts else words


def _format_value(value: object) -> str:
    match value:
        case Record():
            return " ".join(str(part) for _, part in value if part)
        case dict():
            return " ".join(f"{key}={part}" for key, part in value.items() if part is not None)
        case tuple():
            return str(len(value))
        case _:
            return str(value)
