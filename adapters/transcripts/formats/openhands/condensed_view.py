"""What OpenHands forgets of a conversation: which events are still in its view."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field

from .....domain.compaction_events import Trigger

FORGOTTEN_TEXT = "[What came before left the context without a summary.]"
"""Stands for what was forgotten where no summary was made."""
_MAX_LISTED = 2_000_000
"""Ids that are listed in all: of each compaction, those that stay."""


@dataclass(slots=True)
class CondensedView:
    """The events in view, in order: each with its name as a source id."""

    names: dict[Hashable, str] = field(default_factory=dict)
    requested_trigger: Trigger | None = None
    """Why a condensation was asked for that has not come yet."""
    listed_count: int = 0

    def show(self, id: Hashable, name: str) -> None:
        self.names.setdefault(id, name)

    def forget(self, ids: Collection[Hashable]) -> bool:
        """Take these out of the view; tells whether any was in it."""
        before = len(self.names)
        for id in ids:
            self.names.pop(id, None)
        return len(self.names) < before

    def list_kept(self) -> tuple[str, ...] | None:
        """What stays; None where there was too much to list by now."""
        self.listed_count += len(self.names)
        return tuple(self.names.values()) if self.listed_count <= _MAX_LISTED else None

    def take_trigger(self) -> Trigger:
        """Why the condensation came: nobody asked for it where its condenser made it itself."""
        trigger, self.requested_trigger = self.requested_trigger or Trigger.THRESHOLD, None
        return trigger
