"""Writes an audit as JSON: the session first, then its history, one object at a time."""

from collections.abc import Iterable, Iterator
from typing import Any

from ....domain.blocks import UNSENT_KINDS, Block, ToolCall
from ....domain.compaction_events import CompactBoundary
from ....domain.event import Event
from ....domain.session_events import ModelCalled
from ....projections.audit_entries import (
    AuditedBlock,
    AuditedDecision,
    AuditedEvent,
    AuditEntry,
    ModelCallEntry,
    SentView,
    find_source_time,
)
from ....projections.read_models.timestamps import format_timestamp
from ....projections.rendering.neutral import MESSAGE_ROLES
from ...analysis.auditing.audit import Audit
from ...analysis.auditing.audited_call import AuditedCall, measure_call
from .printing import clip_text
from .session_json import session_to_json

_EXCERPT_CHARACTERS = 160
"""Characters of a block that an audit shows; `recall` returns all of it."""
_ENVELOPE_FIELDS = {"originator_id", "originator_version", "timestamp", "subject", "key_id"}


def audit_to_json(audit: Audit) -> dict[str, Any]:
    """Return the session, and the coordinate of the audit."""
    at = audit.coordinate
    return {
        **session_to_json(audit.session),
        "at": at.position,
        "lineage": at.lineage,
        "lineage_version": at.lineage_version,
        "boundary": audit.view_epochs[-1].number,
        "calls": len(audit.calls),
    }


def story_to_json(audit: Audit, story: Iterable[AuditEntry]) -> Iterator[dict[str, Any]]:
    """Yield an object for each thing that happened."""
    for happening in story:
        match happening:
            case AuditedBlock():
                yield _block_to_json(happening)
            case ModelCallEntry():
                yield _call_to_json(happening)
            case AuditedEvent(position=position, event=event):
                yield {
                    "what": "event",
                    **_event_to_json(event),
                    "position": position,
                    "superseded": happening.is_superseded,
                }
            case AuditedDecision(version=version, position=place, event=event):
                decided = {
                    "what": "decision",
                    **_event_to_json(event),
                    "version": version,
                    "place": place,
                }
                if isinstance(event, CompactBoundary):
                    sizes = audit.sizes[event.originator_version]
                    decided |= {"pre_tokens": sizes.before, "post_tokens": sizes.after}
                    decided["tokens_basis"] = sizes.basis
                yield decided


def audited_call_to_json(session: str, call: AuditedCall, form: str | None) -> dict[str, Any]:
    """Return one call and its request."""
    reported, shown = call.reported, call.shown
    view = call.view
    return {
        "session": session,
        "number": call.number,
        "sees": call.last_seen_position,
        "answer": list(call.answer),
        **_report_to_json(call),
        "proof": shown.proof,
        "why": shown.why,
        "lineage": view.coordinate.lineage if view else reported and reported.lineage,
        "lineage_version": reported.lineage_version if reported else None,
        "boundary": shown.boundary,
        "blocks": shown.blocks,
        **_size_to_json(shown, reported),
        "rebuilt": shown.fingerprint,
        "format": form or call.render_format,
        "as_sent": call.is_exact and form in {None, call.render_format},
        "body": call.request(form),
    }


def _block_to_json(said: AuditedBlock) -> dict[str, Any]:
    block, became = said.block, said.status
    return {
        "what": "block",
        "handle": f"#{said.position}",
        "position": said.position,
        "turn": said.turn,
        "kind": block.kind,
        "who": None if block.kind in UNSENT_KINDS else MESSAGE_ROLES.get(block.kind, "user"),
        "name": block.name if isinstance(block, Block | ToolCall) else None,
        "tool_call_id": None if isinstance(block, Block) else block.tool_call_id,
        "tokens": said.tokens,
        "when": said.time and format_timestamp(said.time),
        "fate": became.status,
        "since": became.since,
        "boundary": became.boundary,
        "open": said.is_open,
        "shortened": said.ends is not None,
        "text": clip_text(block.text, _EXCERPT_CHARACTERS),
    }


def _call_to_json(asked: ModelCallEntry) -> dict[str, Any]:
    shown = asked.sent_view
    return {
        "what": "call",
        "number": asked.number,
        "sees": asked.numbered_call.last_seen_position,
        "answer": list(asked.numbered_call.answer),
        **_report_to_json(asked),
        "proof": shown.proof,
        "why": shown.why,
        "lineage": asked.lineage,
        "lineage_version": asked.lineage_version,
        "boundary": shown.boundary,
        "blocks": shown.blocks,
        **_size_to_json(shown, asked.reported),
        "rebuilt": shown.fingerprint,
    }


def _size_to_json(shown: SentView, reported: ModelCalled | None) -> dict[str, Any]:
    size = measure_call(reported, shown.tokens)
    return {"tokens": size.tokens, "tokens_basis": size.basis}


def _report_to_json(call: ModelCallEntry | AuditedCall) -> dict[str, Any]:
    """Return the record of a call; its values are null if there is none."""
    reported = call.reported
    when = find_source_time(reported) if reported else None
    return {
        "recorded": reported.originator_version if reported else None,
        "when": format_timestamp(when) if when else None,
        "call_id": reported.call_id if reported else None,
        "model": reported.model if reported else None,
        "usage": reported.usage.model_dump(mode="json") if reported and reported.usage else None,
        "cost_usd": reported.cost_usd if reported else None,
        "latency_s": reported.latency_s if reported else None,
        "stop_reason": reported.stop_reason if reported else None,
        "renderer": reported.renderer if reported else None,
        "fingerprint": reported.fingerprint if reported else None,
    }


def _event_to_json(event: Event) -> dict[str, Any]:
    return {
        "event": type(event).__name__,
        "when": format_timestamp(find_source_time(event) or event.timestamp),
        "said": event.model_dump(mode="json", exclude=_ENVELOPE_FIELDS, exclude_defaults=True),
    }
