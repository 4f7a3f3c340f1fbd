"""The sessions and lineages that a batch is about, as earlier batches left them and as it goes."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ....projections.read_models.session_row import SessionRow
from ..event_log.recorder import LogNotification
from .rows import Rows

SESSION = "SELECT * FROM sessions WHERE stream = ?"
LINEAGE = (
    "SELECT lineages.id, lineages.name, sessions.stream FROM lineages"
    " JOIN sessions ON sessions.id = session_id WHERE lineages.stream = ?"
)


@dataclass(slots=True)
class Touched:
    """A session that the batch is about."""

    row: SessionRow
    newest: LogNotification | None = None
    said: str | None = None
    """When the newest block of the batch was said, as it was written."""
    first: int = 0
    """The first position in the batch."""
    grown: list[tuple[int, int]] = field(default_factory=list)
    """By how many tokens each block of the batch made the view grow, by position."""
    entries: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """What the batch adds to the digest, by position."""


@dataclass(slots=True)
class Lineage:
    """A lineage that the batch is about."""

    id: int
    session: Touched
    name: str


class Streams:
    """Finds them by stream; each is read once for a batch."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._sessions: dict[UUID, Touched | None] = {}
        self._lineages: dict[UUID, Lineage | None] = {}

    @property
    def touched(self) -> list[Touched]:
        return [session for session in self._sessions.values() if session is not None]

    def open_session(self, stream: UUID, row: SessionRow) -> Touched:
        touched = self._sessions[stream] = Touched(row)
        return touched

    def open_lineage(self, stream: UUID, lineage: Lineage) -> None:
        self._lineages[stream] = lineage

    def session(self, stream: UUID) -> Touched | None:
        if stream not in self._sessions:
            found = self._rows.mapping(SESSION, (str(stream),))
            self._sessions[stream] = Touched(SessionRow.of(found)) if found else None
        return self._sessions[stream]

    def lineage(self, stream: UUID) -> Lineage | None:
        if stream not in self._lineages:
            found = self._rows.one(LINEAGE, (str(stream),))
            session = self.session(UUID(found[2])) if found else None
            lineage = Lineage(found[0], session, found[1]) if found and session else None
            self._lineages[stream] = lineage
        return self._lineages[stream]
