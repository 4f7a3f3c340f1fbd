"""What is due by one worker's rules, also in a file that another worker reckons by other rules."""

from datetime import datetime

from ....projections.read_models.session_row import SESSION_COLUMNS, SessionRow, SessionRowSettings
from ....projections.read_models.timestamps import format_timestamp
from ...storage.read_models.read_models import ReadModels
from .due_sessions import DueSession, DueSessionIndex

CANDIDATE_CONDITION = (
    "closed = 0 AND open_calls = 0 AND settled = 0 AND parent_key IS NULL AND in_use >= ?"
)
"""What no rules change; the rest is reckoned row by row."""


class OwnRulesDueSessions(DueSessionIndex):
    """Asks the index where the file is reckoned by these rules; else it reckons all sessions.

    One file serves all workers of a machine, and has one `due_at` for each session: by the rules of
    whoever began, or changed his, last. A worker with others goes by its own all the same, which
    takes it a pass over the sessions at each look. `at` decides which it is until the next one.
    """

    def __init__(
        self, models: ReadModels, namespaces: tuple[str, ...], own: SessionRowSettings
    ) -> None:
        super().__init__(models, namespaces)
        self.own = own
        self._reckoned: list[DueSession] | None = None
        self._passed: dict[int, int] = {}
        """At which position sessions were passed over; the file's `due_at` is another's."""

    @property
    def has_other_rules(self) -> bool:
        """Whether the file said at the newest look when sessions are due by other rules."""
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
        """All that is due now or later, whoever has waited longest first."""
        least = int(self.own.least_share * self.own.context_limit)
        found: list[DueSession] = []
        for condition, parameters in self._namespace_queries():
            for row in self.models.file.fetch_rows(
                f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions"  # noqa: S608 - our own words
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
