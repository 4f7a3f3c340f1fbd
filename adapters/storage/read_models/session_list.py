"""Lists all sessions from the index, with a single query."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ....domain.context_limit import LimitSource
from ....projections.read_models.idle_state import IdleFacts, IdleState
from ....projections.read_models.timestamps import format_timestamp
from .read_models import ReadModels

_SESSIONS_QUERY = """
    SELECT sessions.key, sessions.namespace, sessions.title, sessions.source, sessions.parent_key,
        origin.key, sessions.position, sessions.turns, sessions.blocks, sessions.tokens,
        sessions.open_calls, sessions.closed,
        (SELECT prepared FROM lineages WHERE session_id = sessions.id AND name = 'main'),
        (SELECT json_group_array(name) FROM
            (SELECT name FROM lineages WHERE session_id = sessions.id ORDER BY name)),
        sessions.leased_until, sessions.wake_at, served.prepared, served.boundary,
        sessions.project, sessions.first_prompt, sessions.model, sessions.said_at,
        sessions.last_activity,
        (SELECT count(*) FROM compactions JOIN lineages ON lineages.id = lineage_id
            WHERE compactions.session_id = sessions.id AND lineages.name IN ('main', 'recorded')
            AND activated_at IS NOT NULL AND reverted_at IS NULL),
        sessions.settled, sessions.attempts, sessions.utilisation, sessions.due_at,
        sessions.in_use, sessions.context_limit, sessions.limit_source
    FROM sessions
    LEFT JOIN sessions AS origin ON origin.id = sessions.forked_from_id
    LEFT JOIN lineages AS served ON served.session_id = sessions.id
        AND served.name = coalesce(sessions.served_lineage, 'main')
    WHERE :namespace IS NULL OR sessions.namespace = :namespace
    ORDER BY sessions.namespace, sessions.key
"""


@dataclass(frozen=True, slots=True)
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
    idle: IdleState
    idle_until: datetime | None
    """The end of that state, if time alone ends it."""


def list_sessions(
    models: ReadModels, namespace: str | None, now: datetime
) -> Iterator[ListedSession]:
    """Yield the sessions by namespace and key, as of the read models' position."""
    settings = models.file.current_settings
    for row in models.file.fetch_rows(_SESSIONS_QUERY, {"namespace": namespace}):
        *what, waiting, lineages, leased_until, wake_at, prepared, boundary = row[:-13]
        project, first_prompt, model, said_at, last_activity, compactions = row[-13:-7]
        settled, attempts, utilisation, due_at, in_use, limit, limit_source = row[-7:]
        *plain, parent, forked_from, position, turn, blocks, tokens, open_calls, closed = what
        key, space, title, source = plain
        standing = IdleFacts(
            closed=bool(closed),
            is_sub_agent=parent is not None,
            leased_until=leased_until,
            open_calls=open_calls,
            wake_at=wake_at,
            is_prepared=prepared is not None,
            is_served=boundary is not None,
            settled=bool(settled),
            attempts=attempts,
            utilization=utilisation,
            due_at=due_at,
        )
        state = standing.find_state(
            format_timestamp(now), attempts=settings.attempts, least_share=settings.least_share
        )
        ends = {
            IdleState.RUNNING: leased_until,
            IdleState.ASLEEP: wake_at,
            IdleState.RESTING: due_at,
        }.get(state)
        yield ListedSession(
            session=key,
            namespace=space,
            title=title,
            source=source,
            parent=parent,
            forked_from=forked_from,
            position=position,
            turn=turn,
            blocks=blocks,
            tokens=tokens,
            open_calls=open_calls,
            closed=bool(closed),
            prepared=waiting,
            lineages=json.loads(lineages),
            project=project,
            first_prompt=first_prompt,
            model=model,
            said_at=said_at or last_activity,
            compactions=compactions,
            in_use=in_use,
            utilisation=utilisation,
            limit=settings.context_limit or limit,
            limit_source=LimitSource.SETTINGS.value if settings.context_limit else limit_source,
            idle=state,
            idle_until=datetime.fromisoformat(ends) if ends else None,
        )
