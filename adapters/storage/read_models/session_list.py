"""Lists all sessions from the index, with a single query."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from ....domain.context_limit import LimitSource
from ....domain.idle_rules import IdleRules
from ....projections.session_row import (
    SESSION_COLUMNS,
    IdleState,
    SessionRow,
    compute_utilization,
)
from ....projections.timestamps import format_timestamp
from .read_models import ReadModels

_SESSIONS_QUERY = """
    SELECT sessions.key AS session, sessions.namespace, sessions.title, sessions.source,
        sessions.parent_key AS parent, origin.key AS forked_from, sessions.position,
        sessions.turns AS turn, sessions.blocks, sessions.tokens, sessions.open_calls,
        sessions.closed,
        (SELECT prepared FROM lineages WHERE session_id = sessions.id AND name = 'main')
            AS prepared,
        (SELECT json_group_array(name) FROM
            (SELECT name FROM lineages WHERE session_id = sessions.id ORDER BY name)) AS lineages,
        sessions.project, sessions.first_prompt, sessions.model,
        coalesce(sessions.said_at, sessions.last_activity) AS said_at,
        (SELECT count(*) FROM compactions JOIN lineages ON lineages.id = lineage_id
            WHERE compactions.session_id = sessions.id AND lineages.name IN ('main', 'recorded')
            AND activated_at IS NOT NULL AND reverted_at IS NULL) AS compactions,
        sessions.in_use, sessions.utilisation, sessions.context_limit AS "limit",
        sessions.limit_source,
        served.prepared IS NOT NULL, served.boundary IS NOT NULL, sessions.*
    FROM sessions
    LEFT JOIN sessions AS origin ON origin.id = sessions.forked_from_id
    LEFT JOIN lineages AS served ON served.session_id = sessions.id
        AND served.name = coalesce(sessions.served_lineage, 'main')
    WHERE :namespace IS NULL OR sessions.namespace = :namespace
    ORDER BY sessions.namespace, sessions.key
"""
"""First the fields of ListedSession but for its idle state; last those of SessionRow."""
_ROW = -len(SESSION_COLUMNS)


@dataclass(slots=True)
class ListedSession:
    session: str
    namespace: str
    title: str | None
    source: str | None
    parent: str | None
    forked_from: str | None
    position: int
    turn: int
    blocks: int
    tokens: int
    open_calls: int
    closed: bool
    prepared: int | None
    """The prepared boundary on `main`."""
    lineages: list[str]
    project: str | None
    """The agent's working folder."""
    first_prompt: str | None
    """The beginning of the first user prompt."""
    model: str | None
    """The model of the newest recorded call."""
    said_at: str
    """The time of the newest block."""
    compactions: int
    """The number of compactions that the view has gone through."""
    in_use: int
    """The tokens of the next prompt, as far as the index knows."""
    utilisation: float
    """The part of `limit` that is in use."""
    limit: int
    limit_source: str
    """The source of the limit."""
    idle: IdleState = IdleState.RESTING
    idle_until: datetime | None = None
    """The end of that state, if time alone ends it."""


def list_sessions(
    models: ReadModels, namespace: str | None, now: datetime, rules: IdleRules, limit: int = 0
) -> Iterator[ListedSession]:
    """Yield the sessions by namespace and key, as of the read models' position.

    `rules` are those of idle work; `limit` is the limit of all sessions, 0 if each has its own.
    """
    for found in models.file.fetch_rows(_SESSIONS_QUERY, {"namespace": namespace}):
        *listed_fields, is_prepared, is_served = found[:_ROW]
        listed, row = ListedSession(*listed_fields), SessionRow(*found[_ROW:])
        listed.closed, listed.lineages = bool(listed.closed), json.loads(cast(str, listed.lineages))
        if limit:
            listed.limit, listed.limit_source = limit, LimitSource.SETTINGS.value
            listed.utilisation = compute_utilization(listed.in_use, limit)
        listed.idle, listed.idle_until = row.find_idle_state(
            now, rules, limit, is_prepared=is_prepared, is_served=is_served
        )
        yield listed


def find_active_sessions(models: ReadModels, since: datetime) -> set[tuple[str, str]]:
    """Return the sessions, by namespace and key, in which something was said since then."""
    query = "SELECT namespace, key FROM sessions WHERE coalesce(said_at, last_activity) >= ?"
    return set(models.file.fetch_rows(query, (format_timestamp(since),)))
