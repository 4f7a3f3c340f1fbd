"""Spells the lines of a rollout that is written: what is wrapped around items, and events."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from .....domain.session_events import Usage
from .....domain.source_time import parsed
from ..outgoing import Outgoing
from ..reading.fields import Item

_NOWHERE = "/"
"""The working folder, where the session knows none."""


def encoded(value: Any) -> bytes:
    """One line. Whatever was read is written: large integers, and numbers that are none."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def line(kind: str, payload: Item, time: str) -> Item:
    return {"timestamp": time, "type": kind, "payload": payload}


def event(kind: str, time: str, **fields: Any) -> Item:
    return line("event_msg", {"type": kind, **fields}, time)


def time_of(recorded: datetime, told: str | None = None) -> str:
    """When it was said, as its source told it, or else was recorded."""
    moment = (parsed(told) if told else None) or recorded
    try:
        utc = moment.astimezone(UTC)
    except OverflowError:  # a moment at the end of all years, in another zone
        utc = recorded.astimezone(UTC)
    return utc.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def thread_id(key: str) -> str:
    """The key, where it can be a thread's id, or an id that is made of it."""
    try:
        return str(UUID(key)) if str(UUID(key)) == key else _made_of(key)
    except ValueError:
        return _made_of(key)


def _made_of(key: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"cutbank:session:{key}"))


def session_meta(outgoing: Outgoing) -> Item:
    """A rollout's first line."""
    time = time_of(outgoing.opened)
    meta: Item = {
        "id": thread_id(outgoing.key),
        "timestamp": time,
        "cwd": _NOWHERE,
        "originator": "cutbank",
        "cli_version": "0.0.0",
        "source": "cli",
        "model_provider": "openai",
    }
    if outgoing.parent:
        parent = thread_id(outgoing.parent.key)
        spawn = {"parent_thread_id": parent, "depth": 1}
        meta["source"] = {"subagent": {"thread_spawn": spawn}}
    if outgoing.system_prompt:
        meta["base_instructions"] = {"text": outgoing.system_prompt}
    return line("session_meta", meta, time)


def turn_context(model: str, time: str) -> Item:
    """Which model answers from here on. It grants nothing: Codex asks before it does a thing."""
    payload = {
        "cwd": _NOWHERE,
        "approval_policy": "on-request",
        "sandbox_policy": {"type": "read-only"},
        "model": model,
        "summary": "auto",
    }
    return line("turn_context", payload, time)


class Totals:
    """The usage of a thread so far, as its token counts tell it."""

    def __init__(self) -> None:
        self._total: dict[str, int] = dict.fromkeys(
            (
                *("input_tokens", "cached_input_tokens", "output_tokens"),
                *("reasoning_output_tokens", "total_tokens"),
            ),
            0,
        )

    def count(self, usage: Usage, time: str, window: int | None) -> Item:
        """The event after a model's call."""
        last = _spelt(usage)
        for field, count in last.items():
            self._total[field] = self._total.get(field, 0) + count
        return self._event(last, time, window)

    def left(self, tokens: int, time: str) -> Item:
        """The event after a compaction: how much it left."""
        return self._event({**dict.fromkeys(self._total, 0), "total_tokens": tokens}, time)

    def _event(self, last: dict[str, int], time: str, window: int | None = None) -> Item:
        info = {
            "total_token_usage": dict(self._total),
            "last_token_usage": last,
            "model_context_window": window,
        }
        return event("token_count", time, info=info, rate_limits=None)


def _spelt(usage: Usage) -> dict[str, int]:
    prompt, output = usage.context or 0, usage.output or 0
    spelt = {
        "input_tokens": prompt,
        "cached_input_tokens": usage.cache_read or 0,
        "output_tokens": output,
        "reasoning_output_tokens": usage.reasoning or 0,
        "total_tokens": prompt + output,
    }
    return spelt | ({"cache_write_input_tokens": usage.cache_write} if usage.cache_write else {})
