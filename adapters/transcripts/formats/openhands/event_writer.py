"""Writes a session as OpenHands events: own ones unchanged, and one for each piece of others."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ..fields import JsonDict
from ..outgoing import (
    EntryRestorer,
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    get_block_time,
    group_own_entries,
)

EventOfBlocks = tuple[JsonDict, Sequence[OutgoingBlock]]
"""An event, and the blocks that it holds."""


class EventWriter(ABC):
    """The events written so far; each version has its own form of an event."""

    def __init__(self, outgoing: OutgoingSession, own: str) -> None:
        self.outgoing = outgoing
        self.own = own
        self.restorer = EntryRestorer()
        self.shown: dict[Any, Sequence[OutgoingBlock]] = {}
        """The blocks of the events in view, by event id."""
        self.is_prompted = False

    @abstractmethod
    def restore_event(self, entry: OutgoingEntry) -> JsonDict | None:
        """Return an event of the source; None if it was retracted, or is none."""

    @abstractmethod
    def make_prompt(self, prompt: str, tools: list[Any], time: str) -> JsonDict:
        """Return the event of a system prompt."""

    @abstractmethod
    def make_condensation(self, part: OutgoingCompaction, details: JsonDict) -> JsonDict:
        """Return the event of a compaction; `details` are its fields in each version."""

    @abstractmethod
    def make_events(self, message: OutgoingMessage) -> Iterator[EventOfBlocks]:
        """Yield the events of a message of cutbank or of another source."""

    def write_events(self) -> Iterator[JsonDict]:
        for part in group_own_entries(self.outgoing, self.own, with_refused=True):
            if isinstance(part, OutgoingEntry):
                event = self.restore_event(part)
                if event is not None:
                    yield event
                continue
            yield from self._write_prompt()
            if isinstance(part, OutgoingCompaction):
                yield self.make_condensation(part, self._make_condensation_details(part))
                continue
            for event, said in self.make_events(part):
                self.shown[event["id"]] = said
                yield event
        yield from self._write_prompt()

    @property
    def _has_prompt(self) -> bool:
        return self.outgoing.system_prompt is not None or bool(self.outgoing.tools)

    def _write_prompt(self) -> Iterator[JsonDict]:
        if not self.is_prompted and self._has_prompt:
            prompt, tools = self.outgoing.system_prompt or "", list(self.outgoing.tools)
            yield self.make_prompt(prompt, tools, format_local_time(self.outgoing.opened_at))
        self.is_prompted = True

    def _make_condensation_details(self, part: OutgoingCompaction) -> JsonDict:
        """Forget the events that a compaction did not keep; its summary follows the prompt."""
        boundary = part.boundary
        gone = [
            id
            for id, said in self.shown.items()
            if not any(one.position in boundary.kept for one in said)
        ]
        for id in gone:
            del self.shown[id]
        if changed := len(boundary.trims) + len(boundary.replacements):
            self.outgoing.count_loss("blocks that are shown shortened", changed)
        return {
            "forgotten_event_ids": gone,
            "summary": part.summary.text if part.summary else None,
            "summary_offset": int(self._has_prompt),
        }


def format_local_time(time: datetime) -> str:
    """Format a time as OpenHands does: local, without a zone."""
    plain = time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    return plain.isoformat(timespec="microseconds")


def format_origin_time(said: OutgoingBlock) -> str:
    return format_local_time(get_block_time(said))
