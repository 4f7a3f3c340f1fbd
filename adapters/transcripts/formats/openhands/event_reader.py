"""Makes the steps of OpenHands events, and tracks which events a conversation has in view."""

from collections.abc import Collection, Iterator

from .....domain.compaction_events import Trigger
from ..entry_steps import EntryBlocks, EntryLocation
from ..fields import JsonDict
from ..steps import ImportStep, RawEntry, SkippedEntry, SourceCompaction, UnknownEntry

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

    def keep_raw(self, whence: EntryLocation, kind: str) -> RawEntry:
        return RawEntry(whence.key, kind, whence.line.text, whence.id, whence.number)

    def keep_unknown(self, whence: EntryLocation, kind: str) -> UnknownEntry:
        return UnknownEntry(whence.key, kind, whence.line.text, whence.number, whence.id)

    def request_condensation(self, event: JsonDict) -> None:
        by_person = event.get("reason") == "manual" or event.get("source") == "user"
        self.requested_trigger = Trigger.MANUAL if by_person else Trigger.OVERFLOW

    def append(
        self,
        pieces: EntryBlocks,
        whence: EntryLocation,
        kind: str,
        message_id: str | None = None,
    ) -> Iterator[ImportStep]:
        """Yield the blocks of an event, which comes into view; keep it raw if it has none."""
        if not pieces.blocks:
            yield self.keep_raw(whence, kind)
            return
        yield from pieces.make_appends(whence, message_id)
        self.shown[whence.id or whence.key] = None

    def condense(
        self, whence: EntryLocation, kind: str, forgotten: Collection[str], summary: str | None
    ) -> Iterator[ImportStep]:
        """Yield the compaction that forgets these events; a summary with nothing before it is a
        block.
        """
        before = len(self.shown)
        for id in forgotten:
            self.shown.pop(id, None)
        if before and (summary or len(self.shown) < before):
            yield self._make_compaction(whence, summary or _FORGOTTEN_TEXT)
        elif summary:
            pieces = EntryBlocks()
            pieces.add_summary(summary)
            yield from pieces.make_appends(whence)
            return
        yield self.keep_raw(whence, kind)

    def _make_compaction(self, whence: EntryLocation, summary: str) -> SourceCompaction:
        """Return a compaction; without a request, it was automatic."""
        trigger, self.requested_trigger = self.requested_trigger or Trigger.THRESHOLD, None
        self.listed_count += len(self.shown)
        is_listed = self.listed_count <= _MAX_LISTED
        return SourceCompaction(
            key=f"{whence.key}:compacted",
            trigger=trigger,
            summary=summary,
            kept_ids=tuple(self.shown) if is_listed else (),
            source_time=whence.time,
            partial_reason=None if is_listed else "which blocks stayed is not listed",
        )


def find_outcome(steps: list[ImportStep]) -> str:
    """Return how an event ended, by its last step."""
    match steps[-1]:
        case SkippedEntry():
            return "skipped"
        case UnknownEntry():
            return "unknown"
        case _:
            return "imported"
