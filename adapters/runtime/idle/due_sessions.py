"""Queries the read models for due sessions and for the costs of idle work."""

from datetime import datetime
from typing import Any, NamedTuple

from ....domain.idle_rules import SPEND_WINDOW
from ....projections.read_models.timestamps import format_timestamp
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


class DueSessionIndex:
    """Queries the index; each answer is as of its last catch-up with the log."""

    def __init__(self, models: ReadModels, namespaces: tuple[str, ...] = ()) -> None:
        self.models = models
        self.namespaces = namespaces

    def find_due(self, now: datetime, limit: int) -> list[DueSession]:
        """Return up to `limit` sessions that are due at `now`, longest waiting first."""
        rows = self._fetch_by_namespace(
            "due_at, id, namespace, key, position, served_version,"
            " attempts + (leased_until IS NOT NULL), last_activity, in_use",
            "due_at <= ? ORDER BY due_at LIMIT ?",
            (format_timestamp(now), limit),
        )
        return [
            DueSession._make(
                (datetime.fromisoformat(due_at), *known, datetime.fromisoformat(last), in_use)
            )
            for due_at, *known, last, in_use in sorted(rows)[:limit]
        ]

    def count_due(self, now: datetime) -> int:
        rows = self._fetch_by_namespace("count(*)", "due_at <= ?", (format_timestamp(now),))
        return sum(count for (count,) in rows)

    def find_next_due(self, now: datetime) -> datetime | None:
        """Return when the next session is due after `now`; None if none is scheduled."""
        rows = self._fetch_by_namespace("min(due_at)", "due_at > ?", (format_timestamp(now),))
        found = [due_at for (due_at,) in rows if due_at]
        return datetime.fromisoformat(min(found)) if found else None

    def pass_over(self, due: DueSession) -> None:
        """Ignore the session until something happens in it."""
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
