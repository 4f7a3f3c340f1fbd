"""Builds the lines of a rollout: wrappers of items, and events."""

from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .....domain.session_events import Usage
from .....domain.source_time import parse_source_time
from ..fields import JsonDict, is_uuid
from ..outgoing import OutgoingSession, to_iso

_NO_FOLDER = "/"


def make_rollout_line(kind: str, payload: JsonDict, time: str) -> JsonDict:
    return {"timestamp": time, "type": kind, "payload": payload}


def make_event(kind: str, time: str, **fields: Any) -> JsonDict:
    return make_rollout_line("event_msg", {"type": kind, **fields}, time)


def format_block_time(recorded: datetime, source_time: str | None = None) -> str:
    return to_iso((parse_source_time(source_time) if source_time else None) or recorded)


def make_thread_id(key: str) -> str:
    """Return the key if it is a valid thread id; else an id derived from it."""
    return key if is_uuid(key) else str(uuid5(NAMESPACE_URL, f"cutbank:session:{key}"))


def make_session_meta(outgoing: OutgoingSession) -> JsonDict:
    time = format_block_time(outgoing.opened_at)
    meta: JsonDict = {
        "id": make_thread_id(outgoing.key),
        "timestamp": time,
        "cwd": _NO_FOLDER,
        "originator": "cutbank",
        "cli_version": "0.0.0",
        "source": "cli",
        "model_provider": "openai",
    }
    if outgoing.parent:
        parent = make_thread_id(outgoing.parent.key)
        spawn = {"parent_thread_id": parent, "depth": 1}
        meta["source"] = {"subagent": {"thread_spawn": spawn}}
    if outgoing.system_prompt:
        meta["base_instructions"] = {"text": outgoing.system_prompt}
    return make_rollout_line("session_meta", meta, time)


def make_turn_context(model: str, time: str) -> JsonDict:
    """Return the entry that names the model from here on. It grants no permissions."""
    payload = {
        "cwd": _NO_FOLDER,
        "approval_policy": "on-request",
        "sandbox_policy": {"type": "read-only"},
        "model": model,
        "summary": "auto",
    }
    return make_rollout_line("turn_context", payload, time)


class TokenTotals:
    """The usage of a thread so far, as its token counts have it."""

    def __init__(self) -> None:
        self._total = _usage_fields(Usage())

    def add_call(self, usage: Usage, time: str, window: int | None) -> JsonDict:
        """Return the event after a model's call."""
        last = _usage_fields(usage)
        for field, count in last.items():
            self._total[field] = self._total.get(field, 0) + count
        return self._make_event(last, time, window)

    def report_remaining(self, tokens: int, time: str) -> JsonDict:
        """Return the event after a compaction, with the remaining tokens."""
        return self._make_event({**dict.fromkeys(self._total, 0), "total_tokens": tokens}, time)

    def _make_event(self, last: dict[str, int], time: str, window: int | None = None) -> JsonDict:
        info = {
            "total_token_usage": dict(self._total),
            "last_token_usage": last,
            "model_context_window": window,
        }
        return make_event("token_count", time, info=info, rate_limits=None)


def _usage_fields(usage: Usage) -> dict[str, int]:
    prompt, output = usage.context or 0, usage.output or 0
    fields = {
        "input_tokens": prompt,
        "cached_input_tokens": usage.cache_read or 0,
        "output_tokens": output,
        "reasoning_output_tokens": usage.reasoning or 0,
        "total_tokens": prompt + output,
    }
    return fields | ({"cache_write_input_tokens": usage.cache_write} if usage.cache_write else {})
