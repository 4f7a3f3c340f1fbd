"""Reads files of messages: an array, a body with one, or a body on each line."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.session_events import Usage
from ..entry_steps import digest_text, refuse_line
from ..fields import JsonDict, MalformedError, get_field
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..source import TranscriptSource
from ..steps import (
    EntryEnd,
    ImportStep,
    ReportedCall,
    RequestParameters,
    SessionStart,
    SourceProblem,
)
from .dialect_detection import detect_value_dialect, is_body_per_line
from .message_reader import Dialect, MessageReader

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
    prompt = get_field(usage, sent, int)
    cached = get_field(get_field(usage, f"{sent}_details", dict) or {}, "cached_tokens", int)
    details = get_field(usage, f"{received}_details", dict) or {}
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0)),
        cache_read=cached,
        output=get_field(usage, received, int),
        reasoning=get_field(details, "reasoning_tokens", int),
    )
