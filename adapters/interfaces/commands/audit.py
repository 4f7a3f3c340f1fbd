"""Implements `audit`: the history of a session, and what a call was sent."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import typer

from ....domain.blocks import UNSENT_KINDS, Block, ToolCall
from ....domain.compaction import MAIN_LINEAGE
from ....domain.compaction_events import CompactBoundary
from ....domain.errors import InvalidSettingError
from ....domain.event import Event, StoredValue
from ....domain.session_events import ModelCalled, TurnStarted
from ....projections.audit_entries import (
    REFUTED_PROOFS,
    AuditedBlock,
    AuditedCall,
    AuditedDecision,
    AuditedEvent,
    AuditEntry,
    RequestProof,
    SentView,
    find_source_time,
)
from ....projections.rendering.neutral import MESSAGE_ROLES
from ....projections.timestamps import format_timestamp
from ...analysis.audit import Audit, audit_call
from ...analysis.audit import audit as audit_session
from ...analysis.diffs import number_compactions
from ...analysis.run_replay import read_calls
from ...runtime.sessions.stored_session import StoredSession
from ..command_line.blocks import find_position, format_block_heading, list_marks
from ..command_line.options import (
    HTML,
    LINEAGE,
    PLACE,
    SESSION,
    write_session_page,
)
from ..command_line.printing import (
    INDENT,
    clip_text,
    format_count,
    format_value,
    pick,
    print_block,
    print_json,
    print_json_story,
    print_text,
)
from ..command_line.sessions import open_call_session, session_to_json
from ..command_line.verbs import Answer, Invocation, flag, option
from ..command_line.views import (
    check_format,
    format_coordinate,
    format_place,
    print_view,
    read_view_place,
)

_JSON_TEXT_CHARACTERS, _TEXT_CHARACTERS = 160, 100
"""Characters of a block that an audit shows; `recall` returns all of it."""
_VALUE_CHARACTERS = 60
"""Characters of a value of an event; the JSON has all of it."""
_ENVELOPE_FIELDS = {"originator_id", "originator_version", "timestamp", "subject", "key_id"}
_NOT_SHOWN = _ENVELOPE_FIELDS | {
    *(
        "key",
        "namespace",
        "generation",
        "request_id",
        "lease_s",
        "activate",
        "previous",
        "calibration",
    ),
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
    form: str | None = option("--as FORMAT", "Say the call's request in another format."),
    brief: bool = flag("--brief", "One line for each thing."),
    html: Path | None = HTML,
    full: bool = flag("--full", "Of a page, all text."),
) -> Answer | None:
    if form is not None and number is None:
        raise InvalidSettingError("--as says one call's request: name the call with --call")
    check_format(form)
    if html is not None and (start or end or at):
        raise InvalidSettingError("--html shows a whole session: remove --from, --to and --at")
    with open_call_session(call, session) as found:
        if number is not None:
            if any((start, end, at, brief, html, full)) or lineage != MAIN_LINEAGE:
                raise InvalidSettingError("--call shows one call: remove the other options")
            return answer_call(found, find_call(found, number), form)
        place = read_view_place(found, at, lineage)
        audited = audit_session(
            found, lineage=place.lineage, at=place.position, lineage_version=place.version
        )
        first, last = (
            None if word is None else find_position(found, word) for word in (start, end)
        )
        page = write_session_page(found, html, place.lineage, full=full)
        if page and not call.as_json:
            return Answer(None, f"wrote {page}")
        proofs = Counter[RequestProof]()
        story = _count_proofs(audited.read_between(first or 1, last), proofs)
        if call.as_json:
            head = {
                **session_to_json(found),
                **pick(audited.coordinate, "at=position lineage lineage_version"),
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
    return None


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
                print_block(heading, [block.text] if brief else [], brief=brief)
                if not brief:
                    when = f"{format_timestamp(time)}  " if time else ""
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
    for name, value in event:
        if name in {"boundary", "to"}:
            compaction = f"compaction {numbers.get(value)}" if value else "all of the log"
            parts.append(f"to {compaction}" if name == "to" else compaction)
        elif name not in _NOT_SHOWN and (text := _format_value(value)):
            parts.append(f"{name.replace('_', ' ')} {clip_text(text, _VALUE_CHARACTERS)}")
    words = re.sub("(?<!^)(?=[A-Z])", " ", type(event).__name__).lower()
    return f"{words}: {', '.join(parts)}" if parts else words


def _format_value(value: object) -> str:
    if isinstance(value, tuple):
        return str(len(value)) if value else ""
    if isinstance(value, StoredValue):
        value = value.model_dump(exclude={"generation"})
    return format_value(value)


_NUMBER = re.compile(r"[0-9]{1,15}")
_REPORT_FIELDS = "call_id model usage cost_usd latency_s stop_reason renderer fingerprint"


def find_call(session: StoredSession, word: str) -> AuditedCall:
    """Return the call that a word names: `12` is the twelfth, `#12` the one at that handle."""
    if word.strip().startswith("#"):
        return audit_call(session, at=find_position(session, word))
    if word.strip().lower() == "last":
        return audit_call(session, len(read_calls(session)))
    if not _NUMBER.fullmatch(word.strip()):
        raise InvalidSettingError(f"{word!r} is not a call: write 12, last, or '#12'")
    return audit_call(session, int(word))


def call_to_json(call: AuditedCall) -> dict[str, Any]:
    """Return a call; the values of its record are null if there is none."""
    reported, shown = call.reported, call.shown
    report = pick(reported, _REPORT_FIELDS)
    if reported and reported.usage:
        report["usage"] = reported.usage.model_dump(mode="json")
    when = find_source_time(reported) if reported else None
    return {
        "number": call.number,
        "sees": call.last_seen_position,
        "answer": list(call.answer),
        **pick(reported, "recorded=originator_version"),
        "when": format_timestamp(when) if when else None,
        **report,
        **pick(shown, "proof why"),
        **pick(call, "lineage lineage_version"),
        **pick(shown, "boundary blocks"),
        **pick(call.size, "tokens tokens_basis=basis"),
        "rebuilt": shown.fingerprint,
    }


def answer_call(session: StoredSession, call: AuditedCall, form: str | None) -> Answer:
    document = {
        "session": session.key,
        **call_to_json(call),
        "format": form or call.render_format,
        "as_sent": call.is_exact and form in {None, call.render_format},
        "body": call.request(form),
    }
    begins = call.shown.boundary
    compaction = begins and number_compactions(session, call.lineage)[begins]
    text: list[str | Callable[[], None]] = [_describe_call(call, compaction)]
    text += [*_report_lines(call.reported, call.answer), _describe_proof(call.shown)]
    if call.view and form is None and not call.is_exact:
        text += ["", partial(print_view, call.view)]
    elif call.view:
        as_sent = f", which was sent as {call.request_format}" if call.request_format else ""
        as_sent = ", as it was sent" if document["as_sent"] else as_sent
        text.append(f"the request in the format {document['format']}{as_sent}:")
        text.append(partial(print_json, document["body"]))
    return Answer(document, *text, is_good=not call.shown.is_refuted)


def _describe_call(call: AuditedCall, compaction: int | None) -> str:
    """Describe what a call saw: a view, which begins at a compaction if one is given."""
    name = f"call {call.number}" if call.number else "the call"
    at = format_place(call.lineage, call.lineage_version, call.last_seen_position)
    begins = f", compaction {compaction}" if compaction else ""
    return f"{name} saw {at}: {format_count(call.shown.blocks, 'block')}, {call.size}{begins}"


def _describe_proof(shown: SentView) -> str:
    return f"{shown.proof}" + (f": {shown.why}" if shown.why else "")


def print_call_summary(call: AuditedCall, audit: Audit, *, brief: bool) -> None:
    compaction = audit.number_compactions(call.lineage).get(call.shown.boundary or 0)
    print_text(f"-- {_describe_call(call, compaction)}; {_describe_proof(call.shown)} --")
    for line in () if brief else _report_lines(call.reported, call.answer):
        print_text(INDENT + line)


def _report_lines(reported: ModelCalled | None, answer: Iterable[int]) -> Iterator[str]:
    written = " ".join(f"#{position}" for position in answer)
    if written:
        yield f"answered by {written}"
    if reported is None:
        yield "nothing was recorded of the call but its answer"
        return
    usage = reported.usage.model_dump() if reported.usage else {}
    report = {"model": reported.model, **usage, **pick(reported, "cost_usd latency_s stop_reason")}
    report |= {"sent_as": reported.renderer, "recorded_at": f"#{reported.originator_version}"}
    yield format_value(report)
