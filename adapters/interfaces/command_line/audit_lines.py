"""Prints an audit: the history of a session, or one call with its request."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ....domain.blocks import UNSENT_KINDS
from ....domain.compaction_events import CompactBoundary
from ....domain.session_events import ModelCalled, TurnStarted
from ....domain.settlement import BlockStatus
from ....projections.audit_entries import (
    AuditedBlock,
    AuditedDecision,
    AuditedEvent,
    AuditEntry,
    ModelCallEntry,
    RequestProof,
    SentView,
)
from ....projections.read_models.timestamps import format_timestamp
from ...analysis.auditing.audit import Audit
from ...analysis.auditing.audited_call import AuditedCall, measure_call
from .block_lines import format_block_heading
from .coordinates import format_coordinate, format_place
from .event_lines import CompactionCounts, describe_boundary, describe_event
from .printing import clip_text, format_count, print_json, print_text
from .session_lines import print_view

_INDENT = "    "
_EXCERPT_CHARACTERS = 100


def print_story(audit: Audit, story: Iterable[AuditEntry], *, brief: bool) -> Counter[RequestProof]:
    """Print all that happened, in order; return the number of calls by proof."""
    _print_session(audit)
    proofs = Counter[RequestProof]()
    for happening in story:
        match happening:
            case AuditedBlock():
                _print_block(happening, audit.compaction_numbers, brief=brief)
            case ModelCallEntry():
                proofs[happening.sent_view.proof] += 1
                _print_call_summary(happening, audit, brief=brief)
            case AuditedEvent(event=TurnStarted(turn=turn)):
                print_text(f"\nturn {turn}", bold=True)
            case AuditedEvent(position=position, event=event):
                print_text(
                    f"#{position} "
                    + clip_text(
                        describe_event(event, audit.compaction_numbers), _EXCERPT_CHARACTERS
                    )
                )
            case AuditedDecision(event=CompactBoundary() as boundary):
                sizes = audit.sizes[boundary.originator_version]
                said = describe_boundary(boundary, sizes, audit.compaction_numbers)
                print_text(f"== {said} ==", bold=True)
            case AuditedDecision(event=event):
                print_text(f"== {describe_event(event, audit.compaction_numbers)} ==", bold=True)
    told = ", ".join(f"{number:,} {proof}" for proof, number in proofs.items())
    print_text(f"\n{format_count(proofs.total(), 'call')}" + (f": {told}" if told else ""))
    return proofs


def print_call(call: AuditedCall, compaction: int | None, form: str | None) -> None:
    """Print one call, whose view began at `compaction`, and its request as JSON."""
    name = f"call {call.number}" if call.number else "the call"
    print_text(
        f"{name} saw {_format_view(call)}: "
        f"{format_view_size(call.shown, call.reported, compaction)}",
        bold=True,
    )
    for line in _report_lines(call.reported, call.answer):
        print_text(line)
    print_text(format_proof(call.shown))
    if call.view is None:
        return
    if form is None and not call.is_exact:
        print_text()
        print_view(call.view)
        return
    print_text(
        "the request in the format "
        f"{form or call.render_format}{_format_request_format(call, form)}:"
    )
    print_json(call.request(form))


def _format_request_format(call: AuditedCall, form: str | None) -> str:
    if call.is_exact and form in {None, call.render_format}:
        return ", as it was sent"
    return f", which was sent as {call.request_format}" if call.request_format else ""


def format_proof(shown: SentView) -> str:
    """Return `proved`, or the reason why it is not."""
    return f"{shown.proof}" + (f": {shown.why}" if shown.why else "")


def format_view_size(shown: SentView, reported: ModelCalled | None, compaction: int | None) -> str:
    begins = f", compaction {compaction}" if compaction else ""
    return f"{format_count(shown.blocks, 'block')}, {measure_call(reported, shown.tokens)}{begins}"


def _format_view(call: AuditedCall) -> str:
    if call.reported is not None:
        return format_place(
            call.reported.lineage, call.reported.lineage_version, call.last_seen_position
        )
    return format_coordinate(call.view.coordinate) if call.view else f"#{call.last_seen_position}"


def _print_session(audit: Audit) -> None:
    session = audit.session
    title = f" - {session.log.title}" if session.log.title else ""
    print_text(f"{session.key}{title}", bold=True)
    print_text(
        f"{format_count(audit.turns, 'turn')}, {format_count(audit.blocks, 'block')},"
        f" {format_count(audit.tokens, 'token')} estimated; fates as of "
        f"{format_coordinate(audit.coordinate)}"
    )


def _print_block(said: AuditedBlock, counts: CompactionCounts, *, brief: bool) -> None:
    top = format_block_heading(said.position, said.block, _block_marks(said, counts), said.tokens)
    if brief:
        print_text(f"{top}  {clip_text(said.block.text, max(20, _EXCERPT_CHARACTERS - len(top)))}")
    else:
        print_text(top, bold=True)
        when = f"{format_timestamp(said.time)}  " if said.time else ""
        print_text(f"{_INDENT}{when}{clip_text(said.block.text, _EXCERPT_CHARACTERS)}")


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


def _print_call_summary(asked: ModelCallEntry, audit: Audit, *, brief: bool) -> None:
    at = format_place(asked.lineage, asked.lineage_version, asked.numbered_call.last_seen_position)
    compaction = audit.number_compactions(asked.lineage).get(asked.sent_view.boundary or 0)
    size = format_view_size(asked.sent_view, asked.reported, compaction)
    print_text(f"-- call {asked.number} saw {at}: {size}; {format_proof(asked.sent_view)} --")
    if not brief:
        for line in _report_lines(asked.reported, asked.numbered_call.answer):
            print_text(_INDENT + line)


def _report_lines(reported: ModelCalled | None, answer: Iterable[int]) -> Iterator[str]:
    """Yield a line for each recorded property of a call."""
    written = " ".join(f"#{position}" for position in answer)
    if written:
        yield f"answered by {written}"
    if reported is None:
        yield "nothing was recorded of the call but its answer"
        return
    usage = reported.usage.model_dump() if reported.usage else {}
    parts = [reported.model] if reported.model else []
    parts += [f"{name} {tokens:,}" for name, tokens in usage.items() if tokens is not None]
    parts += [f"${reported.cost_usd:.4f}"] if reported.cost_usd is not None else []
    parts += [f"{reported.latency_s:.1f} s"] if reported.latency_s is not None else []
    parts += [f"ended by {reported.stop_reason}"] if reported.stop_reason else []
    parts += [f"sent as {reported.renderer}"] if reported.renderer else []
    parts.append(f"recorded at #{reported.originator_version}")
    yield ", ".join(parts)
