"""What OpenHands before its SDK tells of its calls: metrics that add up from event to event."""

from dataclasses import dataclass, field
from typing import Any

from .....domain.session_events import Usage
from .usage import Spent, number_of, usage_of

_COUNTS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(slots=True)
class Metrics:
    """The metrics so far: what a call used is how much they grew."""

    counts: dict[str, int] = field(default_factory=dict)
    cost: float = 0.0

    def spent(self, metrics: Any, response: dict[str, Any] | None) -> Spent | None:
        """What the call used that this event came of; None where nothing tells of a call."""
        told = metrics if isinstance(metrics, dict) else {}
        grown, cost = self._grown(told.get("accumulated_token_usage")), self._paid(told)
        usage = usage_of(response.get("usage")) if response else None
        if response is None and grown is None:
            return None
        named = response.get("model") if response else None
        total = told.get("accumulated_token_usage")
        other = total.get("model") if isinstance(total, dict) else None
        model = next((name for name in (named, other) if isinstance(name, str) and name), None)
        return Spent(model, usage or grown, cost)

    def _grown(self, total: Any) -> Usage | None:
        if not isinstance(total, dict):
            return None
        counts = {name: total.get(name) for name in _COUNTS}
        now = {name: count for name, count in counts.items() if type(count) is int}
        grown = {name: count - self.counts.get(name, 0) for name, count in now.items()}
        self.counts = now
        # They begin anew where the agent was started again.
        report = grown if all(count >= 0 for count in grown.values()) else now
        return usage_of(report) if any(report.values()) else None

    def _paid(self, told: dict[str, Any]) -> float | None:
        total = number_of(told.get("accumulated_cost"))
        if total is None:
            return None
        paid, self.cost = total - self.cost, total
        return paid if paid >= 0 else total
