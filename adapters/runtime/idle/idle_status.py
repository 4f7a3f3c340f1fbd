"""Reads the status of idle work from the read models, over all processes."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from ....domain.idle_rules import SPEND_WINDOW, IdleRules
from ....projections.timestamps import format_timestamp
from ...storage.event_log.storage_errors import translate_storage_errors
from ..maintenance import Backups
from ..sessions.session_store import SessionStore
from ..sessions.store_context import read_store_time
from .due_sessions import DueSessionIndex

DAY = timedelta(days=1)
Row = dict[str, Any]
"""One session or chore, as in JSON but for its times, which are datetimes."""


@dataclass(frozen=True, slots=True)
class IdleStatus:
    """Counts, and the first few of each kind: longest waiting, or newest."""

    at: datetime
    due: int
    due_sessions: list[Row]
    next_due: datetime | None
    """When the next session becomes due."""
    held_back: str | None
    """Why nothing would begin now, even if due."""
    held_back_until: datetime | None
    running: list[Row]
    """Under a lease until `until`; `worker` is None if it is not an idle worker."""
    prepared: int
    prepared_boundaries: list[Row]
    done: int
    done_in_day: int
    done_lately: list[Row]
    failing: int
    """The number of sessions whose newest attempt failed."""
    given_up: int
    """The number of those that are not retried until they change."""
    failed_lately: list[Row]
    spent_in_hour: float
    """In dollars, like the two fields below."""
    spend_per_hour: float | None
    """The most that may be spent in any hour; None is unlimited."""
    spent: float
    read_models: str
    position: int
    """The newest notification of the log that the status includes."""
    chores: list[Row]
    """The backups, if any are made; without one yet, there is no `next_at`, and it is due now."""

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, with times as ISO 8601 in UTC."""
        document = json.dumps(asdict(self), default=datetime.isoformat)
        return cast("dict[str, Any]", json.loads(document))


def get_idle_status(
    store: SessionStore, rules: IdleRules | None = None, *, last: int = 10
) -> IdleStatus:
    """Return what is due, running, prepared, done and failed, over all processes.

    Reads new events first. `last` limits how many of each kind are listed: the longest waiting or
    the newest. Without `rules` it follows the settings, section `idle`.
    """
    with translate_storage_errors(store.name):
        now = read_store_time(store.events)
    models = store.read_models
    models.catch_up(search=False)
    rules, limit = rules or store.settings.idle.make_rules(), store.settings.compaction.limit or 0
    index = DueSessionIndex(models, rules, limit)
    waiting = index.find_waiting()
    due = [one for one in waiting if one.due_at <= now]
    known = {
        "now": format_timestamp(now),
        "day_ago": format_timestamp(now - DAY),
        "last": last,
        "attempts": rules.attempts,
        "namespaces": json.dumps(rules.namespaces) if rules.namespaces else None,
    }

    def read_rows(names: str, query: str) -> list[Row]:
        rows = models.file.fetch_rows(query, known)
        return [_make_row(names.split(), row) for row in rows]

    held_back, until = "quiet hours", rules.find_resume_time(now)
    if until is None:
        held_back = f"{rules.hourly_usd or 0:g} dollars are spent in this hour"
        until = index.find_affordable_time(now, rules.hourly_usd)
    # Of several failures of a session, only the newest has a next attempt.
    next_times = {one.id: one.due_at for one in waiting}
    failed = read_rows(*_FAILED)
    for row in failed:
        row["next_at"] = next_times.get(row["next_at"])
    ((prepared, done, done_in_day, failing, given_up, spent),) = models.file.fetch_rows(
        _TOTALS, known
    )
    return IdleStatus(
        at=now,
        due=len(due),
        due_sessions=[
            {
                "session": one.key,
                "namespace": one.namespace,
                "due_at": one.due_at,
                "in_use": one.in_use,
                "attempts": one.attempts,
                "attempts_left": max(rules.attempts - one.attempts, 0),
            }
            for one in due[:last]
        ],
        next_due=waiting[len(due)].due_at if len(due) < len(waiting) else None,
        held_back=held_back if until else None,
        held_back_until=until,
        running=read_rows(*_RUNNING),
        prepared=prepared,
        prepared_boundaries=read_rows(*_PREPARED),
        done=done,
        done_in_day=done_in_day,
        done_lately=read_rows(*_DONE),
        failing=failing,
        given_up=given_up,
        failed_lately=failed,
        spent_in_hour=sum((cost for _, cost in index.list_spend_since(now - SPEND_WINDOW)), 0.0),
        spend_per_hour=rules.hourly_usd,
        spent=float(spent),
        read_models=models.name,
        position=models.positions["index"],
        chores=[asdict(one) for one in Backups(store).read_status()],
    )


def _make_row(names: list[str], row: tuple[Any, ...]) -> Row:
    return {
        name: datetime.fromisoformat(value) if name in _TIMES and value else value
        for name, value in zip(names, row, strict=True)
    }


_TIMES = {"since", "until", "prepared_at", "done_at", "failed_at"}
_OURS = """(:namespaces IS NULL
    OR sessions.namespace IN (SELECT value FROM json_each(:namespaces)))"""
"""The condition on namespaces; `:namespaces` is a JSON list."""
_REQUESTS = f"""
    FROM compaction_requests
    JOIN lineages ON lineages.id = lineage_id
    JOIN sessions ON sessions.id = lineages.session_id
    WHERE {_OURS}
"""
_RESULTS = f"""
    FROM compactions
    JOIN sessions ON sessions.id = session_id
    LEFT JOIN compaction_requests ON compaction_requests.id = request_id
    WHERE {_OURS}
"""
_BOUNDARIES = f"""
    FROM lineages
    JOIN sessions ON sessions.id = lineages.session_id
    JOIN compactions ON lineage_id = lineages.id AND compactions.version = prepared
    WHERE prepared IS NOT NULL AND {_OURS}
"""
_RUNNING = (
    "session namespace lineage worker since until",
    f"""
    SELECT sessions.key, sessions.namespace, lineages.name, worker, requested_at,
        compaction_requests.leased_until
    {_REQUESTS} AND ended_at IS NULL AND compaction_requests.leased_until > :now
    ORDER BY requested_at
""",
)
_PREPARED = (
    "session namespace lineage boundary pre_tokens post_tokens prepared_at",
    f"""
    SELECT sessions.key, sessions.namespace, lineages.name, prepared, pre_tokens, post_tokens,
        recorded_at
    {_BOUNDARIES}
    ORDER BY recorded_at DESC LIMIT :last
""",
)
_DONE = (
    "session namespace worker boundary pre_tokens post_tokens summariser cost_usd took_s done_at",
    f"""
    SELECT sessions.key, sessions.namespace, worker, compactions.boundary, pre_tokens, post_tokens,
        summariser, cost_usd,
        round((julianday(recorded_at) - julianday(requested_at)) * 86400, 3), recorded_at
    {_RESULTS} AND compactions.outcome = 'boundary' AND worker IS NOT NULL
    ORDER BY recorded_at DESC LIMIT :last
""",
)
_FAILED = (
    "session namespace worker reason failed_at attempts_left next_at",
    f"""
    SELECT sessions.key, sessions.namespace, worker, reason, recorded_at,
        max(:attempts - sessions.attempts, 0),
        -- A block since then resets the attempts.
        CASE WHEN failed_at = recorded_at THEN sessions.id END
    {_RESULTS} AND compactions.outcome = 'failed' AND stood_in IS NULL AND rule IS NULL
        AND (request_id IS NULL OR worker IS NOT NULL)
    ORDER BY recorded_at DESC LIMIT :last
""",
)
_TOTALS = f"""
    SELECT (SELECT count(*) {_BOUNDARIES}), done.*, failing.*,
        (SELECT coalesce(sum(compactions.cost_usd), 0)
            {_RESULTS} AND compactions.cost_usd > 0 AND worker IS NOT NULL)
    FROM (SELECT count(*), coalesce(sum(ended_at > :day_ago), 0)
            {_REQUESTS} AND outcome = 'boundary' AND worker IS NOT NULL) AS done,
        (SELECT count(*), coalesce(sum(attempts >= :attempts), 0)
            FROM sessions WHERE attempts > 0 AND {_OURS}) AS failing
"""  # noqa: S608 - constant text
"""How many are prepared, done, done in a day, failing and given up, and what was spent."""
