"""Sums the costs of recorded model calls by day, project, model or session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple, Self

from ....domain.errors import InvalidSettingError
from ....domain.models import CallCost, ModelOverride
from ....domain.session_events import Usage
from ....projections.read_models.timestamps import format_timestamp
from ...models.model_catalog import PriceLookup
from .read_models import ReadModels

COST_GROUPS: dict[str, Callable[["_Call"], dict[str, Any]]] = {
    "day": lambda call: {"day": to_local_day(call.called_at)},
    "project": lambda call: {"project": call.project},
    "model": lambda call: {"model": call.model},
    "session": lambda call: {"session": call.session, "namespace": call.namespace},
}
"""The fields of CallCosts that name the group of a call."""

_CALLS_QUERY = """
    SELECT sessions.namespace, sessions.key, sessions.project, model_calls.model,
        model_calls.called_at, model_calls.cost_usd, model_calls.input_tokens,
        model_calls.cached_tokens, model_calls.cache_write_tokens,
        model_calls.cache_write_1h_tokens, model_calls.output_tokens,
        model_calls.input_usd, model_calls.cached_usd, model_calls.cache_write_usd,
        model_calls.output_usd
    FROM model_calls JOIN sessions ON sessions.id = model_calls.session_id
    WHERE NOT model_calls.repeated AND model_calls.copy_of IS NULL
        AND (:namespace IS NULL OR sessions.namespace = :namespace)
        AND (:since IS NULL OR model_calls.called_at >= :since)
    ORDER BY model_calls.id
"""
_COUNTS = ("input", "cache_read", "cache_write", "cache_write_1h", "output")


class _Call(NamedTuple):
    namespace: str
    session: str
    project: str | None
    model: str | None
    called_at: str
    reported_usd: float | None
    usage: Usage
    listed: CallCost | None
    """Its costs at list prices."""

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> Self:
        counts = dict(zip(_COUNTS, row[6:11], strict=True))
        listed = None if row[11] is None else CallCost(*row[11:])
        return cls._make((*row[:6], Usage(**counts), listed))

    @property
    def is_complete(self) -> bool:
        return self.usage.context is not None and self.usage.output is not None

    @property
    def tokens(self) -> int:
        return (self.usage.context or 0) + (self.usage.output or 0)


@dataclass(slots=True)
class CallCosts:
    """The tokens and costs of some calls."""

    day: str | None = None
    """In this machine's time zone; of these four, only the grouping field is set."""
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

    def add_call(self, call: _Call, parts: CallCost | None) -> None:
        """Add a call; `parts` are its costs in dollars, if its price is known."""
        self.calls += 1
        self.input_tokens += call.usage.input or 0
        self.cache_write_tokens += call.usage.cache_write or 0
        self.cache_write_1h_tokens += call.usage.cache_write_1h or 0
        self.cache_read_tokens += call.usage.cache_read or 0
        self.output_tokens += call.usage.output or 0
        if call.reported_usd:
            self.reported_usd += call.reported_usd
            self.cost_usd += call.reported_usd
        elif parts is not None:
            self.input_usd += parts.input
            self.cache_write_usd += parts.cache_write
            self.cache_read_usd += parts.cache_read
            self.output_usd += parts.output
            self.cost_usd += sum(parts)
        elif call.is_complete:
            # A call without tokens is free at any price.
            self.unpriced_calls += call.tokens > 0
            self.unpriced_tokens += call.tokens
        else:
            self.unreported_calls += 1


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
    """Sum the calls in the index; copies of a call count once.

    `overrides` take precedence over list prices. Raises InvalidSettingError if `by` is not a known
    group.
    """
    if by not in COST_GROUPS:
        raise InvalidSettingError(f"costs cannot be summed by {by!r}: use {', '.join(COST_GROUPS)}")
    start = format_timestamp(since) if since else None
    prices = PriceLookup(overrides)
    groups: dict[tuple[str | None, ...], CallCosts] = {}
    unpriced: dict[str, CallCosts] = {}
    total = CallCosts()
    for row in models.file.fetch_rows(_CALLS_QUERY, {"namespace": namespace, "since": start}):
        call = _Call.from_row(row)
        # Without the user's own prices, those in the index are the same.
        parts = call.listed
        if overrides:
            called_at = datetime.fromisoformat(call.called_at)
            parts = prices.price_call(call.model, call.usage, called_at)
        group = COST_GROUPS[by](call)
        counted = [groups.setdefault(tuple(group.values()), CallCosts(**group)), total]
        if not call.reported_usd and parts is None and call.is_complete and call.tokens:
            name = call.model or "unknown"
            counted.append(unpriced.setdefault(name, CallCosts(model=name)))
        for cost in counted:
            cost.add_call(call, parts)
    rows = list(groups.values())
    rows.sort(key=attrgetter("day") if by == "day" else lambda cost: -cost.cost_usd)
    by_tokens = sorted(unpriced.values(), key=lambda cost: -cost.unpriced_tokens)
    return CostReport(by, start, rows, total, by_tokens)


def to_local_day(written: str) -> str:
    """Return the day of a time in this machine's time zone."""
    return datetime.fromisoformat(written).astimezone().date().isoformat()
