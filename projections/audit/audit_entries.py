"""Defines the entries of an audit: blocks, calls, decisions, and other events."""

from dataclasses import dataclass
from datetime import datetime

from ...domain.blocks import AnyBlock
from ...domain.event import Event
from ...domain.session_events import Ends, ModelCalled
from ..replay.call_numbers import NumberedCall
from .block_statuses import StatusSince
from .sent_view import SentView


@dataclass(frozen=True, slots=True)
class AuditedBlock:
    """A block and its status."""

    position: int
    turn: int
    block: AnyBlock
    tokens: int
    time: datetime | None
    """When it was written; None if an imported source has no time."""
    status: StatusSince
    is_open: bool = False
    """Whether it is a tool call without an answer."""
    ends: Ends | None = None
    """The part that views show of a result too large for any of them."""


@dataclass(frozen=True, slots=True)
class ModelCallEntry:
    """A call of a model, placed right after the last block that it saw."""

    number: int
    numbered_call: NumberedCall
    reported: ModelCalled | None
    """The record of the call; None if the source has only the answer."""
    lineage: str
    lineage_version: int | None
    """The coordinate of what it was sent; None if none was recorded, which means the newest."""
    sent_view: SentView

    @property
    def record_position(self) -> int | None:
        """The position of the record."""
        return self.reported.originator_version if self.reported else None


@dataclass(frozen=True, slots=True)
class AuditedEvent:
    """Any other event of the session."""

    position: int
    event: Event
    is_superseded: bool = False
    """Whether it records a call that was recorded again later; the last one counts."""


@dataclass(frozen=True, slots=True)
class AuditedDecision:
    """A decision on the lineage, or an event that leads to one."""

    version: int
    position: int
    """The session's position at that time."""
    event: Event


AuditEntry = AuditedBlock | ModelCallEntry | AuditedEvent | AuditedDecision
