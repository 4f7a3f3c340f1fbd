"""Implements `audit`: the history of a session, and what a call was sent."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from ....domain import compaction_events as decisions
from ....domain import session_events as facts
from ....domain.blocks import UNSENT_KINDS, Block, ToolCall
from ....domain.compaction_events import CompactBoundary
from ....domain.errors import InvalidSettingError
from ....domain.event import Event
from ....domain.ranges import Ranges
from ....domain.session_events import SessionOpened, TurnStarted
from ....domain.settlement import BlockStatus
from ....domain.token_estimate import PromptSizeChange, SizeBasis, estimate_text
from ....projections.audit_entries import (
    REFUTED_PROOFS,
    AuditedBlock,
    AuditedDecision,
    AuditedEvent,
    AuditEntry,
    ModelCallEntry,
    RequestProof,
    find_source_time,
)
from ....projections.read_models.timestamps import format_timestamp
from ....projections.rendering.neutral import MESSAGE_ROLES
from ...analysis.auditing.audit import Audit
from ...analysis.auditing.audit import audit as audit_session
from ..command_line.blocks import find_position, format_block_heading
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
    format_handles,
    pick,
    print_json_story,
    print_text,
)
from ..command_line.sessions import open_call_session, session_to_json
from ..command_line.verbs import Invocation, flag, option
from ..command_line.views import check_format, format_coordinate, read_view_place
from .audit_calls import call_to_json, find_call, print_call, print_call_summary

_JSON_EXCERPT_CHARACTERS, _EXCERPT_CHARACTERS = 160, 100
"""Characters of a block that an audit shows; `recall` returns all of it."""
_ENVELOPE_FIELDS = {"originator_id", "originator_version", "timestamp", "subject", "key_id"}

_SIZE_NAMES = "pre_tokens=before post_tokens=after tokens_basis=basis"

CompactionCounts = Mapping[int, int]
"""The number of each compaction of a lineage, from 1 on, by the version of its boundary."""


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
        story = audited.read_between(first or 1, last)
        page = write_session_page(found, html, place.lineage, full=full)
        if page and not call.as_json:
            print_text(f"wrote {page}")
            return
        proofs = Counter[RequestProof]()
        story = _count_proofs(story, proofs)
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
            _print_story(audited, story, proofs, brief=brief)
    if any(proofs[proof] for proof in REFUTED_PROOFS):
        raise typer.Exit(1)


def _count_proofs(
    story: Iterable[AuditEntry], proofs: Counter[RequestProof]
) -> Iterator[AuditEntry]:
    for happening in story:
        if isinstance(happening, ModelCallEntry):
            proofs[happening.shown.proof] += 1
        yield happening


def story_to_json(audit: Audit, story: Iterable[AuditEntry]) -> Iterator[dict[str, Any]]:
    for happening in story:
        match happening:
            case AuditedBlock():
                yield _block_to_json(happening)
            case ModelCallEntry():
                yield {"what": "call", **call_to_json(happening)}
            case AuditedEvent(position=position, event=event, is_superseded=superseded):
                place = {"position": position, "superseded": superseded}
                yield {"what": "event", **_event_to_json(event), **place}
            case AuditedDecision(version=version, position=position, event=event):
                decision = {"what": "decision", **_event_to_json(event)}
                decision |= {"version": version, "place": position}
                if isinstance(event, CompactBoundary):
                    sizes = audit.sizes[event.originator_version]
                    decision |= pick(sizes, _SIZE_NAMES)
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
        "text": clip_text(block.text, _JSON_EXCERPT_CHARACTERS),
    }


def _event_to_json(event: Event) -> dict[str, Any]:
    return {
        "event": type(event).__name__,
        "when": format_timestamp(find_source_time(event) or event.timestamp),
        "said": event.model_dump(mode="json", exclude=_ENVELOPE_FIELDS, exclude_defaults=True),
    }


def _print_story(
    audit: Audit, story: Iterable[AuditEntry], proofs: Counter[RequestProof], *, brief: bool
) -> None:
    title = f" - {audit.session.log.title}" if audit.session.log.title else ""
    print_text(f"{audit.session.key}{title}", bold=True)
    print_text(
        f"{format_count(audit.turns, 'turn')}, {format_count(audit.blocks, 'block')},"
        f" {format_count(audit.tokens, 'token')} estimated; fates as of "
        f"{format_coordinate(audit.coordinate)}"
    )
    for happening in story:
        match happening:
            case AuditedBlock():
                _print_block(happening, audit.compaction_numbers, brief=brief)
            case ModelCallEntry():
                print_call_summary(happening, audit, brief=brief)
            case AuditedEvent(event=TurnStarted(turn=turn)):
                print_text(f"\nturn {turn}", bold=True)
            case AuditedEvent(position=position, event=event):
                line = _describe_event(event, audit.compaction_numbers)
                print_text(f"#{position} {clip_text(line, _EXCERPT_CHARACTERS)}")
            case AuditedDecision(event=CompactBoundary() as boundary):
                sizes = audit.sizes[boundary.originator_version]
                said = _describe_boundary(boundary, sizes, audit.compaction_numbers)
                print_text(f"== {said} ==", bold=True)
            case AuditedDecision(event=event):
                print_text(f"== {_describe_event(event, audit.compaction_numbers)} ==", bold=True)
    counts = ", ".join(f"{number:,} {proof}" for proof, number in proofs.items())
    print_text(f"\n{format_count(proofs.total(), 'call')}" + (f": {counts}" if counts else ""))


def _print_block(said: AuditedBlock, counts: CompactionCounts, *, brief: bool) -> None:
    top = format_block_heading(said.position, said.block, _block_marks(said, counts), said.tokens)
    if brief:
        print_text(f"{top}  {clip_text(said.block.text, max(20, _EXCERPT_CHARACTERS - len(top)))}")
    else:
        print_text(top, bold=True)
        when = f"{format_timestamp(said.time)}  " if said.time else ""
        print_text(f"{INDENT}{when}{clip_text(said.block.text, _EXCERPT_CHARACTERS)}")


def _block_marks(said: AuditedBlock, counts: CompactionCounts) -> Iterator[str]:
    became = said.status
    since = f" since #{became.since}" if became.since else ""
    by = f" by compaction {counts[became.boundary]}" if became.boundary else ""
    match became.status:
        case None:
            yield "lost to the view, run `cutbank verify`"
        case BlockStatus.RETRACTED:
            yield f"retracted{since}"
        case _ if said.block.kind in UNSENT_KINDS:
            yield "never sent"
        case BlockStatus.VISIBLE:
            if became.since:
                yield f"visible again{since}"
        case fate:
            yield f"{fate}{by}{since}"
    if said.ends is not None:
        yield "shown shortened from the first on"
    if said.is_open:
        yield "open"
    if getattr(said.block, "is_error", False):
        yield "error"


_EVENT_TEXTS: dict[type[Event], str] = {
    facts.SessionTitled: "titled {event.title!r}",
    facts.ParentNamed: "works for {event.parent.key}",
    facts.TurnStarted: "turn {event.turn} begins",
    facts.TurnEnded: "turn {event.turn} ends",
    facts.BlocksHidden: "{handles} to be hidden from the next compaction on",
    facts.BlockPinned: "{handles} pinned from the next compaction on",
    facts.BlockUnpinned: "{handles} unpinned from the next compaction on",
    facts.BlocksRetracted: "{handles} taken back",
    facts.ModelCalled: "a record of call {event.call_id} that was recorded again later",
    facts.ContextOverflowed: "refused as too long: {event.message}",
    facts.SessionClosed: "closed",
    decisions.CompactionOpened: "lineage {event.lineage} begins",
    decisions.CompactionRequested: "request {event.originator_version}: {event.policy} is to "
    "compact all up to #{event.after} ({event.trigger})",
    decisions.BoundaryActivated: "compaction {count} is served from #{event.effective_from} on",
    decisions.PreparationDropped: "compaction {count}, which was prepared, is dropped: "
    "{event.reason}",
    decisions.CompactionRejected: "a draft of {event.summarizer} is not used, by the rule "
    "{event.rule}: {event.reason}",
    decisions.CompactionReverted: "compaction {count} is reverted",
}


def _describe_event(event: Event, counts: CompactionCounts) -> str:
    words = _EVENT_TEXTS.get(type(event), type(event).__name__).format(
        event=event,
        handles=format_handles(getattr(event, "positions", Ranges())),
        count=counts.get(getattr(event, "boundary", 0)),
    )
    match event:
        case SessionOpened(fork=fork) if fork is not None:
            return f"forked from {fork.key} at #{fork.position}"
        case SessionOpened(parent=parent, source=source):
            works = f", works for {parent.key}" if parent else ""
            return f"the session begins{works}" + (f", imported from {source}" if source else "")
        case facts.SystemPromptSet(text=text):
            return f"system prompt from here on, {format_count(estimate_text(text), 'token')}"
        case facts.ToolsSet(tools=tools):
            return f"{format_count(len(tools), 'tool')} offered from here on"
        case facts.RequestSettingsSet(settings=settings):
            named = ", ".join(f"{name} {value}" for name, value in settings.items())
            return f"requests hold from here on: {named or 'nothing else'}"
        case facts.BlocksHidden(replacement=str(text)):
            return f"{words}, and show {text!r}"
        case (
            facts.TurnEnded(outcome=str(why))
            | facts.BlocksRetracted(reason=str(why))
            | facts.SessionClosed(reason=str(why))
        ) if why:
            return f"{words}: {why}"
        case facts.WakeScheduled(at=at):
            return f"goes on by itself at {at.isoformat()}" if at else "goes on by itself no more"
        case decisions.CompactionOpened(base=base) if base is not None:
            return f"{words}, and continues {base.lineage} version {base.version}"
        case CompactBoundary(pre_tokens=before, post_tokens=after):
            return _describe_boundary(
                event, PromptSizeChange(before, after, SizeBasis.ESTIMATED), counts
            )
        case decisions.Summary(summarizer=who, tokens=tokens, covers=covers):
            effect = f"replaces {format_handles(covers)}" if covers else "replaces nothing new"
            model = f" ({event.model})" if event.model else ""
            return f"summary by {who}{model}, {format_count(tokens, 'token')}, {effect}"
        case decisions.CompactionFailed(reason=reason, stood_in=who):
            return f"{who} stood in: {reason}" if who else f"the compaction failed: {reason}"
        case decisions.CompactionReverted(to=to, effective_from=start):
            back = f"compaction {counts[to]} is served" if to else "the whole history is served"
            return f"{words}: {back} from #{start} on"
        case _:
            return words


def _describe_boundary(
    boundary: CompactBoundary, sizes: PromptSizeChange, counts: CompactionCounts
) -> str:
    count = counts[boundary.originator_version]
    who = f"{boundary.policy} ({boundary.trigger})"
    parts = [
        f"compaction {count}: {who} decides on all up to #{boundary.after}",
        f"{sizes}, keeps {format_handles(boundary.kept) or 'nothing'}",
    ]
    if boundary.pinned:
        parts.append(f"pinned {format_handles(boundary.pinned)}")
    if boundary.hidden:
        parts.append(f"hidden {format_handles(boundary.hidden)}")
    if boundary.trims:
        parts.append(f"{format_count(len(boundary.trims), 'result')} shortened")
    parts += [f"repaired by {repair.rule}" for repair in boundary.repairs]
    return "; ".join(parts)
