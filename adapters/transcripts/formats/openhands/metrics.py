"""Computes the usage of each call from the running totals of older OpenHands versions."""

from dataclasses import dataclass, field
from typing import Any

from .....domain.session_events import Usage
from .call_usage import CallUsage, as_number, read_openhands_usage

_COUNT_FIELDS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(slots=True)
class RunningMetrics:
    """The last totals; a call's usage is their increase."""

    counts: dict[str, int] = field(default_factory=dict)
    cost: float = 0.0

    def take_call(self, metrics: Any, response: dict[str, Any] | None) -> CallUsage | None:
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

    def _cost_growth(self, told: dict[str, Any]) -> float | None:
        total = as_number(told.get("accumulated_cost"))
        if total is None:
            return None
        paid, self.cost = total - self.cost, total
        return paid if paid >= 0 else total
