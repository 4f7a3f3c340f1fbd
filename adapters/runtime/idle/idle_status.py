"""Reads the status of idle work from the read models alone, over all processes."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ....domain.idle_rules import SPEND_WINDOW, IdleRules
from ....projections.read_models.timestamps import format_timestamp
from .due_sessions import DueSession, DueSessionIndex
from .status_queries import (
    DONE_COUNT_QUERY,
    DONE_QUERY,
    FAILED_QUERY,
    FAILING_COUNT_QUERY,
    PREPARED_QUERY,
    RUNNING_QUERY,
    SPENT_QUERY,
)

if TYPE_CHECKING:
    from ...storage.read_models.read_models import ReadModels
    from ..maintenance.task_record import TaskStatus

DAY = timedelta(days=1)


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
    summariser: str | None
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
    chores: "tuple[TaskStatus, ...]" = ()

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, with times as ISO 8601 in UTC."""
        document: dict[str, Any] = _to_json_value(asdict(self))
        return document


def read_idle_status(
    models: "ReadModels", rules: IdleRules, now: datetime, last: int
) -> IdleStatus:
    """Return the status as of the read models; `last` limits how many of each kind are listed."""
    due = DueSessionIndex(models, rules.namespaces)
    # The due times follow the rules of the worker that began last, so the attempts left do too.
    rules = replace(rules, attempts=models.file.current_settings.attempts)
    known = {
        "now": format_timestamp(now),
        "day_ago": format_timestamp(now - DAY),
        "last": last,
        "attempts": rules.attempts,
        "namespaces": json.dumps(rules.namespaces) if rules.namespaces else None,
    }

    def rows(query: str) -> list[tuple[Any, ...]]:
        return models.file.fetch_rows(query, known)

    held_back, until = _find_hold(due, rules, now)
    prepared = rows(PREPARED_QUERY)
    (done,), (failing,), (spent,) = (
        rows(DONE_COUNT_QUERY),
        rows(FAILING_COUNT_QUERY),
        rows(SPENT_QUERY),
    )
    return IdleStatus(
        at=now,
        due=due.count_due(now),
        due_sessions=tuple(_make_due_status(found, rules) for found in due.find_due(now, last)),
        next_due=due.find_next_due(now),
        held_back=held_back,
        held_back_until=until,
        running=tuple(
            RunningStatus(
                key, namespace, lineage, worker, _parse_moment(since), _parse_moment(ends)
            )
            for key, namespace, lineage, worker, since, ends in rows(RUNNING_QUERY)
        ),
        prepared=prepared[0][-1] if prepared else 0,
        prepared_boundaries=tuple(map(_make_prepared_status, prepared)),
        done=done[0],
        done_in_day=done[1],
        done_lately=tuple(map(_make_done_status, rows(DONE_QUERY))),
        failing=failing[0],
        given_up=failing[1],
        failed_lately=tuple(_make_failed_status(row, rules) for row in rows(FAILED_QUERY)),
        spent_in_hour=sum((cost for _, cost in due.list_spend_since(now - SPEND_WINDOW)), 0.0),
        spend_per_hour=rules.hourly_usd,
        spent=float(spent[0]),
        read_models=models.name,
        position=models.positions["index"],
    )


def _find_hold(
    due: DueSessionIndex, rules: IdleRules, now: datetime
) -> tuple[str | None, datetime | None]:
    if quiet := rules.find_resume_time(now):
        return "quiet hours", quiet
    if affordable := due.find_affordable_time(now, rules.hourly_usd):
        return f"{rules.hourly_usd:g} dollars are spent in this hour", affordable
    return None, None


def _make_due_status(due: DueSession, rules: IdleRules) -> DueStatus:
    left = max(rules.attempts - due.attempts, 0)
    return DueStatus(due.key, due.namespace, due.due_at, due.in_use, due.attempts, left)


def _make_prepared_status(row: tuple[Any, ...]) -> PreparedStatus:
    key, namespace, lineage, boundary, before, after, at, _ = row
    return PreparedStatus(key, namespace, lineage, boundary, before, after, _parse_moment(at))


def _make_done_status(row: tuple[Any, ...]) -> DoneStatus:
    key, namespace, worker, boundary, before, after, summariser, cost, since, at = row
    return DoneStatus(
        session=key,
        namespace=namespace,
        worker=worker,
        boundary=boundary,
        pre_tokens=before,
        post_tokens=after,
        summariser=summariser,
        cost_usd=cost,
        took_s=(_parse_moment(at) - _parse_moment(since)).total_seconds(),
        done_at=_parse_moment(at),
    )


def _make_failed_status(row: tuple[Any, ...], rules: IdleRules) -> FailedStatus:
    key, namespace, worker, reason, at, attempts, due_at, newest = row
    left = max(rules.attempts - attempts, 0)
    # A block since then resets the attempts; of several failures, only the newest has a next time.
    is_newest = newest == at and left > 0
    next_at = _parse_moment(due_at) if is_newest and due_at is not None else None
    return FailedStatus(key, namespace, worker, reason, _parse_moment(at), left, next_at)


def _parse_moment(written: str) -> datetime:
    return datetime.fromisoformat(written)


def _to_json_value(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case dict():
            return {name: _to_json_value(one) for name, one in value.items()}
        case list() | tuple():
            return [_to_json_value(one) for one in value]
        case _:
            return value
