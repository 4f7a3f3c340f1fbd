"""Queries the read models for due sessions and for the costs of idle work."""

from datetime import datetime
from typing import NamedTuple

from ....domain.idle_rules import SPEND_WINDOW, IdleRules
from ....projections.read_models.session_row import PASSED_OVER, SessionRow
from ....projections.read_models.timestamps import format_timestamp
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.read_models.read_models import ReadModels


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


_COLUMNS = (
    *("id", "stream", "namespace", "key", "position", "served_version", "in_use"),
    *("context_limit", "attempts", "last_activity", "leased_until", "wake_at", "failed_at"),
)
"""What names a session, and what its due time depends on."""
_CANDIDATES = (
    f"SELECT {', '.join(_COLUMNS)} FROM sessions"  # noqa: S608 - our names
    " WHERE settled = 0 AND open_calls = 0 AND closed = 0 AND parent_key IS NULL"
)
_ROUNDING = 0.000_1
"""A share is rounded before it is compared."""


class DueSessionIndex:
    """Queries the index; each answer is as of its last catch-up with the log."""

    def __init__(self, models: ReadModels, rules: IdleRules, limit: int = 0) -> None:
        """`limit` is the limit of all sessions; 0 if each has its own."""
        self.models = models
        self.rules = rules
        self.limit = limit

    def find_waiting(self) -> list[DueSession]:
        """Return all sessions that are due now or will be by time alone, longest waiting first."""
        size, least = "utilisation", self.rules.least_utilization
        if self.limit:
            size, least = "in_use", (least - _ROUNDING) * self.limit
        waiting = []
        for found in self.models.file.fetch_rows(f"{_CANDIDATES} AND {size} >= ?", (least,)):
            row = SessionRow(**dict(zip(_COLUMNS, found, strict=True)))
            if self.rules.namespaces and row.namespace not in self.rules.namespaces:
                continue
            if due_at := row.find_due_time(self.rules, self.limit):
                waiting.append(
                    DueSession(
                        due_at,
                        row.id,
                        row.namespace,
                        row.key,
                        row.position,
                        row.served_version,
                        row.attempts + (row.leased_until is not None),
                        datetime.fromisoformat(row.last_activity),
                        row.in_use,
                    )
                )
        return sorted(waiting)

    def find_due(self, now: datetime) -> list[DueSession]:
        """Return the sessions that are due at `now`, longest waiting first."""
        return [one for one in self.find_waiting() if one.due_at <= now]

    def pass_over(self, due: DueSession) -> None:
        """Ignore the session until something is appended to it."""
        with translate_storage_errors(self.models.name), self.models.file.transaction() as db:
            db.execute(
                "UPDATE sessions SET settled = ? WHERE id = ? AND position = ?",
                (PASSED_OVER, due.id, due.position),
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
