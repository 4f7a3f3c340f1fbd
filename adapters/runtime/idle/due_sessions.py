"""Queries the read models for due sessions and for the costs of idle work."""

from datetime import datetime
from typing import Any, NamedTuple

from ....domain.idle_rules import SPEND_WINDOW
from ....projections.read_models.session_row import SESSION_COLUMNS, SessionRow, SessionRowSettings
from ....projections.read_models.timestamps import format_timestamp
from ...storage.read_models.read_models import ReadModels

CANDIDATE_CONDITION = (
    "closed = 0 AND open_calls = 0 AND settled = 0 AND parent_key IS NULL AND in_use >= ?"
)
"""The conditions that no rules change; the rest is computed row by row."""


class DueSession(NamedTuple):
    due_at: datetime
    id: int
    namespace: str
    key: str
    position: int
    """The session's newest position when it was found due."""
    lineage_version: int
    """The lineage's version when it was found due."""
    attempts: int
    """The number of failed attempts since the last block."""
    last_activity: datetime
    in_use: int
    """The tokens of context, as far as the index knows."""


class DueSessionIndex:
    """Queries the index; each answer is as of its last catch-up with the log.

    One file serves all workers of a machine and has one `due_at` per session, by the rules of the
    worker that started last. A worker with other rules, its `own`, computes what is due by passing
    over all sessions; `find_due` decides which way is used until its next call.
    """

    def __init__(
        self,
        models: ReadModels,
        namespaces: tuple[str, ...] = (),
        own: SessionRowSettings | None = None,
    ) -> None:
        self.models = models
        self.namespaces = namespaces
        self.own = own
        self._computed: list[DueSession] | None = None
        """All that is due now or later by its own rules, if the file uses others."""
        self._passed_over: dict[int, int] = {}
        """The positions where sessions were passed over, if the file uses other rules."""

    @property
    def has_other_rules(self) -> bool:
        """Whether the file used other rules at the last look."""
        return self._computed is not None

    def find_due(self, now: datetime, limit: int) -> list[DueSession]:
        """Return up to `limit` sessions that are due at `now`, longest waiting first.

        The time is O(found), or O(sessions) if the file uses other rules.
        """
        if self.own is not None and self.models.file.read_settings() != self.own:
            self._computed = self._compute_due()
            return [due for due in self._computed if due.due_at <= now][:limit]
        self._computed = None
        rows = self._fetch_by_namespace(
            "due_at, id, namespace, key, position, served_version,"
            " attempts + (leased_until IS NOT NULL), last_activity, in_use",
            "due_at <= ? ORDER BY due_at LIMIT ?",
            (format_timestamp(now), limit),
        )
        return [_make_due(row) for row in sorted(rows)[:limit]]

    def count_due(self, now: datetime) -> int:
        if self._computed is not None:
            return sum(due.due_at <= now for due in self._computed)
        rows = self._fetch_by_namespace("count(*)", "due_at <= ?", (format_timestamp(now),))
        return sum(count for (count,) in rows)

    def find_next_due(self, now: datetime) -> datetime | None:
        """Return when the next session is due after `now`; None if none is scheduled."""
        if self._computed is not None:
            return next((due.due_at for due in self._computed if due.due_at > now), None)
        rows = self._fetch_by_namespace("min(due_at)", "due_at > ?", (format_timestamp(now),))
        found = [due_at for (due_at,) in rows if due_at]
        return datetime.fromisoformat(min(found)) if found else None

    def pass_over(self, due: DueSession) -> None:
        """Ignore the session until something happens in it."""
        if self._computed is not None:
            self._passed_over[due.id] = due.position
            return
        with self.models.file.transaction() as db:
            db.execute(
                "UPDATE sessions SET due_at = NULL WHERE id = ? AND position = ?",
                (due.id, due.position),
            )

    def find_model(self, due: DueSession) -> str | None:
        found = self.models.file.fetch_rows(
            "SELECT model FROM model_calls WHERE session_id = ? ORDER BY id DESC LIMIT 1",
            (due.id,),
        )
        return found[0][0] if found else None

    def read_session_spend(self, due: DueSession) -> float:
        """Return what idle work has spent on the session, in dollars, successful or not."""
        ((spent,),) = self.models.file.fetch_rows(
            "SELECT coalesce(sum(compactions.cost_usd), 0) FROM compactions"
            " JOIN compaction_requests ON compaction_requests.id = request_id"
            " WHERE session_id = ? AND worker IS NOT NULL",
            (due.id,),
        )
        return float(spent)

    def list_spend_since(self, since: datetime) -> list[tuple[datetime, float]]:
        """Return what idle work has spent since then, in dollars, oldest first."""
        found = self.models.file.fetch_rows(
            "SELECT recorded_at, compactions.cost_usd FROM compactions"
            " JOIN compaction_requests ON compaction_requests.id = request_id"
            " WHERE recorded_at > ? AND compactions.cost_usd > 0 AND worker IS NOT NULL"
            " ORDER BY recorded_at",
            (format_timestamp(since),),
        )
        return [(datetime.fromisoformat(at), cost) for at, cost in found]

    def find_affordable_time(self, now: datetime, hourly_usd: float | None) -> datetime | None:
        """Return when the last 60 minutes will have cost less than that; None if they do now."""
        if hourly_usd is None:
            return None
        spent = self.list_spend_since(now - SPEND_WINDOW)
        left = sum(cost for _, cost in spent)
        if not spent or left < hourly_usd:
            return None
        for at, cost in spent:
            left -= cost
            if left < hourly_usd:
                return at + SPEND_WINDOW
        return now + SPEND_WINDOW

    def _fetch_by_namespace(
        self, columns: str, condition: str, parameters: tuple[object, ...]
    ) -> list[tuple[Any, ...]]:
        """Return rows of sessions, by a query for each namespace, so that an index is used."""
        query = f"SELECT {columns} FROM sessions WHERE"  # noqa: S608 - constant text
        if not self.namespaces:
            return self.models.file.fetch_rows(f"{query} {condition}", parameters)
        return [
            row
            for name in self.namespaces
            for row in self.models.file.fetch_rows(
                f"{query} namespace = ? AND {condition}", (name, *parameters)
            )
        ]

    def _compute_due(self) -> list[DueSession]:
        """Return all that is due now or later by its own rules, longest waiting first."""
        assert self.own is not None
        least = int(self.own.least_share * self.own.context_limit)
        found: list[DueSession] = []
        for row in self._fetch_by_namespace(
            ", ".join(SESSION_COLUMNS), CANDIDATE_CONDITION, (least,)
        ):
            one = SessionRow(**dict(zip(SESSION_COLUMNS, row, strict=True)))
            one.measure(self.own)
            if one.due_at and self._passed_over.get(one.id) != one.position:
                name = (one.id, one.namespace, one.key, one.position, one.served_version)
                attempts = one.attempts + (one.leased_until is not None)
                found.append(
                    _make_due((one.due_at, *name, attempts, one.last_activity, one.in_use))
                )
        return sorted(found)


def _make_due(row: tuple[Any, ...]) -> DueSession:
    """Return the session of a row, whose columns are the fields in their order."""
    due_at, *known, last_activity, in_use = row
    times = datetime.fromisoformat(due_at), datetime.fromisoformat(last_activity)
    return DueSession._make((times[0], *known, times[1], in_use))
