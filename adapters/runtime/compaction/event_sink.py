"""Notifies listeners of compactions' events, and collects their answers."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....domain.compaction import derive_lineage_id
from ....domain.compaction_terms import CompactionTerms
from ....domain.hooks import CompactionEvent, CompactionEventKind, Listener, Veto, ViewStats
from ....projections.hook_payloads import compact_boundary, context_pruned

if TYPE_CHECKING:
    from ....domain.utilization import PruningResult
    from ....projections.planned_compaction import PlannedCompaction
    from ...storage.view_reader import ViewReader

logger = logging.getLogger("cutbank.compaction")

Notify = Callable[..., object]
"""Passes on a `CompactionEventKind`, with the event's details by name."""


def ignore_event(moment: CompactionEventKind, **details: object) -> None:
    """Ignore the event."""


def notify_listeners(listeners: Sequence[Listener], event: CompactionEvent) -> list[Veto]:
    """Return the listeners' answers to an event; a listener that fails is logged and skipped."""
    answers = []
    for listener in listeners:
        try:
            answer = listener(event)
        except Exception:  # a failing listener must not stop the session
            logger.exception("a listener failed at %s of %r", event.moment, event.session)
        else:
            if answer is not None:
                answers.append(answer)
    return answers


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


class CompactionEventSink:
    """Adds what is known of one compaction to each of its events."""

    def __init__(
        self,
        listeners: Sequence[Listener],
        reader: "ViewReader",
        terms: CompactionTerms,
        planned: "PlannedCompaction",
    ) -> None:
        self._listeners = listeners
        self._lineage = derive_lineage_id(reader.namespace, reader.key, reader.lineage)
        window = planned.window
        summaries = int(window.summary is not None)
        self._before = ViewStats(window.tokens, len(window.items), summaries)
        self._so_far = CompactionEvent(
            moment=CompactionEventKind.PRE_COMPACT,
            session=reader.key,
            namespace=reader.namespace,
            lineage=reader.lineage,
            trigger=terms.trigger,
            policy=terms.policy.name,
            before=self._before,
            compacted_blocks=len(planned.settlement.removed_items),
            instructions=terms.instructions,
        )

    def ask_hooks(self) -> Veto:
        """Return all instructions, joined, and the first veto."""
        wishes, veto = [self._so_far.instructions], None
        for answer in self.notify(CompactionEventKind.PRE_COMPACT):
            wishes.append(answer.instructions)
            veto = veto if veto is not None else answer.veto
        together = "\n".join(wish for wish in wishes if wish) or None
        self._so_far = replace(self._so_far, instructions=together)
        if veto is not None:
            self.notify(CompactionEventKind.REJECTED, reason=f"vetoed: {veto}")
        return Veto(instructions=together, veto=veto)

    def note_boundary(
        self,
        boundary: int,
        summarizer: str,
        after: ViewStats,
        compacted_blocks: int,
        *,
        pruned: "PruningResult | None",
        is_served: bool,
    ) -> None:
        self._so_far = replace(
            self._so_far,
            boundary=boundary,
            summarizer=summarizer,
            after=after,
            compacted_blocks=compacted_blocks,
        )
        self.notify(CompactionEventKind.RECORDED)
        if is_served:
            message = compact_boundary(
                self._so_far.session,
                lineage=self._lineage,
                boundary=boundary,
                trigger=self._so_far.trigger,
                pre_tokens=self._before.tokens,
            )
            self.notify(CompactionEventKind.ACTIVATED, message=message)
            if pruned is not None:
                self.notify(CompactionEventKind.CONTEXT_PRUNED, message=context_pruned(pruned))
            self.notify(CompactionEventKind.SESSION_START, source="compact")

    def notify(self, moment: CompactionEventKind, **details: Any) -> list[Veto]:
        return notify_listeners(self._listeners, replace(self._so_far, moment=moment, **details))
