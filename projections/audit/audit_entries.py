"""What a session's story is made of: blocks, calls, decisions, and whatever else was recorded."""

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
    """A block, and what became of it."""

    position: int
    turn: int
    block: AnyBlock
    tokens: int
    time: datetime | None
    """When it was said; None of what was imported from a source that does not tell."""
    status: StatusSince
    is_open: bool = False
    """A tool call that nobody has answered."""
    ends: Ends | None = None
    """What views show of a result that was too large for any of them."""


@dataclass(frozen=True, slots=True)
class ModelCallEntry:
    """A call of a model, where it was sent: right behind what it saw last."""

    number: int
    numbered_call: NumberedCall
    reported: ModelCalled | None
    """What was recorded of it; None where a source tells no more than the answer."""
    lineage: str
    lineage_version: int | None
    """The coordinate of what it was sent; None where none was recorded, and the newest is meant."""
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
    """The record of a call that was recorded again later; the last one counts."""


@dataclass(frozen=True, slots=True)
class AuditedDecision:
    """A decision on the lineage, or a step on the way to one."""

    version: int
    position: int
    """The position that the session was at."""
    event: Event


AuditEntry = AuditedBlock | ModelCallEntry | AuditedEvent | AuditedDecision
