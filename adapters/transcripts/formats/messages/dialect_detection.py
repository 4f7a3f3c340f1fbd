"""Detects the dialect of an array of messages by its content."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from types import NoneType
from typing import Any

from ..fields import JsonDict
from ..mini_swe_agent import has_bash_messages
from ..source import TranscriptSource

CHAT_MESSAGES = "openai-chat"
RESPONSES_ITEMS = "openai-responses"
ANTHROPIC_MESSAGES = "anthropic"
TAU_MESSAGES = "openai-messages-tau"

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_MESSAGE_FIELDS = ("content", "tool_calls", "function_call", "refusal", "audio")
_ITEM_TYPES = frozenset({"reasoning", "item_reference", "compaction", "mcp_list_tools"})
"""Types of items, beside those that end in `_call` or `_call_output`."""
_PART_DIALECTS = {
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), RESPONSES_ITEMS),
    **dict.fromkeys(
        ("tool_use", "tool_result", "thinking", "redacted_thinking"), ANTHROPIC_MESSAGES
    ),
    **dict.fromkeys(("image", "document", "server_tool_use", "compaction"), ANTHROPIC_MESSAGES),
    **dict.fromkeys(("image_url", "input_audio", "file"), CHAT_MESSAGES),
}
_OTHER_FORMAT_FIELDS = frozenset(
    ("info", "trajectory_format", "trajectory", "history", "sessionId", "schema_version", "type")
)
"""Fields of agents' own files that hold messages as well."""
_MAX_MESSAGES_EXAMINED = 1_000


def detect_dialect(source: TranscriptSource) -> str | None:
    """Return the dialect of the file's messages; None if it has none."""
    if is_body_per_line(source):
        names = [detect_value_dialect(value) for value in source.first_values]
        if None in names:
            return None
        return next((name for name in names if name != CHAT_MESSAGES), CHAT_MESSAGES)
    match source.first_values:
        case [value] if not isinstance(value, list) and detect_value_dialect(value) is None:
            return None
    document = source.document
    return detect_value_dialect(document.value) if document and not document.problem else None


def is_body_per_line(source: TranscriptSource) -> bool:
    return len(source.first_values) > 1 and all(
        isinstance(value, dict) for value in source.first_values
    )


def detect_value_dialect(value: Any) -> str | None:
    """Return the dialect of a value: an array of messages, or a request or response body."""
    if isinstance(value, list):
        is_messages = value and _is_message(value[0]) and not has_bash_messages(value)
        return _choose_dialect(value, {}) if is_messages else None
    if not isinstance(value, dict) or not _OTHER_FORMAT_FIELDS.isdisjoint(value):
        return None
    match value.get("messages"):
        case [first, *rest] if _is_message(first):
            name = _choose_dialect([first, *rest], value)
            return CHAT_MESSAGES if name == RESPONSES_ITEMS else name
    return RESPONSES_ITEMS if _is_responses_body(value) else None


def _is_responses_body(body: JsonDict) -> bool:
    asked, answered = body.get("input"), body.get("output")
    if isinstance(asked, str):
        return isinstance(body.get("model"), str)
    return any(
        isinstance(items, list) and items and _is_item(items[0]) for items in (asked, answered)
    )


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(role := value.get("role"), str):
        return _is_item(value)
    is_content = isinstance(value.get("content"), str | list | NoneType)
    return role in _ROLES and is_content and any(field in value for field in _MESSAGE_FIELDS)


def _is_item(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind = value.get("type", "message")
    if kind == "message":
        role = value.get("role")
        is_role = isinstance(role, str) and role in _ROLES
        return is_role and isinstance(value.get("content"), str | list)
    return _is_item_type(kind)


def _is_item_type(kind: Any) -> bool:
    return isinstance(kind, str) and (
        kind in _ITEM_TYPES or kind.endswith(("_call", "_call_output"))
    )


def _choose_dialect(messages: list[Any], body: JsonDict) -> str:
    signs = Counter(_body_signs(body))
    for message in islice(messages, _MAX_MESSAGES_EXAMINED):
        if isinstance(message, dict):
            signs.update(_message_signs(message))
    named = (CHAT_MESSAGES, ANTHROPIC_MESSAGES, RESPONSES_ITEMS)
    return max(named, key=lambda name: signs[name])  # the first, if there is no sign


def _body_signs(body: JsonDict) -> Iterator[str]:
    if isinstance(body.get("system"), str | list) or "anthropic_version" in body:
        yield ANTHROPIC_MESSAGES
    match body.get("tools"):
        case [{"input_schema": _}, *_]:
            yield ANTHROPIC_MESSAGES
        case [{"function": _}, *_]:
            yield CHAT_MESSAGES


def _message_signs(message: JsonDict) -> Iterator[str]:
    if _is_item_type(message.get("type")):
        yield RESPONSES_ITEMS
    if any(message.get(field) for field in ("tool_calls", "function_call", "tool_call_id")):
        yield CHAT_MESSAGES
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in _PART_DIALECTS:
            yield _PART_DIALECTS[kind]
