"""Queries the read models about idle work: due and running sessions, prepared boundaries, costs."""

from dataclasses import dataclass
from datetime import datetime

from ....domain.idle_rules import SPEND_WINDOW
from ....projections.read_models.timestamps import format_timestamp
from ...storage.read_models.read_models import ReadModels


@dataclass(frozen=True, slots=True)
class DueSession:
    id: int
    namespace: str
    key: str
    position: int
    """The session's newest position when it was found due."""
    lineage_version: int
    """The lineage's version when it was found due."""
    attempts: int
    """The number of failed attempts since the last block."""
    due_at: datetime
    last_activity: datetime
    in_use: int
    """The tokens of context, as far as the index knows."""


class DueSessionIndex:
    """Queries the index; each answer is as of its last catch-up with the log."""

    def __init__(self, models: ReadModels, namespaces: tuple[str, ...] = ()) -> None:
        self.models = models
        self.namespaces = namespaces

    def find_due(self, now: datetime, limit: int) -> list[DueSession]:
        """Return up to `limit` sessions that are due at `now`, longest waiting first: O(found)."""
        where = "due_at <= ?"
        found = [
            row
            for condition, parameters in self._namespace_queries()
            for row in self.models.file.fetch_rows(
                "SELECT due_at, id, namespace, key, position, served_version,"  # noqa: S608 - constant
                " attempts + (leased_until IS NOT NULL), last_activity, in_use FROM sessions"
                f" WHERE {condition}{where} ORDER BY due_at LIMIT ?",
                (*parameters, format_timestamp(now), limit),
            )
        ]
        return [
            DueSession(
                id=id,
                namespace=namespace,
                key=key,
                position=position,
                lineage_version=version,
                attempts=attempts,
                due_at=datetime.fromisoformat(due),
                last_activity=datetime.fromisoformat(last),
                in_use=tokens,
            )
            for due, id, namespace, key, position, version, attempts, last, tokens in sorted(found)[
                :limit
            ]
        ]

    def count_due(self, now: datetime) -> int:
        """Return how many sessions are due at `now`."""
        return sum(
            self.models.file.fetch_rows(
                f"SELECT count(*) FROM sessions WHERE {condition}due_at <= ?",  # noqa: S608 - constant
                (*parameters, format_timestamp(now)),
            )[0][0]
            for condition, parameters in self._namespace_queries()
        )

    def find_next_due(self, now: datetime) -> datetime | None:
        """Return when the next session is due after `now`; None if none is scheduled."""
        found = [
            row[0]
            for condition, parameters in self._namespace_queries()
            for row in self.models.file.fetch_rows(
                f"SELECT min(due_at) FROM sessions WHERE {condition}due_at > ?",  # noqa: S608 - constant
                (*parameters, format_timestamp(now)),
            )
            if row[0]
        ]
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
        return float(
            self.models.file.fetch_rows(
                "SELECT coalesce(sum(compactions.cost_usd), 0) FROM compactions"
                " JOIN compaction_requests ON compaction_requests.id = request_id"
                " WHERE session_id = ? AND worker IS NOT NULL",
                (due.id,),
            )[0][0]
        )

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

    def _namespace_queries(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return a query for each namespace, so that an index is used, or one for all."""
        if not self.namespaces:
            return [("", ())]
        return [("namespace = ? AND ", (name,)) for name in self.namespaces]
