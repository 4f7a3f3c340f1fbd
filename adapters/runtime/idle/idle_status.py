"""Reads the status of idle work from the read models, over all processes."""

import json
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from ....domain.hooks import JSON_NAMES
from ....domain.idle_rules import SPEND_WINDOW, IdleRules
from ....projections.read_models.timestamps import format_timestamp
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.read_models.read_models import ReadModels
from ..maintenance.maintenance import Maintenance
from ..maintenance.maintenance_task import TaskStatus
from ..sessions.session_store import SessionStore
from .due_sessions import DueSessionIndex
from .server_clock import read_store_time

DAY = timedelta(days=1)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class DueStatus:
    session: str
    namespace: str
    due_at: datetime
    in_use: int
    attempts: int
    attempts_left: int


@dataclass(frozen=True, slots=True)
class RunningStatus:
    session: str
    namespace: str
    lineage: str
    worker: str | None
    """None if it is not an idle worker."""
    since: datetime
    until: datetime
    """The end of the lease, after which others may take over."""


@dataclass(frozen=True, slots=True)
class PreparedStatus:
    session: str
    namespace: str
    lineage: str
    boundary: int
    pre_tokens: int
    post_tokens: int
    prepared_at: datetime


@dataclass(frozen=True, slots=True)
class DoneStatus:
    session: str
    namespace: str
    worker: str | None
    boundary: int
    pre_tokens: int
    post_tokens: int
    summarizer: str | None
    cost_usd: float | None
    took_s: float | None
    done_at: datetime


@dataclass(frozen=True, slots=True)
class FailedStatus:
    session: str
    namespace: str
    worker: str | None
    reason: str
    failed_at: datetime
    attempts_left: int
    next_at: datetime | None
    """When the next attempt is due; None if there is none."""


@dataclass(frozen=True, slots=True)
class IdleStatus:
    """Counts, and the first few of each kind: longest waiting, or newest."""

    at: datetime
    due: int
    due_sessions: tuple[DueStatus, ...]
    next_due: datetime | None
    """When the next session becomes due."""
    held_back: str | None
    """Why nothing would begin now, even if due."""
    held_back_until: datetime | None
    running: tuple[RunningStatus, ...]
    prepared: int
    prepared_boundaries: tuple[PreparedStatus, ...]
    done: int
    done_in_day: int
    done_lately: tuple[DoneStatus, ...]
    failing: int
    """The number of sessions whose newest attempt failed."""
    given_up: int
    """The number of those that are not retried until they change."""
    failed_lately: tuple[FailedStatus, ...]
    spent_in_hour: float
    """In dollars, like the two fields below."""
    spend_per_hour: float | None
    """The most that may be spent in any hour; None is unlimited."""
    spent: float
    read_models: str
    position: int
    """The newest notification of the log that the status includes."""
    chores: tuple[TaskStatus, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, with times as ISO 8601 in UTC."""
        document = json.dumps(asdict(self), default=datetime.isoformat)
        return cast("dict[str, Any]", json.loads(document, object_hook=_rename_fields))


def get_idle_status(store: SessionStore, *, last: int = 10) -> IdleStatus:
    """Return what is due, running, prepared, done and failed, over all processes.

    Reads new events first. `last` limits how many of each kind are listed. The rules are those of
    the settings, section `idle`.
    """
    with translate_storage_errors(store.name):
        now = read_store_time(store.events)
    store.read_models.catch_up(search=False)
    chores = tuple(Maintenance(store).read_status())
    return read_idle_status(store.read_models, store.settings.idle.make_rules(), now, last, chores)


def read_idle_status(
    models: ReadModels,
    rules: IdleRules,
    now: datetime,
    last: int,
    chores: tuple[TaskStatus, ...] = (),
) -> IdleStatus:
    """Return the status as of the read models; `last` limits how many of each kind are listed."""
    index = DueSessionIndex(models, rules.namespaces)
    # The due times follow the rules of the worker that began last, so the attempts left do too.
    attempts = models.file.current_settings.attempts
    known = {
        "now": format_timestamp(now),
        "day_ago": format_timestamp(now - DAY),
        "last": last,
        "attempts": attempts,
        "namespaces": json.dumps(rules.namespaces) if rules.namespaces else None,
    }

    def read_all(kind: type[_T], query: str) -> tuple[_T, ...]:
        return tuple(_make_status(kind, row) for row in models.file.fetch_rows(query, known))

    held_back, until = "quiet hours", rules.find_resume_time(now)
    if until is None:
        held_back = f"{rules.hourly_usd or 0:g} dollars are spent in this hour"
        until = index.find_affordable_time(now, rules.hourly_usd)
    ((prepared, done, done_in_day, failing, given_up, spent),) = models.file.fetch_rows(
        _TOTALS, known
    )
    return IdleStatus(
        at=now,
        due=index.count_due(now),
        due_sessions=tuple(
            DueStatus(
                due.key,
                due.namespace,
                due.due_at,
                due.in_use,
                due.attempts,
                attempts_left=max(attempts - due.attempts, 0),
            )
            for due in index.find_due(now, last)
        ),
        next_due=index.find_next_due(now),
        held_back=held_back if until else None,
        held_back_until=until,
        running=read_all(RunningStatus, _RUNNING),
        prepared=prepared,
        prepared_boundaries=read_all(PreparedStatus, _PREPARED),
        done=done,
        done_in_day=done_in_day,
        done_lately=read_all(DoneStatus, _DONE),
        failing=failing,
        given_up=given_up,
        failed_lately=read_all(FailedStatus, _FAILED),
        spent_in_hour=sum((cost for _, cost in index.list_spend_since(now - SPEND_WINDOW)), 0.0),
        spend_per_hour=rules.hourly_usd,
        spent=float(spent),
        read_models=models.name,
        position=models.positions["index"],
        chores=chores,
    )


def _make_status(kind: type[_T], row: tuple[Any, ...]) -> _T:
    """Return the status of a row, whose columns are the fields in their order."""
    values = [
        datetime.fromisoformat(value) if value and field.type in _TIMES else value
        for field, value in zip(fields(kind), row, strict=True)  # type: ignore[arg-type]  # a dataclass
    ]
    return kind(*values)


def _rename_fields(fields: dict[str, Any]) -> dict[str, Any]:
    return {JSON_NAMES.get(name, name): value for name, value in fields.items()}


_TIMES = (datetime, datetime | None)
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
_RUNNING = f"""
    SELECT sessions.key, sessions.namespace, lineages.name, worker, requested_at,
        compaction_requests.leased_until
    {_REQUESTS} AND ended_at IS NULL AND compaction_requests.leased_until > :now
    ORDER BY requested_at
"""
_PREPARED = f"""
    SELECT sessions.key, sessions.namespace, lineages.name, prepared, pre_tokens, post_tokens,
        recorded_at
    {_BOUNDARIES}
    ORDER BY recorded_at DESC LIMIT :last
"""
_DONE = f"""
    SELECT sessions.key, sessions.namespace, worker, compactions.boundary, pre_tokens, post_tokens,
        summariser, cost_usd,
        round((julianday(recorded_at) - julianday(requested_at)) * 86400, 3), recorded_at
    {_RESULTS} AND compactions.outcome = 'boundary' AND worker IS NOT NULL
    ORDER BY recorded_at DESC LIMIT :last
"""
_FAILED = f"""
    SELECT sessions.key, sessions.namespace, worker, reason, recorded_at,
        max(:attempts - sessions.attempts, 0),
        -- A block since then resets the attempts; of several failures, only the newest has a next.
        CASE WHEN failed_at = recorded_at THEN due_at END
    {_RESULTS} AND compactions.outcome = 'failed' AND stood_in IS NULL AND rule IS NULL
        AND (request_id IS NULL OR worker IS NOT NULL)
    ORDER BY recorded_at DESC LIMIT :last
"""
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
