"""Tracks which events an OpenHands conversation has in view, and reads its calls' usage."""

from collections.abc import Collection
from typing import Any

from .....domain.compaction_events import Trigger
from .....domain.session_events import Usage
from ..entry_steps import EntrySteps
from ..fields import JsonDict, as_number
from ..steps import SourceCompaction

_FORGOTTEN_TEXT = "[What came before left the context without a summary.]"
"""The text in place of forgotten events without a summary."""


class EventReader:
    """The state of a conversation at an event; each version reads its own fields."""

    def __init__(self) -> None:
        self.shown: dict[str, None] = {}
        """The source ids of the events in view, in order."""
        self.requested_trigger: Trigger | None = None
        """The reason for a requested condensation that has not come yet."""

    def request_condensation(self, event: JsonDict) -> None:
        by_person = event.get("reason") == "manual" or event.get("source") == "user"
        self.requested_trigger = Trigger.MANUAL if by_person else Trigger.OVERFLOW

    def append(self, entry: EntrySteps, message_id: str | None = None) -> None:
        """Append the blocks of an event, which comes into view; skip it if it has none."""
        if entry.append(message_id):
            self.shown[entry.id or entry.key] = None

    def condense(
        self,
        entry: EntrySteps,
        kind: str,
        forgotten: Collection[str],
        summary: str | None,
        call: JsonDict | None = None,
    ) -> None:
        """Record the compaction that forgets these events; a summary with nothing before it is a
        block. `call` has the fields of the call that wrote the summary.
        """
        before = len(self.shown)
        for id in forgotten:
            self.shown.pop(id, None)
        if before and (summary or len(self.shown) < before):
            # Without a request, it was automatic.
            trigger, self.requested_trigger = self.requested_trigger or Trigger.THRESHOLD, None
            entry.mark_compaction(kind)
            entry.add(
                SourceCompaction(
                    key=f"{entry.key}:compacted",
                    trigger=trigger,
                    summary=summary or _FORGOTTEN_TEXT,
                    kept_ids=tuple(self.shown),
                    source_time=entry.time,
                    summary_call=call,
                )
            )
        else:
            entry.add_summary(summary or "")
            entry.append()


_CACHE_READ_FIELDS = ("cache_read_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens")
_CACHE_WRITE_FIELDS = ("cache_write_tokens", "cache_creation_input_tokens")
_TOTAL_FIELDS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")


def read_response_usage(state: JsonDict, service: str | None = None) -> dict[str, JsonDict]:
    """Return the call fields of each response by id, from the conversation's state.

    Responses are in order within a service; with `service`, only those of this one are returned.
    """
    found: dict[str, JsonDict] = {}
    stats = state.get("stats")
    for name in ("service_to_metrics", "usage_to_metrics"):
        services = stats.get(name) if isinstance(stats, dict) else None
        for used_by, metrics in services.items() if isinstance(services, dict) else ():
            if isinstance(metrics, dict) and service in {None, used_by}:
                found |= _read_metrics(metrics)
    return found


def read_openhands_usage(report: Any) -> Usage | None:
    prompt, output = _find_count(report, "prompt_tokens"), _find_count(report, "completion_tokens")
    if prompt is None and output is None:
        return None
    read = _find_count(report, *_CACHE_READ_FIELDS)
    if read is None:
        read = _find_count(report.get("prompt_tokens_details"), "cached_tokens")
    thought = _find_count(report, "reasoning_tokens")
    if thought is None:
        thought = _find_count(report.get("completion_tokens_details"), "reasoning_tokens")
    write = _find_count(report, *_CACHE_WRITE_FIELDS)
    return Usage(
        input=None if prompt is None else _uncached_tokens(prompt, read or 0, write or 0),
        cache_read=read,
        cache_write=write,
        output=output,
        reasoning=thought,
    )


def _read_metrics(metrics: JsonDict) -> dict[str, JsonDict]:
    usages, costs = _dict_items(metrics, "token_usages"), _dict_items(metrics, "costs")
    latencies = {
        str(one.get("response_id")): as_number(one.get("latency"))
        for one in _dict_items(metrics, "response_latencies")
    }
    found: dict[str, JsonDict] = {}
    for index, report in enumerate(usages):
        response, model = report.get("response_id"), report.get("model")
        # Costs have no response ids; if each call has one, they are in the same order.
        cost = costs[index].get("cost") if len(costs) == len(usages) else None
        if isinstance(response, str) and response:
            found[response] = {
                "model": model if isinstance(model, str) else None,
                "usage": read_openhands_usage(report),
                "cost_usd": as_number(cost),
                "latency_s": latencies.get(response),
            }
    return found


def _dict_items(owner: JsonDict, field: str) -> list[JsonDict]:
    value = owner.get(field)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _uncached_tokens(prompt: int, read: int, write: int) -> int:
    # Whether the prompt includes tokens written to the cache depends on the version: if it does, at
    # least that many remain besides those read.
    rest = max(0, prompt - read)
    return rest - write if rest >= write else rest


def _find_count(owner: Any, *names: str) -> int | None:
    """Return the first of these fields that is a count."""
    for name in names if isinstance(owner, dict) else ():
        count = owner.get(name)
        if type(count) is int and 0 <= count < 1 << 63:
            return count
    return None


class RunningMetrics:
    """The last totals; a call's usage is their increase."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.cost = 0.0

    def read_call(self, metrics: Any, response: JsonDict | None) -> JsonDict | None:
        """Return the fields of the call that made this event; None if no call is known."""
        totals = metrics if isinstance(metrics, dict) else {}
        tokens = totals.get("accumulated_token_usage")
        grown, cost = self._usage_growth(tokens), self._cost_growth(totals)
        if response is None and grown is None:
            return None
        owners = [owner for owner in (response, tokens) if isinstance(owner, dict)]
        models = [owner.get("model") for owner in owners]
        return {
            "model": next((name for name in models if isinstance(name, str) and name), None),
            "usage": read_openhands_usage(response and response.get("usage")) or grown,
            "cost_usd": cost,
        }

    def _usage_growth(self, total: Any) -> Usage | None:
        if not isinstance(total, dict):
            return None
        now = {name: total[name] for name in _TOTAL_FIELDS if type(total.get(name)) is int}
        grown = {name: count - self.counts.get(name, 0) for name, count in now.items()}
        self.counts = now
        # The totals restart when the agent restarts.
        report = grown if all(count >= 0 for count in grown.values()) else now
        return read_openhands_usage(report) if any(report.values()) else None

    def _cost_growth(self, totals: JsonDict) -> float | None:
        total = as_number(totals.get("accumulated_cost"))
        if total is None:
            return None
        paid, self.cost = total - self.cost, total
        return paid if paid >= 0 else total
