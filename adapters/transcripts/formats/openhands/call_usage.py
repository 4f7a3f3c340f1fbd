"""Tracks the usage of OpenHands' model calls, and the events in its view."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from typing import Any

from .....domain.compaction_events import Trigger
from .....domain.session_events import Usage
from ..entry_steps import EntryLocation
from ..fields import JsonDict
from ..steps import SourceCompaction


@dataclass(frozen=True, slots=True)
class CallUsage:
    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    latency_s: float | None = None


def read_response_usage(state: Any) -> dict[str, CallUsage]:
    """Return the usage of each response by id, from the conversation's state."""
    found: dict[str, CallUsage] = {}
    stats = state.get("stats") if isinstance(state, dict) else None
    if not isinstance(stats, dict):
        return found
    for name in ("service_to_metrics", "usage_to_metrics"):
        services = stats.get(name)
        for metrics in services.values() if isinstance(services, dict) else ():
            if isinstance(metrics, dict):
                found |= _read_metrics(metrics)
    return found


def read_openhands_usage(report: Any) -> Usage | None:
    if not isinstance(report, dict):
        return None
    prompt = _read_count(report, "prompt_tokens")
    details = report.get("prompt_tokens_details")
    cached = _read_count(details, "cached_tokens") if isinstance(details, dict) else None
    read = _first_count(
        _read_count(report, "cache_read_tokens"),
        _read_count(report, "cache_read_input_tokens"),
        _read_count(report, "prompt_cache_hit_tokens"),
        cached,
    )
    write = _first_count(
        _read_count(report, "cache_write_tokens"),
        _read_count(report, "cache_creation_input_tokens"),
    )
    more = report.get("completion_tokens_details")
    thought = _read_count(more, "reasoning_tokens") if isinstance(more, dict) else None
    output = _read_count(report, "completion_tokens")
    if prompt is None and output is None:
        return None
    return Usage(
        input=None if prompt is None else _uncached_tokens(prompt, read or 0, write or 0),
        cache_read=read,
        cache_write=write,
        output=output,
        reasoning=_first_count(_read_count(report, "reasoning_tokens"), thought),
    )


def make_usage_report(usage: Usage) -> dict[str, int]:
    read, write = usage.cache_read or 0, usage.cache_write or 0
    return {
        "prompt_tokens": (usage.input or 0) + read + write,
        "completion_tokens": usage.output or 0,
        "cache_read_tokens": read,
        "cache_write_tokens": write,
        "reasoning_tokens": usage.reasoning or 0,
    }


def as_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if 0 <= number < float("inf") else None


def _read_metrics(metrics: JsonDict) -> dict[str, CallUsage]:
    usages = _dict_items(metrics, "token_usages")
    costs = _dict_items(metrics, "costs")
    latencies = {
        str(one.get("response_id")): as_number(one.get("latency"))
        for one in _dict_items(metrics, "response_latencies")
    }
    found: dict[str, CallUsage] = {}
    for index, report in enumerate(usages):
        response = report.get("response_id")
        if not isinstance(response, str) or not response:
            continue
        model = report.get("model")
        # Costs have no response ids; if each call has one, they are in the same order.
        cost = costs[index].get("cost") if len(costs) == len(usages) else None
        found[response] = CallUsage(
            model=model if isinstance(model, str) else None,
            usage=read_openhands_usage(report),
            cost_usd=as_number(cost),
            latency_s=latencies.get(response),
        )
    return found


def _dict_items(owner: JsonDict, field: str) -> list[JsonDict]:
    value = owner.get(field)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _uncached_tokens(prompt: int, read: int, write: int) -> int:
    # Whether the prompt includes tokens written to the cache depends on the version: if it does, at
    # least that many remain besides those read.
    rest = max(0, prompt - read)
    return rest - write if rest >= write else rest


def _read_count(owner: JsonDict, field: str) -> int | None:
    value = owner.get(field)
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def _first_count(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


_COUNT_FIELDS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(slots=True)
class RunningMetrics:
    """The last totals; a call's usage is their increase."""

    counts: dict[str, int] = field(default_factory=dict)
    cost: float = 0.0

    def take_call(self, metrics: Any, response: JsonDict | None) -> CallUsage | None:
        """Return the usage of the call that made this event; None if no call is known."""
        told = metrics if isinstance(metrics, dict) else {}
        grown, cost = (
            self._usage_growth(told.get("accumulated_token_usage")),
            self._cost_growth(told),
        )
        usage = read_openhands_usage(response.get("usage")) if response else None
        if response is None and grown is None:
            return None
        named = response.get("model") if response else None
        total = told.get("accumulated_token_usage")
        other = total.get("model") if isinstance(total, dict) else None
        model = next((name for name in (named, other) if isinstance(name, str) and name), None)
        return CallUsage(model, usage or grown, cost)

    def _usage_growth(self, total: Any) -> Usage | None:
        if not isinstance(total, dict):
            return None
        counts = {name: total.get(name) for name in _COUNT_FIELDS}
        now = {name: count for name, count in counts.items() if type(count) is int}
        grown = {name: count - self.counts.get(name, 0) for name, count in now.items()}
        self.counts = now
        # The totals restart when the agent restarts.
        report = grown if all(count >= 0 for count in grown.values()) else now
        return read_openhands_usage(report) if any(report.values()) else None

    def _cost_growth(self, told: JsonDict) -> float | None:
        total = as_number(told.get("accumulated_cost"))
        if total is None:
            return None
        paid, self.cost = total - self.cost, total
        return paid if paid >= 0 else total


FORGOTTEN_TEXT = "[What came before left the context without a summary.]"
"""The text in place of forgotten events without a summary."""
_MAX_LISTED = 2_000_000
"""The limit of listed ids of kept events, over all compactions."""


@dataclass(slots=True)
class CondensedView:
    """The events in view, in order: each with its source id."""

    names: dict[Hashable, str] = field(default_factory=dict)
    requested_trigger: Trigger | None = None
    """The reason for a requested condensation that has not come yet."""
    listed_count: int = 0

    def show(self, id: Hashable, name: str) -> None:
        self.names.setdefault(id, name)

    def forget(self, ids: Collection[Hashable]) -> bool:
        """Remove these from the view; return whether any was in it."""
        before = len(self.names)
        for id in ids:
            self.names.pop(id, None)
        return len(self.names) < before

    def condense(
        self, whence: EntryLocation, ids: Collection[Hashable], summary: str | None
    ) -> SourceCompaction | None:
        """Forget these events; return the compaction, or None if nothing left the view."""
        has_events = bool(self.names)
        if not has_events or not (self.forget(ids) or summary):
            return None
        self.listed_count += len(self.names)
        if self.listed_count > _MAX_LISTED:
            text = summary or FORGOTTEN_TEXT
            return self.make_compaction(whence, text, (), "which blocks stayed is not listed")
        kept = tuple(self.names.values())
        return self.make_compaction(whence, summary or FORGOTTEN_TEXT, kept, None)

    def make_compaction(
        self, whence: EntryLocation, summary: str, kept: tuple[str, ...], partial: str | None
    ) -> SourceCompaction:
        """Return a compaction; without a request, it was automatic."""
        trigger, self.requested_trigger = self.requested_trigger or Trigger.THRESHOLD, None
        return SourceCompaction(
            key=f"{whence.key}:compacted",
            trigger=trigger,
            summary=summary,
            kept_ids=kept,
            source_time=whence.time,
            partial_reason=partial,
        )
