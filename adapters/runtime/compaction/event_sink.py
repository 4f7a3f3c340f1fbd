"""Notifies listeners of compactions' events, in the shapes of the Claude Agent SDK and qbit."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid5

from ....domain.compaction_events import CompactBoundary, Trigger
from ....domain.context_limit import PruningResult, Utilization
from ....domain.hooks import CompactionEvent, CompactionEventKind, Listener, Veto
from ....domain.policies.weighed_messages import WeighedMessages

logger = logging.getLogger("cutbank.compaction")

Notify = Callable[..., object]
"""Passes on a `CompactionEventKind`, with the event's details by name."""


def ignore_event(moment: CompactionEventKind, **details: object) -> None:
    """Ignore the event."""


class CompactionEventSink:
    """Notifies a session's listeners; each event holds all that is known of its compaction so far.

    Hooks, commands, telemetry and programs that show the progress are all listeners.
    """

    def __init__(
        self, listeners: Sequence[Listener], session: str, namespace: str, lineage: str
    ) -> None:
        self._listeners = listeners
        self._so_far = CompactionEvent(CompactionEventKind.PRE_COMPACT, session, namespace, lineage)

    def add(self, **known: Any) -> None:
        """Put this into each later event."""
        self._so_far = replace(self._so_far, **known)

    def notify(self, moment: CompactionEventKind, **details: Any) -> list[Veto]:
        """Return the listeners' answers; a listener that fails is logged and skipped."""
        event = replace(self._so_far, moment=moment, **details)
        answers = []
        for listener in self._listeners:
            try:
                answer = listener(event)
            except Exception:  # a failing listener must not stop the session
                logger.exception("a listener failed at %s of %r", event.moment, event.session)
            else:
                if answer is not None:
                    answers.append(answer)
        return answers

    def ask_hooks(self) -> Veto:
        """Return all instructions, joined, and the first veto."""
        wishes, veto = [self._so_far.instructions], None
        for answer in self.notify(CompactionEventKind.PRE_COMPACT):
            wishes.append(answer.instructions)
            veto = veto if veto is not None else answer.veto
        together = "\n".join(wish for wish in wishes if wish) or None
        self.add(instructions=together)
        if veto is not None:
            self.notify(CompactionEventKind.REJECTED, reason=f"vetoed: {veto}")
        return Veto(instructions=together, veto=veto)

    def notify_served(
        self, message: dict[str, Any], pruned: PruningResult | None = None, **details: Any
    ) -> None:
        """Notify that a boundary begins to be served, and the session goes on with its view."""
        self.notify(CompactionEventKind.ACTIVATED, message=message, **details)
        if pruned is not None:
            self.notify(CompactionEventKind.CONTEXT_PRUNED, message=context_pruned(pruned))
        self.notify(CompactionEventKind.SESSION_START, source="compact", **details)


def make_status_listener(shows: Callable[[bool], None]) -> Listener:
    """Return a listener that shows True when a compaction starts work, and False after it.

    Each True is followed by one False, however the compaction ends.
    """

    def listens(event: CompactionEvent) -> None:
        if event.moment is CompactionEventKind.REQUESTED:
            shows(True)
        elif event.moment in (CompactionEventKind.RECORDED, CompactionEventKind.FAILED):
            shows(False)

    return listens


def said_trigger(trigger: Trigger | None) -> str:
    """Return `manual` if a user requested the compaction, else `auto`."""
    return "manual" if trigger is Trigger.MANUAL else "auto"


def compact_boundary(
    session: str, *, lineage: UUID, boundary: int, trigger: Trigger | None, pre_tokens: int
) -> dict[str, Any]:
    """Return the message for a boundary that begins to be served (SDKCompactBoundaryMessage)."""
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"trigger": said_trigger(trigger), "pre_tokens": pre_tokens},
        "uuid": str(uuid5(lineage, str(boundary))),
        "session_id": session,
    }


def of_boundary(session: str, boundary: CompactBoundary) -> dict[str, Any]:
    return compact_boundary(
        session,
        lineage=boundary.originator_id,
        boundary=boundary.originator_version,
        trigger=boundary.trigger,
        pre_tokens=boundary.pre_tokens,
    )


def pre_compact(
    session: str, trigger: Trigger | None, custom_instructions: str | None
) -> dict[str, Any]:
    """Return a hook's input before a summary is written (PreCompactHookInput)."""
    return {
        "session_id": session,
        "hook_event_name": "PreCompact",
        "trigger": said_trigger(trigger),
        "custom_instructions": custom_instructions,
    }


def session_start(session: str) -> dict[str, Any]:
    """Return a hook's input when the session goes on (SessionStartHookInput)."""
    return {"session_id": session, "hook_event_name": "SessionStart", "source": "compact"}


def context_warning(utilization: Utilization) -> dict[str, Any]:
    """Return the message that something will have to leave soon."""
    return {
        "type": "context_warning",
        "utilization": utilization.share,
        "total_tokens": utilization.tokens,
        "max_tokens": utilization.limit,
    }


def context_pruned(pruned: PruningResult, *, as_shipped: bool = False) -> dict[str, Any]:
    """Return the message that messages have left; as shipped, it omits the freed tokens."""
    told = {
        "type": "context_pruned",
        "messages_removed": pruned.messages,
        "utilization_before": pruned.before.share,
        "utilization_after": pruned.after.share,
    }
    return told if as_shipped else {**told, "tokens_freed": pruned.tokens}


def tool_response_truncated(
    tool_name: str, original_tokens: int, truncated_tokens: int
) -> dict[str, Any]:
    """Return the message that a tool's answer is shown shortened."""
    return {
        "type": "tool_response_truncated",
        "tool_name": tool_name,
        "original_tokens": original_tokens,
        "truncated_tokens": truncated_tokens,
    }


def stats(weighed: WeighedMessages) -> dict[str, int]:
    """Return tokens by author; a message that holds a tool result counts as a result."""
    user, assistant, results = weighed.buckets
    return {
        "total_tokens": weighed.total,
        "user_tokens": user,
        "assistant_tokens": assistant,
        "tool_result_tokens": results,
    }
