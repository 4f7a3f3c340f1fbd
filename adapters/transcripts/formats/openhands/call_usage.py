"""Reads the tokens, costs and durations of OpenHands' model calls."""

from dataclasses import dataclass
from typing import Any

from .....domain.session_events import Usage


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
    for field in ("service_to_metrics", "usage_to_metrics"):
        services = stats.get(field)
        for metrics in services.values() if isinstance(services, dict) else ():
            if isinstance(metrics, dict):
                found |= _read_metrics(metrics)
    return found


def read_openhands_usage(report: Any) -> Usage | None:
    """Return the tokens of one call; the prompt's tokens include cached ones."""
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
    """Return the tokens of one call in OpenHands' form."""
    read, write = usage.cache_read or 0, usage.cache_write or 0
    return {
        "prompt_tokens": (usage.input or 0) + read + write,
        "completion_tokens": usage.output or 0,
        "cache_read_tokens": read,
        "cache_write_tokens": write,
        "reasoning_tokens": usage.reasoning or 0,
    }


def as_number(value: Any) -> float | None:
    """Return a finite number; None for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if 0 <= number < float("inf") else None


def _read_metrics(metrics: dict[str, Any]) -> dict[str, CallUsage]:
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


def _dict_items(owner: dict[str, Any], field: str) -> list[dict[str, Any]]:
    value = owner.get(field)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _uncached_tokens(prompt: int, read: int, write: int) -> int:
    # Whether the prompt includes tokens written to the cache depends on the version: if it does, at
    # least that many remain besides those read.
    rest = max(0, prompt - read)
    return rest - write if rest >= write else rest


def _read_count(owner: dict[str, Any], field: str) -> int | None:
    value = owner.get(field)
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def _first_count(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)
