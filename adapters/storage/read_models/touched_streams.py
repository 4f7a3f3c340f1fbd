"""Holds the sessions and lineages of a batch, loaded once and updated as it goes."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ....projections.read_models.session_row import SessionRow
from ..event_log.stored_row import LogNotification
from .row_batch import RowBatch

_SESSION_QUERY = "SELECT * FROM sessions WHERE stream = ?"
LINEAGE_QUERY = (
    "SELECT lineages.id, lineages.name, sessions.stream FROM lineages"
    " JOIN sessions ON sessions.id = session_id WHERE lineages.stream = ?"
)


@dataclass(slots=True)
class TouchedSession:
    row: SessionRow
    newest: LogNotification | None = None
    last_said_at: str | None = None
    """The time of the newest block in the batch, as written."""
    first: int = 0
    """The first position in the batch."""
    growth: list[tuple[int, int]] = field(default_factory=list)
    """The view's growth, in tokens, by each block of the batch with its position."""
    entries: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """The digest entries of the batch, by position."""


@dataclass(slots=True)
class TouchedLineage:
    id: int
    session: TouchedSession
    name: str


class TouchedStreams:
    """Finds sessions and lineages by stream, reading each once per batch."""

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
