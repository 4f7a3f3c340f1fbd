"""Tells whose messages an array holds: by what is in them, and never by a name."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from types import NoneType
from typing import Any

from ..mini_swe_agent.talk import is_bash_talk
from ..source import Source

CHAT = "openai-chat"
RESPONSES = "openai-responses"
ANTHROPIC = "anthropic"
TAU = "openai-messages-tau"

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_SAYING = ("content", "tool_calls", "function_call", "refusal", "audio")
_ITEMS = frozenset(
    (
        *("function_call", "function_call_output", "reasoning", "item_reference", "compaction"),
        *("custom_tool_call", "custom_tool_call_output", "local_shell_call", "shell_call"),
        *("local_shell_call_output", "shell_call_output", "apply_patch_call", "computer_call"),
        *("apply_patch_call_output", "computer_call_output", "web_search_call", "mcp_call"),
        *("file_search_call", "code_interpreter_call", "image_generation_call", "mcp_list_tools"),
    )
)
_PARTS = {
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), RESPONSES),
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking"), ANTHROPIC),
    **dict.fromkeys(("image", "document", "server_tool_use", "compaction"), ANTHROPIC),
    **dict.fromkeys(("image_url", "input_audio", "file"), CHAT),
}
_OF_OTHERS = frozenset(
    ("info", "trajectory_format", "trajectory", "history", "sessionId", "schema_version", "type")
)
"""Fields of agents' own files that hold messages as well."""
_TOLD_BY = 1_000
"""Messages that are looked at."""


def recogniser(name: str) -> Callable[[Source], bool]:
    """What recognises the files of one provider's messages."""

    def recognises(source: Source) -> bool:
        return told(source) == name

    return recognises


def told(source: Source) -> str | None:
    """Whose messages the file holds; None where it is no file of messages."""
    if is_of_lines(source):
        names = [dialect_of(value) for value in source.first]
        if None in names:
            return None
        return next((name for name in names if name != CHAT), CHAT)
    if len(source.first) == 1 and not _may_hold_messages(source.first[0]):
        return None
    document = source.document
    return dialect_of(document.value) if document and not document.problem else None


def is_of_lines(source: Source) -> bool:
    """Whether there is a body on each line."""
    return len(source.first) > 1 and all(isinstance(value, dict) for value in source.first)


def dialect_of(value: Any) -> str | None:
    """Whose messages a value is: an array of them, or the body of a request or an answer."""
    if isinstance(value, list):
        is_messages = value and _is_message(value[0]) and not is_bash_talk(value)
        return _dialect(value, {}) if is_messages else None
    if not isinstance(value, dict) or not _OF_OTHERS.isdisjoint(value):
        return None
    match value.get("messages"):
        case [first, *rest] if _is_message(first):
            name = _dialect([first, *rest], value)
            return CHAT if name == RESPONSES else name
        case _:
            pass
    return RESPONSES if _is_of_responses(value) else None


def is_traj(value: Any) -> bool:
    """Whether a value is one record of a tau-bench run."""
    match value:
        case {"traj": [first, *_]}:
            return _is_message(first) and dialect_of(value["traj"]) == CHAT
        case _:
            return False


def _may_hold_messages(value: Any) -> bool:
    return isinstance(value, list) or dialect_of(value) is not None


def _is_of_responses(body: dict[str, Any]) -> bool:
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
    return role in _ROLES and is_content and any(field in value for field in _SAYING)


def _is_item(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind = value.get("type", "message")
    if kind == "message":
        role = value.get("role")
        is_role = isinstance(role, str) and role in _ROLES
        return is_role and isinstance(value.get("content"), str | list)
    return isinstance(kind, str) and kind in _ITEMS


def _dialect(messages: list[Any], body: dict[str, Any]) -> str:
    signs = Counter(_of_body(body))
    for message in islice(messages, _TOLD_BY):
        if isinstance(message, dict):
            signs.update(_of_message(message))
    named = (CHAT, ANTHROPIC, RESPONSES)
    return max(named, key=lambda name: signs[name])  # the first, where none tells


def _of_body(body: dict[str, Any]) -> Iterator[str]:
    if isinstance(body.get("system"), str | list) or "anthropic_version" in body:
        yield ANTHROPIC
    match body.get("tools"):
        case [{"input_schema": _}, *_]:
            yield ANTHROPIC
        case [{"function": _}, *_]:
            yield CHAT
        case _:
            pass


def _of_message(message: dict[str, Any]) -> Iterator[str]:
    kind = message.get("type")
    if isinstance(kind, str) and kind in _ITEMS:
        yield RESPONSES
    if any(message.get(field) for field in ("tool_calls", "function_call", "tool_call_id")):
        yield CHAT
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in _PARTS:
            yield _PARTS[kind]
