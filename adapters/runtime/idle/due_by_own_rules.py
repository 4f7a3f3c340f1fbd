"""What is due by one worker's rules, also in a file that another worker reckons by other rules."""

from datetime import datetime

from ....projections.read_models.moments import moment
from ....projections.read_models.session_row import COLUMNS, SessionRow, Settings
from ...storage.read_models.read_models import ReadModels
from .due_sessions import Due, DueSessions

MAY_BE_DUE = "closed = 0 AND open_calls = 0 AND settled = 0 AND parent_key IS NULL AND in_use >= ?"
"""What no rules change; the rest is reckoned row by row."""


class DueByOwnRules(DueSessions):
    """Asks the index where the file is reckoned by these rules; else it reckons all sessions.

    One file serves all workers of a machine, and has one `due_at` for each session: by the rules of
    whoever began, or changed his, last. A worker with others goes by its own all the same, which
    takes it a pass over the sessions at each look. `at` decides which it is until the next one.
    """

    def __init__(self, models: ReadModels, namespaces: tuple[str, ...], own: Settings) -> None:
        super().__init__(models, namespaces)
        self.own = own
        self._reckoned: list[Due] | None = None
        self._passed: dict[int, int] = {}
        """At which position sessions were passed over; the file's `due_at` is another's."""

    @property
    def are_others_rules(self) -> bool:
        """Whether the file said at the newest look when sessions are due by other rules."""
        return self._reckoned is not None

    def at(self, now: datetime, limit: int) -> list[Due]:
        if self.models.file.reckoned == self.own:
            self._reckoned = None
            return super().at(now, limit)
        self._reckoned = self._by_own_rules()
        return [due for due in self._reckoned if moment(due.due_at) <= moment(now)][:limit]

    def count(self, now: datetime) -> int:
        if self._reckoned is None:
            return super().count(now)
        return sum(moment(due.due_at) <= moment(now) for due in self._reckoned)

    def next_at(self, now: datetime) -> datetime | None:
        if self._reckoned is None:
            return super().next_at(now)
        later = (due.due_at for due in self._reckoned if moment(due.due_at) > moment(now))
        return next(later, None)

    def pass_over(self, due: Due) -> None:
        if self._reckoned is None:
            super().pass_over(due)
        else:
            self._passed[due.id] = due.position

    def _by_own_rules(self) -> list[Due]:
        """All that is due now or later, whoever has waited longest first."""
        least = int(self.own.least_share * self.own.context_limit)
        found: list[Due] = []
        for condition, parameters in self._per_namespace():
            for row in self.models.file.rows(
                f"SELECT {', '.join(COLUMNS)} FROM sessions"  # noqa: S608 - our own words
                f" WHERE {condition}{MAY_BE_DUE}",
                (*parameters, least),
            ):
                session = SessionRow(**dict(zip(COLUMNS, row, strict=True)))
                session.measure(self.own)
                if session.due_at and self._passed.get(session.id) != session.position:
                    found.append(_due(session, session.due_at))
        return sorted(found, key=lambda due: (due.due_at, due.id))


def _due(row: SessionRow, due_at: str) -> Due:
    return Due(
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
