"""The sessions and lineages that a batch is about, as earlier batches left them and as it goes."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ....projections.read_models.session_row import SessionRow
from ..event_log.recorder import LogNotification
from .row_batch import RowBatch

_SESSION_QUERY = "SELECT * FROM sessions WHERE stream = ?"
LINEAGE_QUERY = (
    "SELECT lineages.id, lineages.name, sessions.stream FROM lineages"
    " JOIN sessions ON sessions.id = session_id WHERE lineages.stream = ?"
)


@dataclass(slots=True)
class TouchedSession:
    """A session that the batch is about."""

    row: SessionRow
    newest: LogNotification | None = None
    last_said_at: str | None = None
    """When the newest block of the batch was said, as it was written."""
    first: int = 0
    """The first position in the batch."""
    growth: list[tuple[int, int]] = field(default_factory=list)
    """By how many tokens each block of the batch made the view grow, by position."""
    entries: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """What the batch adds to the digest, by position."""


@dataclass(slots=True)
class TouchedLineage:
    """A lineage that the batch is about."""

    id: int
    session: TouchedSession
    name: str


class TouchedStreams:
    """Finds them by stream; each is read once for a batch."""

    def __init__(self, rows: RowBatch) -> None:
        self._rows = rows
        self._sessions: dict[UUID, TouchedSession | None] = {}
        self._lineages: dict[UUID, TouchedLineage | None] = {}

    @property
    def sessions(self) -> list[TouchedSession]:
        return [session for session in self._sessions.values() if session is not None]

    def open_session(self, stream: UUID, row: SessionRow) -> TouchedSession:
        touched = self._sessions[stream] = TouchedSession(row)
        return touched

    def open_lineage(self, stream: UUID, lineage: TouchedLineage) -> None:
        self._lineages[stream] = lineage

    def find_session(self, stream: UUID) -> TouchedSession | None:
        if stream not in self._sessions:
            found = self._rows.fetch_mapping(_SESSION_QUERY, (str(stream),))
            self._sessions[stream] = TouchedSession(SessionRow.from_row(found)) if found else None
        return self._sessions[stream]

    def find_lineage(self, stream: UUID) -> TouchedLineage | None:
        if stream not in self._lineages:
            found = self._rows.fetch_one(LINEAGE_QUERY, (str(stream),))
            session = self.find_session(UUID(found[2])) if found else None
            lineage = TouchedLineage(found[0], session, found[1]) if found and session else None
            self._lineages[stream] = lineage
        return self._lineages[stream]
