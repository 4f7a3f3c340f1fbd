"""Converts between the signatures that pi keeps of thoughts and the provider's native items."""

import json
from typing import Any

from .....domain.blocks import Native
from ..json_lines import SourceLine
from ..reading.fields import JsonDict, get_field, require_field

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


def make_signature(native: Native) -> str | None:
    """Return the signature of a native item; None for one that pi does not keep."""
    if native.provider == RESPONSES_PROVIDER and _is_reasoning(native.item):
        return native.item
    if native.provider != ANTHROPIC_PROVIDER:
        return None
    match json.loads(native.item):
        case {"type": "thinking", "signature": str(signature)}:
            return signature
        case {"type": "redacted_thinking", "data": str(data)}:
            return data
        case _:
            return None


def is_redacted(native: Native) -> bool:
    """Return whether the provider hides the thought."""
    match json.loads(native.item) if native.provider == ANTHROPIC_PROVIDER else None:
        case {"type": "redacted_thinking"}:
            return True
        case _:
            return False


def _is_reasoning(signature: str) -> bool:
    if not signature.startswith("{"):
        return False
    try:
        item = json.loads(signature)
    except (ValueError, RecursionError):
        return False
    return isinstance(item, dict) and item.get("type") == "reasoning"
