"""Reads Gemini CLI sessions: one JSON document of messages, each with its tool calls."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ....domain.blocks import AnyBlock, Block, BlockKind, ToolCall, ToolResult
from ....domain.session_events import Usage
from .content import ContentPart, make_result_content
from .entry_steps import EntrySteps, digest_text, read_entry
from .fields import (
    JsonDict,
    MalformedError,
    find_text,
    get_field,
    read_usage,
    require_field,
    require_object,
)
from .format import make_document_format
from .gemini_history import (
    classify_gemini_text,
    read_function_response,
    read_media_part,
    require_media_part,
)
from .json_lines import SourceLine
from .steps import ImportStep, ReportedCall, SessionStart

FORMAT_NAME = "gemini-cli"
_FAILED_STATUSES = ("error", "cancelled")
_MESSAGE_TYPES = ("user", "gemini", "info", "warning", "error")
"""Types of messages; the last three are only displayed."""

NamedBlock = tuple[str, AnyBlock]
"""A block, and its key in its message."""


def _is_session(value: Any) -> bool:
    match value:
        case {"sessionId": str(), "projectHash": _, "startTime": _, "messages": list()}:
            return True
        case _:
            return False


def _read_session(line: SourceLine, stem: str) -> Iterator[ImportStep]:
    value = line.value
    yield SessionStart(value["sessionId"] or stem, title=find_text(value, "summary"))
    reader = _MessageReader(line)
    for number, message in enumerate(value["messages"], 1):
        yield from read_entry(EntrySteps(FORMAT_NAME, line, number, message), reader.read)


@dataclass(slots=True)
class _MessageReader:
    """The state of reading a session."""

    line: SourceLine
    open_calls: set[str] = field(default_factory=set)

    def read(self, entry: EntrySteps) -> None:
        item = require_object(entry.value, "messages: ")
        kind = require_field(item, "type", str)
        entry.id = get_field(item, "id", str) or f"message-{entry.number}"
        entry.time = get_field(item, "timestamp", str)
        if kind not in _MESSAGE_TYPES:
            entry.add_unknown(f"message/{kind}")
            return
        said = [*self._read_blocks(entry, kind, item)]
        call = _read_model_call(entry, item) if kind == "gemini" else None
        if not said:
            entry.skip()
        for name, block in said:
            by_model = kind == "gemini" and not isinstance(block, ToolResult)
            shared = entry.id if by_model else None
            entry.append_block(f"{entry.id}:{name}", block, entry.id, shared)
        if call:
            entry.add(call)

    def _read_blocks(self, entry: EntrySteps, kind: str, item: JsonDict) -> Iterator[NamedBlock]:
        if kind == "user":
            for name, part, text in _read_content(item):
                if text is None:
                    media = require_media_part(part, "content: ")
                    yield name, Block(kind=BlockKind(media.type), media=media)
                else:
                    yield _name_block(name, Block(kind=classify_gemini_text(text), text=text))
        elif kind == "gemini":
            for index, thought in enumerate(get_field(item, "thoughts", list) or []):
                yield from _read_thought(thought, index)
            for name, _, text in _read_content(item):
                if text is not None:
                    yield _name_block(name, Block.assistant(text))
            for index, call in enumerate(get_field(item, "toolCalls", list) or []):
                try:
                    yield from self._read_call(require_object(call), index, str(entry.id))
                except MalformedError as error:
                    entry.add_problem(f"toolCalls[{index}]: {error}")

    def _read_call(self, call: JsonDict, index: int, id: str) -> list[NamedBlock]:
        """Return a call and its result."""
        name = require_field(call, "name", str)
        told = get_field(call, "id", str) or f"{id}-{index}"
        arguments = self.line.to_json(get_field(call, "args", dict) or {})
        result = get_field(call, "result", list)
        known = f"{told}-{id}-{index}" if told in self.open_calls else told
        made = ToolCall(tool_call_id=known, name=name, arguments=arguments)
        pieces: list[NamedBlock] = [(f"{told}/{index}:call", made)]
        if result is not None or call.get("status") in (*_FAILED_STATUSES, "success"):
            pieces.append((f"{told}/{index}:result", self._read_answer(call, known)))
        else:
            self.open_calls.add(known)
        return pieces

    def _read_answer(self, call: JsonDict, known: str) -> ToolResult:
        parts: list[ContentPart] = []
        is_error = call.get("status") in _FAILED_STATUSES
        for index, part in enumerate(call.get("result") or []):
            match part:
                case str(text) | {"text": str(text)}:
                    parts.append(text)
                case {"functionResponse": dict(response)}:
                    answer = read_function_response(response, self.line)
                    parts += answer.parts
                    is_error = is_error or answer.is_error
                case _ if media := read_media_part(part):
                    parts.append(media)
                case _:
                    raise MalformedError(f"result[{index}]: not a part that is known")
        content = make_result_content(parts)
        return ToolResult(tool_call_id=known, content=content, is_error=is_error)


def _read_content(item: JsonDict) -> Iterator[tuple[str, Any, str | None]]:
    """Yield name, value and text of texts and media."""
    content = item.get("content")
    if content is None or isinstance(content, str):
        if content:
            yield "content", content, content
        return
    for index, part in enumerate(require_field(item, "content", list)):
        match part:
            case str(text) | {"text": str(text)} if text:
                yield f"content/{index}", part, text
            case {"inlineData": _} | {"fileData": _}:
                yield f"content/{index}", part, None


def _name_block(name: str, block: Block) -> NamedBlock:
    return f"{name}:{digest_text(block.text)}", block


def _read_thought(thought: Any, index: int) -> Iterator[NamedBlock]:
    within = f"thoughts[{index}]"
    item = require_object(thought, f"{within}: ")
    subject = get_field(item, "subject", str, f"{within}.")
    description = get_field(item, "description", str, f"{within}.") or ""
    lead = f"**{subject}**\n\n" if subject else ""
    if whole := lead + description:
        yield _name_block(f"thoughts/{index}", Block.thinking(whole))


def _read_model_call(entry: EntrySteps, item: JsonDict) -> ReportedCall | None:
    usage = _read_usage(item)
    if usage is None:
        return None
    fields = {
        "call_id": entry.id,
        "model": get_field(item, "model", str),
        "usage": usage,
        "source_time": entry.time,
    }
    return ReportedCall(f"{entry.id}:call", fields, first_answer_id=entry.id)


def _read_usage(item: JsonDict) -> Usage | None:
    """Return the tokens of a call; its prompt tokens include cached ones."""
    tokens = get_field(item, "tokens", dict)
    if tokens is None:
        return None
    usage = read_usage(
        tokens,
        "tokens.",
        is_total=True,
        is_reasoning_apart=True,
        input="input",
        cache_read="cached",
        output="output",
        reasoning="thoughts",
    )
    tools = get_field(tokens, "tool", int, "tokens.") or 0
    return usage if usage.input is None else usage.model_copy(update={"input": usage.input + tools})


FORMAT = make_document_format(
    FORMAT_NAME,
    "sessions of Gemini CLI",
    _is_session,
    _read_session,
    home_patterns=("~/.gemini/tmp",),
)
