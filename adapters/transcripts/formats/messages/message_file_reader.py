"""Detects the dialect of messages, and reads files of them: an array, a body, or a body a line."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from types import NoneType
from typing import Any

from .....domain.session_events import Usage
from ..entry_steps import digest_text, refuse_line
from ..fields import JsonDict, MalformedError, get_field, read_usage
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..mini_swe_agent import has_bash_messages
from ..source import TranscriptSource
from ..steps import (
    EntryEnd,
    ImportStep,
    ReportedCall,
    RequestParameters,
    SessionStart,
    SourceProblem,
)
from .message_reader import Dialect, MessageReader

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


_NO_MESSAGES = "expected messages, or a body that holds them"


@dataclass
class SessionKeys:
    """The names of sessions, made of file name and first text.

    File names alone are not unique. Sessions with the same beginning in one file are numbered; a
    file named after a session holds only that session.
    """

    stem: str
    taken: set[str] = field(default_factory=set)

    def make_key(self, messages: list[Any], line: SourceLine) -> str:
        first = next((at for at, one in enumerate(messages) if not _is_system(one)), 0)
        try:
            mark = digest_text(line.to_json(messages[: first + 1]))[:8]
        except NestedTooDeeplyError:
            mark = digest_text(line.digest)[:8]
        return self.make_distinct(self.stem if mark in self.stem else f"{self.stem}-{mark}")

    def make_distinct(self, key: str) -> str:
        """Return the key, numbered if the file has it already."""
        number, name = 1, key
        while name in self.taken:
            number += 1
            name = f"{key}-{number}"
        self.taken.add(name)
        return name


def read_message_file(dialect: Dialect, source: TranscriptSource) -> Iterator[ImportStep]:
    """Yield the sessions of a file: one, or one on each line."""
    keys = SessionKeys(source.stem)
    if is_body_per_line(source):
        for line in source.read_lines():
            yield from _read_session(dialect, line, keys, is_on_a_line=True)
    else:
        document = source.document or SourceLine(1, source.size, problem="no JSON document")
        yield from _read_session(dialect, document, keys, is_on_a_line=False)


def _read_session(
    dialect: Dialect, line: SourceLine, keys: SessionKeys, *, is_on_a_line: bool
) -> Iterator[ImportStep]:
    if not _has_messages(dialect, line):
        yield from refuse_line(line, line.problem or _NO_MESSAGES)
        return
    value = line.value
    body: JsonDict = value if isinstance(value, dict) else {}
    messages = value if isinstance(value, list) else _list_messages(dialect, body)
    yield SessionStart(keys.make_key(messages, line))
    conversation = MessageReader(dialect, dialect.name, line, is_on_a_line)
    if body:
        yield from read_body(conversation, body)
    yield from conversation.read_all(messages)
    if body:
        yield from _read_call(body, line)


def _has_messages(dialect: Dialect, line: SourceLine) -> bool:
    """Return whether there are messages that this dialect has a place for."""
    value = line.value
    if line.problem or detect_value_dialect(value) is None:
        return False
    return isinstance(value, list) or any(_holds(value, name) for name in dialect.message_lists)


def _list_messages(dialect: Dialect, body: JsonDict) -> list[Any]:
    """Return the messages in all lists of a body."""
    held = [_as_list(body[name]) for name in dialect.message_lists if _holds(body, name)]
    return [one for some in held for one in some]


def _holds(body: JsonDict, name: str) -> bool:
    return isinstance(body.get(name), list) or (name == "input" and isinstance(body.get(name), str))


def _as_list(messages: Any) -> list[Any]:
    is_words = isinstance(messages, str)
    return [{"role": "user", "content": messages}] if is_words else messages


def read_body(conversation: MessageReader, body: JsonDict) -> Iterator[ImportStep]:
    """Yield what the request of a body holds beside its messages."""
    dialect = conversation.dialect
    tools: Any = body
    for name in dialect.tools_path:
        tools = tools.get(name) if isinstance(tools, dict) else None
    tools = tools if isinstance(tools, list) else None
    prompt = _prompt_text(body.get(dialect.system_field)) if dialect.system_field else None
    settings = {name: body[name] for name in body if name in dialect.settings} or None
    conversation.has_system_prompt = prompt is not None
    key = f"asked:{digest_text(conversation.line.to_json((prompt, tools, settings)))}"
    yield RequestParameters(key, prompt, tools, settings)
    yield EntryEnd(0)


def _prompt_text(prompt: Any) -> str | None:
    if not isinstance(prompt, list):
        return prompt if isinstance(prompt, str) else None
    said = [item["text"] for item in prompt if _is_text(item)]
    return "\n".join(said) if said else None


def _is_text(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("text"), str)


def _is_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def _read_call(body: JsonDict, line: SourceLine) -> Iterator[ImportStep]:
    """Yield the call that a response body reports, if it has usage."""
    try:
        usage = read_openai_usage(body)
        if usage is None or not isinstance(body.get("output"), list):
            return
        fields = {
            "call_id": get_field(body, "id", str) or "answer",
            "model": get_field(body, "model", str),
            "usage": usage,
            "stop_reason": get_field(body, "status", str),
        }
    except MalformedError as error:
        yield SourceProblem(line.number, str(error))
        return
    yield ReportedCall(f"call:{digest_text(line.to_json(fields['call_id']))}", fields)


def read_openai_usage(
    body: JsonDict, sent: str = "input_tokens", received: str = "output_tokens"
) -> Usage | None:
    """Return the usage that a response of OpenAI reports, under the names of its interface."""
    usage = get_field(body, "usage", dict)
    if usage is None:
        return None
    return read_usage(
        usage,
        "usage.",
        is_total=True,
        input=sent,
        cache_read=f"{sent}_details.cached_tokens",
        output=received,
        reasoning=f"{received}_details.reasoning_tokens",
    )
