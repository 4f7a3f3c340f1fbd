"""Lists all sessions from the index, and sums what recorded calls of models cost."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from ....domain.context_limit import LimitSource
from ....domain.errors import InvalidSettingError
from ....domain.idle_rules import IdleRules
from ....domain.models import ModelOverride
from ....domain.session_events import Usage
from ....projections.session_row import (
    SESSION_COLUMNS,
    IdleState,
    SessionRow,
    compute_utilization,
)
from ....projections.timestamps import format_timestamp
from ...models.model_catalog import PriceLookup
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
COST_GROUPS = {
    "day": ("day",),
    "project": ("project",),
    "model": ("model",),
    "session": ("session", "namespace"),
}
"""The fields of CallCosts that name the group of a call."""
_NAMES = ("day", "project", "model", "session", "namespace")
_LISTED_PRICES = ("input_usd", "cached_usd", "cache_write_usd", "output_usd")
_COUNTS = ("input", "cache_read", "cache_write", "cache_write_1h", "output")
_OWN_PRICE = (
    "own_price({part}, model_calls.model, called_at, input_tokens, cached_tokens,"
    " cache_write_tokens, cache_write_1h_tokens, output_tokens)"
)
_CALLS_QUERY = """
    WITH priced AS (
        SELECT model_calls.id, sessions.namespace, sessions.key AS session, sessions.project,
            model_calls.model, called_at, input_tokens, cache_write_tokens, cache_write_1h_tokens,
            cached_tokens, output_tokens, nullif(cost_usd, 0) AS reported,
            prompt_tokens + output_tokens AS call_tokens,
            {prices[0]} AS price, {prices[1]} AS cached_price,
            {prices[2]} AS written_price, {prices[3]} AS output_price
        FROM model_calls JOIN sessions ON sessions.id = model_calls.session_id
        WHERE NOT model_calls.repeated AND model_calls.copy_of IS NULL
        -- What a summary cost, whether it was used or not.
        UNION ALL SELECT compactions.id, sessions.namespace, sessions.key, sessions.project,
            compactions.model, recorded_at,
            input_tokens - coalesce(cached_tokens, 0) - coalesce(cache_write_tokens, 0),
            cache_write_tokens, cache_write_1h_tokens, cached_tokens, output_tokens, cost_usd,
            input_tokens + output_tokens, NULL, NULL, NULL, NULL
        FROM compactions JOIN sessions ON sessions.id = compactions.session_id
        WHERE cost_usd > 0
    ), calls AS (
        SELECT *, date(called_at, 'localtime') AS day,
            reported IS NULL AND price IS NOT NULL AS is_priced,
            -- A call without tokens is free at any price.
            reported IS NULL AND price IS NULL AND call_tokens > 0 AS is_unpriced
        FROM priced
        WHERE (:namespace IS NULL OR namespace = :namespace)
            AND (:since IS NULL OR called_at >= :since)
    )
    SELECT {names}, count(*), coalesce(sum(input_tokens), 0),
        coalesce(sum(cache_write_tokens), 0), coalesce(sum(cache_write_1h_tokens), 0),
        coalesce(sum(cached_tokens), 0), coalesce(sum(output_tokens), 0),
        total(price) FILTER (WHERE is_priced), total(written_price) FILTER (WHERE is_priced),
        total(cached_price) FILTER (WHERE is_priced), total(output_price) FILTER (WHERE is_priced),
        total(reported),
        total(coalesce(reported, price + cached_price + written_price + output_price)) AS cost,
        count(*) FILTER (WHERE is_unpriced),
        coalesce(sum(call_tokens) FILTER (WHERE is_unpriced), 0) AS unpriced,
        count(*) FILTER (WHERE reported IS NULL AND price IS NULL AND call_tokens IS NULL)
    FROM calls {ending}
"""
"""The fields of CallCosts."""


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


@dataclass(slots=True)
class CallCosts:
    """The tokens and costs of some calls."""

    day: str | None = None
    """In this machine's time zone; of these five, only the grouping fields are set."""
    project: str | None = None
    model: str | None = None
    session: str | None = None
    namespace: str | None = None
    calls: int = 0
    input_tokens: int = 0
    """Prompt tokens that were neither read from a cache nor written to one."""
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    """The part of them that is cached for an hour."""
    cache_read_tokens: int = 0
    output_tokens: int = 0
    input_usd: float = 0.0
    cache_write_usd: float = 0.0
    cache_read_usd: float = 0.0
    output_usd: float = 0.0
    reported_usd: float = 0.0
    """Costs that the log reports; the four above are for all other calls."""
    cost_usd: float = 0.0
    """The sum of these five, without the calls that the next three count."""
    unpriced_calls: int = 0
    """Calls of models without known prices."""
    unpriced_tokens: int = 0
    unreported_calls: int = 0
    """Calls for which the log has neither the cost nor all token counts."""


@dataclass(frozen=True, slots=True)
class CostReport:
    by: str
    """`day`, `project`, `model` or `session`."""
    since: str | None
    """The time, in UTC, from which calls are counted."""
    rows: list[CallCosts]
    """Days in order; other groups by falling costs."""
    total: CallCosts
    unpriced: list[CallCosts] = field(default_factory=list)


def sum_costs(
    models: ReadModels,
    overrides: Mapping[str, ModelOverride],
    *,
    by: str = "day",
    since: datetime | None = None,
    namespace: str | None = None,
) -> CostReport:
    """Sum the calls in the index, with those that wrote summaries; copies of a call count once.

    `overrides` take precedence over list prices. Raises InvalidSettingError if `by` is not a known
    group.
    """
    if by not in COST_GROUPS:
        raise InvalidSettingError(f"costs cannot be summed by {by!r}: use {', '.join(COST_GROUPS)}")
    start = format_timestamp(since) if since else None
    # Without the user's own prices, those in the index are the same.
    prices: tuple[str, ...] = _LISTED_PRICES
    if overrides:
        prices = tuple(_OWN_PRICE.format(part=part) for part in range(4))
        _register_own_price(models, PriceLookup(overrides))

    def select(groups: Mapping[str, str], ending: str) -> list[CallCosts]:
        names = ", ".join(groups.get(name, "NULL") for name in _NAMES)
        query = _CALLS_QUERY.format(prices=prices, names=names, ending=ending)
        found = models.file.fetch_rows(query, {"namespace": namespace, "since": start})
        return [CallCosts(*row) for row in found]

    groups = {name: name for name in COST_GROUPS[by]}
    order = "day" if by == "day" else "cost DESC, min(id)"
    rows = select(groups, f"GROUP BY {', '.join(groups)} ORDER BY {order}")
    (total,) = select({}, "")
    unpriced = select(
        {"model": "coalesce(model, 'unknown')"},
        "WHERE is_unpriced GROUP BY coalesce(model, 'unknown') ORDER BY unpriced DESC, min(id)",
    )
    return CostReport(by, start, rows, total, unpriced)


def _register_own_price(models: ReadModels, prices: PriceLookup) -> None:
    def own_price(part: int, model: str | None, called_at: str, *counts: Any) -> float | None:
        usage = Usage(**dict(zip(_COUNTS, counts, strict=True)))
        found = prices.price_call(model, usage, datetime.fromisoformat(called_at))
        return found[part] if found else None

    models.file.db.conn.create_function("own_price", 8, own_price, deterministic=True)
