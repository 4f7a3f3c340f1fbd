"""What OpenHands forgets of a conversation: which events are still in its view."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field

from .....domain.compaction_events import Trigger

FORGOTTEN = "[What came before left the context without a summary.]"
"""Stands for what was forgotten where no summary was made."""
_LISTED = 2_000_000
"""Ids that are listed in all: of each compaction, those that stay."""


@dataclass(slots=True)
class View:
    """The events in view, in order: each with its name as a source id."""

    shown: dict[Hashable, str] = field(default_factory=dict)
    requested: Trigger | None = None
    """Why a condensation was asked for that has not come yet."""
    listed: int = 0

    def show(self, id: Hashable, name: str) -> None:
        self.shown.setdefault(id, name)

    def forget(self, ids: Collection[Hashable]) -> bool:
        """Take these out of the view; tells whether any was in it."""
        before = len(self.shown)
        for id in ids:
            self.shown.pop(id, None)
        return len(self.shown) < before

    def kept(self) -> tuple[str, ...] | None:
        """What stays; None where there was too much to list by now."""
        self.listed += len(self.shown)
        return tuple(self.shown.values()) if self.listed <= _LISTED else None

    def trigger(self) -> Trigger:
        """Why the condensation came: nobody asked for it where its condenser made it itself."""
        trigger, self.requested = self.requested or Trigger.THRESHOLD, None
        return trigger
