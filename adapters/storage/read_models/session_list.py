"""Lists all sessions from the index, with a single query."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from typing import cast

from ....domain.context_limit import LimitSource
from ....projections.read_models.idle_state import IdleFacts, IdleState
from ....projections.read_models.timestamps import format_timestamp
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
        sessions.closed, sessions.parent_key IS NOT NULL, sessions.leased_until,
        sessions.open_calls, sessions.wake_at, served.prepared IS NOT NULL,
        served.boundary IS NOT NULL, sessions.settled, sessions.attempts, sessions.utilisation,
        sessions.due_at
    FROM sessions
    LEFT JOIN sessions AS origin ON origin.id = sessions.forked_from_id
    LEFT JOIN lineages AS served ON served.session_id = sessions.id
        AND served.name = coalesce(sessions.served_lineage, 'main')
    WHERE :namespace IS NULL OR sessions.namespace = :namespace
    ORDER BY sessions.namespace, sessions.key
"""
"""First the fields of ListedSession but for its idle state, then those of IdleFacts."""
_FACTS = len(fields(IdleFacts))


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
    models: ReadModels, namespace: str | None, now: datetime
) -> Iterator[ListedSession]:
    """Yield the sessions by namespace and key, as of the read models' position."""
    settings = models.file.read_settings()
    for row in models.file.fetch_rows(_SESSIONS_QUERY, {"namespace": namespace}):
        listed, facts = ListedSession(*row[:-_FACTS]), IdleFacts(*row[-_FACTS:])
        listed.closed, listed.lineages = bool(listed.closed), json.loads(cast(str, listed.lineages))
        if settings.context_limit:
            listed.limit, listed.limit_source = settings.context_limit, LimitSource.SETTINGS.value
        listed.idle = facts.find_state(
            format_timestamp(now), attempts=settings.attempts, least_share=settings.least_share
        )
        ends = {
            IdleState.RUNNING: facts.leased_until,
            IdleState.ASLEEP: facts.wake_at,
            IdleState.RESTING: facts.due_at,
        }.get(listed.idle)
        listed.idle_until = datetime.fromisoformat(ends) if ends else None
        yield listed
