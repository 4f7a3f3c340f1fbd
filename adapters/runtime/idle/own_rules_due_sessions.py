"""Finds what is due by one worker's rules, even if the read model file uses other rules."""

from datetime import datetime

from ....projections.read_models.session_row import SESSION_COLUMNS, SessionRow, SessionRowSettings
from ....projections.read_models.timestamps import format_timestamp
from ...storage.read_models.read_models import ReadModels
from .due_sessions import DueSession, DueSessionIndex

CANDIDATE_CONDITION = (
    "closed = 0 AND open_calls = 0 AND settled = 0 AND parent_key IS NULL AND in_use >= ?"
)
"""The conditions that no rules change; the rest is computed row by row."""


class OwnRulesDueSessions(DueSessionIndex):
    """Queries the index if its file uses these rules; if not, computes what is due itself.

    One file serves all workers of a machine and has one `due_at` per session, by the rules of the
    worker that last started or reloaded its settings. A worker with other rules passes over all
    sessions at each look. `find_due` decides which way is used until the next call.
    """

    def __init__(
        self, models: ReadModels, namespaces: tuple[str, ...], own: SessionRowSettings
    ) -> None:
        super().__init__(models, namespaces)
        self.own = own
        self._reckoned: list[DueSession] | None = None
        self._passed: dict[int, int] = {}
        """The positions where sessions were passed over; the file's `due_at` uses other rules."""

    @property
    def has_other_rules(self) -> bool:
        """Whether the file used other rules at the last look."""
        return self._reckoned is not None

    def find_due(self, now: datetime, limit: int) -> list[DueSession]:
        if self.models.file.current_settings == self.own:
            self._reckoned = None
            return super().find_due(now, limit)
        self._reckoned = self._list_by_own_rules()
        return [
            due for due in self._reckoned if format_timestamp(due.due_at) <= format_timestamp(now)
        ][:limit]

    def count_due(self, now: datetime) -> int:
        if self._reckoned is None:
            return super().count_due(now)
        return sum(format_timestamp(due.due_at) <= format_timestamp(now) for due in self._reckoned)

    def find_next_due(self, now: datetime) -> datetime | None:
        if self._reckoned is None:
            return super().find_next_due(now)
        later = (
            due.due_at
            for due in self._reckoned
            if format_timestamp(due.due_at) > format_timestamp(now)
        )
        return next(later, None)

    def pass_over(self, due: DueSession) -> None:
        if self._reckoned is None:
            super().pass_over(due)
        else:
            self._passed[due.id] = due.position

    def _list_by_own_rules(self) -> list[DueSession]:
        """Return all that is due now or later, longest waiting first."""
        least = int(self.own.least_share * self.own.context_limit)
        found: list[DueSession] = []
        for condition, parameters in self._namespace_queries():
            for row in self.models.file.fetch_rows(
                f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions"  # noqa: S608 - constant text
                f" WHERE {condition}{CANDIDATE_CONDITION}",
                (*parameters, least),
            ):
                session = SessionRow(**dict(zip(SESSION_COLUMNS, row, strict=True)))
                session.measure(self.own)
                if session.due_at and self._passed.get(session.id) != session.position:
                    found.append(_make_due(session, session.due_at))
        return sorted(found, key=lambda due: (due.due_at, due.id))


def _make_due(row: SessionRow, due_at: str) -> DueSession:
    return DueSession(
        id=row.id,
        namespace=row.namespace,
        key=row.key,
        position=row.position,
        lineage_version=row.served_version,
        attempts=row.attempts + (row.leased_until is not None),
        due_at=datetime.fromisoformat(due_at),
        last_activity=datetime.fromisoformat(row.last_activity),
        in_use=row.in_use,
    )
