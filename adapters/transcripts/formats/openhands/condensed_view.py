"""Tracks which events of a conversation are in OpenHands' view."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field

from .....domain.compaction_events import Trigger

FORGOTTEN_TEXT = "[What came before left the context without a summary.]"
"""The text in place of forgotten events without a summary."""
_MAX_LISTED = 2_000_000
"""The limit of listed ids of kept events, over all compactions."""


@dataclass(slots=True)
class CondensedView:
    """The events in view, in order: each with its source id."""

    names: dict[Hashable, str] = field(default_factory=dict)
    requested_trigger: Trigger | None = None
    """The reason for a requested condensation that has not come yet."""
    listed_count: int = 0

    def show(self, id: Hashable, name: str) -> None:
        self.names.setdefault(id, name)

    def forget(self, ids: Collection[Hashable]) -> bool:
        """Remove these from the view; return whether any was in it."""
        before = len(self.names)
        for id in ids:
            self.names.pop(id, None)
        return len(self.names) < before

    def list_kept(self) -> tuple[str, ...] | None:
        """Return the source ids of kept events; None if the limit is reached."""
        self.listed_count += len(self.names)
        return tuple(self.names.values()) if self.listed_count <= _MAX_LISTED else None

    def take_trigger(self) -> Trigger:
        """Return the trigger of the condensation; without a request, it was automatic."""
        trigger, self.requested_trigger = self.requested_trigger or Trigger.THRESHOLD, None
        return trigger
