"""Reads pi entries that are not messages, and the signatures of thoughts."""

import json
from typing import Any

from .....domain.blocks import Native
from .....domain.event import MAX_COUNT
from .....domain.session_events import Usage
from ..fields import JsonDict, MalformedError, get_field, json_name, require_field
from ..json_lines import SourceLine

RAW_ENTRY_TYPES = {
    *("active_tools_change", "archive", "credential_pin", "label", "leaf", "mode_change"),
    *("model_change", "model_usage", "reset_boundary", "service_tier_change", "session_init"),
    *("thinking_level_change", "ttsr_injection"),
}
"""Types that no model was sent, and that the agent needs to resume."""

PI_TITLE_FIELDS = {"session_info": "name", "title_change": "title"}
"""Types that title the session, and the title's field."""


def is_valid_id(id: Any) -> bool:
    return isinstance(id, str) and id != "" and "\0" not in id


def read_model_change(entry: JsonDict) -> str | None:
    """Return the model of a `model_change`; None for the model of a side task."""
    if "modelId" in entry:
        return require_field(entry, "modelId", str)
    if get_field(entry, "role", str) not in (None, "default"):
        return None
    provider, slash, model = require_field(entry, "model", str).partition("/")
    return model if slash else provider


def read_call_fields(message: JsonDict, source_id: str, time: str | None) -> JsonDict:
    """Return the fields of the call that a message answered."""
    usage = get_field(message, "usage", dict, "message.") or {}
    cost = get_field(usage, "cost", dict, "message.usage.") or {}
    lasted = _read_number(message, "duration")
    return {
        "call_id": get_field(message, "responseId", str, "message.") or source_id,
        "model": get_field(message, "model", str, "message."),
        "usage": _read_usage(usage) if usage else None,
        "cost_usd": _read_number(cost, "total"),
        "latency_s": None if lasted is None else lasted / 1_000,
        "stop_reason": get_field(message, "stopReason", str, "message."),
        "source_time": time,
    }


def read_system_prompt(entry: JsonDict) -> str:
    """Return the system prompt of a `session_init`: a text, or a list of texts."""
    prompt = entry.get("systemPrompt")
    if isinstance(prompt, str):
        return prompt
    pieces = require_field(entry, "systemPrompt", list)
    if not all(isinstance(piece, str) for piece in pieces):
        raise MalformedError("systemPrompt: expected a list of text")
    return "\n\n".join(pieces)


def digest_message(message: JsonDict) -> int:
    """Return the same number for messages with equal content, wherever they are."""
    content = message.get("content")
    said = [message.get(name) for name in ("role", "summary", "command", "output", "toolCallId")]
    for item in content if isinstance(content, list) else [content]:
        said += item.values() if isinstance(item, dict) else [item]
    return hash(tuple(words for words in said if isinstance(words, str)))


def _read_usage(usage: JsonDict) -> Usage:
    counts = {
        ours: get_field(usage, theirs, int, "message.usage.")
        for ours, theirs in (
            ("input", "input"),
            ("cache_read", "cacheRead"),
            ("cache_write", "cacheWrite"),
            ("output", "output"),
        )
    }
    named = "reasoning" if usage.get("reasoning") is not None else "reasoningTokens"
    reasoning = get_field(usage, named, int, "message.usage.")
    return Usage(**counts, reasoning=reasoning)


def _read_number(owner: JsonDict, field: str) -> float | None:
    value = owner.get(field)
    if value is None or type(value) in (int, float):
        return value if value is not None and 0 <= value <= MAX_COUNT else None
    raise MalformedError(f"{field}: expected a number, got {json_name(value)}")


ANTHROPIC_PROVIDER = "anthropic"
RESPONSES_PROVIDER = "openai-responses"

_RESPONSES_APIS = ("openai-responses", "openai-codex-responses", "azure-openai-responses")


def read_native(item: JsonDict, api: Any, line: SourceLine) -> tuple[Native | None, str]:
    """Return the native item in a thought's signature, if any, and the thought."""
    thought = require_field(item, "thinking", str)
    signature = get_field(item, "thinkingSignature", str)
    if item.get("redacted") is True:
        thought = ""
    if not signature:
        return None, thought
    if api == "anthropic-messages":
        said = {"type": "thinking", "thinking": thought, "signature": signature}
        if item.get("redacted") is True:
            said = {"type": "redacted_thinking", "data": signature}
        return Native(provider=ANTHROPIC_PROVIDER, item=line.to_json(said)), thought
    if isinstance(api, str) and api in _RESPONSES_APIS and _is_reasoning(signature):
        return Native(provider=RESPONSES_PROVIDER, item=signature), thought
    return None, thought


def make_signature_fields(native: Native) -> JsonDict:
    """Return the signature of a native item as fields; empty for one that pi does not keep."""
    if native.provider == RESPONSES_PROVIDER and _is_reasoning(native.item):
        return {"thinkingSignature": native.item}
    match json.loads(native.item) if native.provider == ANTHROPIC_PROVIDER else None:
        case {"type": "thinking", "signature": str(signature)} if signature:
            return {"thinkingSignature": signature}
        case {"type": "redacted_thinking", "data": str(data)} if data:
            return {"thinkingSignature": data, "redacted": True}
        case _:
            return {}


def _is_reasoning(signature: str) -> bool:
    if not signature.startswith("{"):
        return False
    try:
        item = json.loads(signature)
    except (ValueError, RecursionError):
        return False
    return isinstance(item, dict) and item.get("type") == "reasoning"
