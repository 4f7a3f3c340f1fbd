"""Notifies listeners of compactions' events, in the shapes of the Claude Agent SDK and qbit."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid5

from ....domain.compaction_events import CompactBoundary, Trigger
from ....domain.context_limit import PruningResult, Utilization
from ....domain.errors import CompactionVetoedError
from ....domain.hooks import CompactionEvent, CompactionEventKind, HookAnswer, Listener
from ....domain.policies.scored_pruning import WeighedMessages

logger = logging.getLogger("cutbank.compaction")


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

    def notify(self, moment: CompactionEventKind, **details: Any) -> list[HookAnswer]:
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

    def ask_hooks(self) -> str | None:
        """Return the instructions of the request and of all hooks, joined.

        Raises CompactionVetoedError if a hook forbids the compaction.
        """
        wishes = [self._so_far.instructions]
        answers = self.notify(CompactionEventKind.PRE_COMPACT)
        wishes += [answer.instructions for answer in answers]
        together = "\n".join(wish for wish in wishes if wish) or None
        self.add(instructions=together)
        if vetoes := [answer.veto for answer in answers if answer.veto is not None]:
            self.notify(CompactionEventKind.REJECTED, reason=f"vetoed: {vetoes[0]}")
            raise CompactionVetoedError(f"a hook vetoed the compaction: {vetoes[0]}")
        return together

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


def make_boundary_message(session: str, boundary: CompactBoundary) -> dict[str, Any]:
    """Return the message for a boundary that begins to be served (SDKCompactBoundaryMessage)."""
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {
            "trigger": said_trigger(boundary.trigger),
            "pre_tokens": boundary.pre_tokens,
        },
        "uuid": str(uuid5(boundary.originator_id, str(boundary.originator_version))),
        "session_id": session,
    }


def context_warning(utilization: Utilization) -> dict[str, Any]:
    """Return the message that something will have to leave soon."""
    return {
        "type": "context_warning",
        "utilization": utilization.share,
        "total_tokens": utilization.tokens,
        "max_tokens": utilization.limit,
    }


def context_pruned(pruned: PruningResult) -> dict[str, Any]:
    """Return the message that messages have left."""
    return {
        "type": "context_pruned",
        "messages_removed": pruned.messages,
        "utilization_before": pruned.before.share,
        "utilization_after": pruned.after.share,
        "tokens_freed": pruned.tokens,
    }


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
