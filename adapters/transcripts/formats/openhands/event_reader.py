"""Tracks which events an OpenHands conversation has in view."""

from collections.abc import Collection

from .....domain.compaction_events import Trigger
from ..entry_steps import EntrySteps
from ..fields import JsonDict
from ..steps import SourceCompaction

_FORGOTTEN_TEXT = "[What came before left the context without a summary.]"
"""The text in place of forgotten events without a summary."""
_MAX_LISTED = 2_000_000
"""The limit of listed ids of kept events, over all compactions."""


class EventReader:
    """The state of a conversation at an event; each version reads its own fields."""

    def __init__(self) -> None:
        self.shown: dict[str, None] = {}
        """The source ids of the events in view, in order."""
        self.requested_trigger: Trigger | None = None
        """The reason for a requested condensation that has not come yet."""
        self.listed_count = 0

    def request_condensation(self, event: JsonDict) -> None:
        by_person = event.get("reason") == "manual" or event.get("source") == "user"
        self.requested_trigger = Trigger.MANUAL if by_person else Trigger.OVERFLOW

    def append(self, entry: EntrySteps, kind: str, message_id: str | None = None) -> None:
        """Append the blocks of an event, which comes into view; keep it raw if it has none."""
        if entry.append(kind, message_id):
            self.shown[entry.id or entry.key] = None

    def condense(
        self, entry: EntrySteps, kind: str, forgotten: Collection[str], summary: str | None
    ) -> None:
        """Record the compaction that forgets these events; a summary with nothing before it is a
        block.
        """
        before = len(self.shown)
        for id in forgotten:
            self.shown.pop(id, None)
        if before and (summary or len(self.shown) < before):
            entry.add(self._make_compaction(entry, summary or _FORGOTTEN_TEXT))
        else:
            entry.add_summary(summary or "")
        entry.append(kind)

    def _make_compaction(self, entry: EntrySteps, summary: str) -> SourceCompaction:
        """Return a compaction; without a request, it was automatic."""
        trigger, self.requested_trigger = self.requested_trigger or Trigger.THRESHOLD, None
        self.listed_count += len(self.shown)
        is_listed = self.listed_count <= _MAX_LISTED
        return SourceCompaction(
            key=f"{entry.key}:compacted",
            trigger=trigger,
            summary=summary,
            kept_ids=tuple(self.shown) if is_listed else (),
            source_time=entry.time,
            partial_reason=None if is_listed else "which blocks stayed is not listed",
        )
