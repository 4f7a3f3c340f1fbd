"""What `--json` says of an audit: the session first, then its story, an object at a time."""

from collections.abc import Iterable, Iterator
from typing import Any

from ....domain.blocks import NOT_SENT, Block, ToolCall
from ....domain.compaction_events import CompactBoundary
from ....domain.event import Event
from ....domain.session_events import ModelCalled
from ....projections.audit.happenings import BlockSaid, Decided, Happening, ModelAsked, Recorded
from ....projections.audit.shown import Shown
from ....projections.read_models.moments import moment
from ....projections.rendering.neutral import ROLES
from ...analysis.auditing.audit import Audit
from ...analysis.auditing.audited_call import AuditedCall, size_of_call
from ...analysis.auditing.told_times import told_at
from .printing import clipped
from .session_json import described

EXCERPT = 160
"""Characters of a block that an audit shows; `recall` gives all of it."""
ENVELOPE = {"originator_id", "originator_version", "timestamp", "subject", "key_id"}


def audited(audit: Audit) -> dict[str, Any]:
    """The session, and the coordinate that the audit is of."""
    at = audit.coordinate
    return {
        **described(audit.session),
        "at": at.position,
        "lineage": at.lineage,
        "lineage_version": at.lineage_version,
        "boundary": audit.eras[-1].number,
        "calls": len(audit.calls),
    }


def told(audit: Audit, story: Iterable[Happening]) -> Iterator[dict[str, Any]]:
    """The story, an object for each thing that happened."""
    for happening in story:
        match happening:
            case BlockSaid():
                yield _block(happening)
            case ModelAsked():
                yield _call(happening)
            case Recorded(position=position, event=event):
                yield {
                    "what": "event",
                    **_event(event),
                    "position": position,
                    "superseded": happening.is_superseded,
                }
            case Decided(version=version, place=place, event=event):
                decided = {"what": "decision", **_event(event), "version": version, "place": place}
                if isinstance(event, CompactBoundary):
                    sizes = audit.sizes[event.originator_version]
                    decided |= {"pre_tokens": sizes.before, "post_tokens": sizes.after}
                    decided["tokens_basis"] = sizes.basis
                yield decided


def audited_call(session: str, call: AuditedCall, form: str | None) -> dict[str, Any]:
    """One call and its request."""
    reported, shown = call.reported, call.shown
    view = call.view
    return {
        "session": session,
        "number": call.number,
        "sees": call.sees,
        "answer": list(call.answer),
        **_reported(call),
        "proof": shown.proof,
        "why": shown.why,
        "lineage": view.coordinate.lineage if view else reported and reported.lineage,
        "lineage_version": reported.lineage_version if reported else None,
        "boundary": shown.boundary,
        "blocks": shown.blocks,
        **_size(shown, reported),
        "rebuilt": shown.fingerprint,
        "format": form or call.form,
        "as_sent": call.is_as_sent and form in {None, call.form},
        "body": call.request(form),
    }


def _block(said: BlockSaid) -> dict[str, Any]:
    block, became = said.block, said.became
    return {
        "what": "block",
        "handle": f"#{said.position}",
        "position": said.position,
        "turn": said.turn,
        "kind": block.kind,
        "who": None if block.kind in NOT_SENT else ROLES.get(block.kind, "user"),
        "name": block.name if isinstance(block, Block | ToolCall) else None,
        "tool_call_id": None if isinstance(block, Block) else block.tool_call_id,
        "tokens": said.tokens,
        "when": said.at and moment(said.at),
        "fate": became.fate,
        "since": became.since,
        "boundary": became.boundary,
        "open": said.is_open,
        "shortened": said.ends is not None,
        "text": clipped(block.text, EXCERPT),
    }


def _call(asked: ModelAsked) -> dict[str, Any]:
    shown = asked.shown
    return {
        "what": "call",
        "number": asked.number,
        "sees": asked.placed.sees,
        "answer": list(asked.placed.answer),
        **_reported(asked),
        "proof": shown.proof,
        "why": shown.why,
        "lineage": asked.lineage,
        "lineage_version": asked.lineage_version,
        "boundary": shown.boundary,
        "blocks": shown.blocks,
        **_size(shown, asked.reported),
        "rebuilt": shown.fingerprint,
    }


def _size(shown: Shown, reported: ModelCalled | None) -> dict[str, Any]:
    size = size_of_call(reported, shown.tokens)
    return {"tokens": size.tokens, "tokens_basis": size.basis}


def _reported(call: ModelAsked | AuditedCall) -> dict[str, Any]:
    """What was recorded of a call; nulls where nothing was."""
    reported = call.reported
    when = told_at(reported) if reported else None
    return {
        "recorded": reported.originator_version if reported else None,
        "when": moment(when) if when else None,
        "call_id": reported.call_id if reported else None,
        "model": reported.model if reported else None,
        "usage": reported.usage.model_dump(mode="json") if reported and reported.usage else None,
        "cost_usd": reported.cost_usd if reported else None,
        "latency_s": reported.latency_s if reported else None,
        "stop_reason": reported.stop_reason if reported else None,
        "renderer": reported.renderer if reported else None,
        "fingerprint": reported.fingerprint if reported else None,
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "event": type(event).__name__,
        "when": moment(told_at(event) or event.timestamp),
        "said": event.model_dump(mode="json", exclude=ENVELOPE, exclude_defaults=True),
    }
