"""Reads Gemini CLI sessions: one JSON document of messages, each with its tool calls."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ....domain.blocks import AnyBlock, Block, BlockKind, ToolCall, ToolResult
from ....domain.session_events import Usage
from .content import ContentPart, make_result_content
from .entry_steps import NOT_SENT, EntrySteps, digest_text, read_entry
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
    reader = GeminiMessageReader()
    for number, message in enumerate(value["messages"], 1):
        yield from read_entry(EntrySteps(FORMAT_NAME, line, number, message), reader.read)


@dataclass(slots=True)
class GeminiMessageReader:
    """Reads the messages of one session, and only what is new where one comes again."""

    calls: dict[str, str] = field(default_factory=dict)
    """Tool calls by message and place: their ids in the session."""
    open_calls: set[str] = field(default_factory=set)
    told: dict[str, set[str]] = field(default_factory=dict)
    """What was read of each message: its blocks, and its call of a model."""

    def read(self, entry: EntrySteps) -> None:
        item = require_object(entry.value, "messages: ")
        kind = require_field(item, "type", str)
        entry.id = get_field(item, "id", str) or f"message-{entry.number}"
        entry.time = get_field(item, "timestamp", str)
        if kind not in _MESSAGE_TYPES:
            entry.add_unknown(f"message/{kind}")
            return
        told = self.told.setdefault(entry.id, set())
        said = [*self._read_blocks(entry, kind, item)]
        new = [(name, block) for name, block in said if _mark(name, block) not in told]
        call = _read_model_call(entry, item) if kind == "gemini" and "call" not in told else None
        if not new:
            entry.skip("repeated id" if told else NOT_SENT)
        for name, block in new:
            by_model = kind == "gemini" and not isinstance(block, ToolResult)
            shared = entry.id if by_model else None
            entry.append_block(f"{entry.id}:{name}", block, entry.id, shared)
        told.update(_mark(name, block) for name, block in new)
        if call:
            told.add("call")
            entry.add(call)

    def _read_blocks(self, entry: EntrySteps, kind: str, item: JsonDict) -> Iterator[NamedBlock]:
        if kind == "user":
            for name, part, text in _read_content(item):
                if text is None:
                    media = require_media_part(part, "content: ")
                    yield name, Block(kind=BlockKind(media.type), media=media)
                else:
                    yield _name_block(name, Block(kind=classify_gemini_text(text), text=text))
            yield from self._read_responses(entry, item)
        elif kind == "gemini":
            for index, thought in enumerate(get_field(item, "thoughts", list) or []):
                yield from _read_thought(thought, index)
            for name, part, text in _read_content(item):
                if text is None:
                    continue
                if not _is_thought_part(part):
                    yield _name_block(name, Block.assistant(text))
                elif not item.get("thoughts"):
                    yield _name_block(name, Block.thinking(text))
            for index, call in enumerate(get_field(item, "toolCalls", list) or []):
                try:
                    yield from self._read_call(entry, require_object(call), index)
                except MalformedError as error:
                    entry.add_problem(f"toolCalls[{index}]: {error}")
            yield from self._read_restored_calls(entry, item)

    def _read_responses(self, entry: EntrySteps, item: JsonDict) -> Iterator[NamedBlock]:
        """Read results that do not stand with their calls."""
        for part in list_parts(item):
            match part:
                case {"functionResponse": {"id": str(id)} as response} if id in self.open_calls:
                    self.open_calls.discard(id)
                    parts, is_error = read_function_response(response, entry.line)
                    content = make_result_content(parts)
                    made = ToolResult(tool_call_id=id, content=content, is_error=is_error)
                    yield f"{id}:result", made

    def _read_restored_calls(self, entry: EntrySteps, item: JsonDict) -> Iterator[NamedBlock]:
        """Read calls of a restored conversation, which stand among the texts alone."""
        known = set(self.calls.values())
        for part in list_parts(item):
            match part:
                case {"functionCall": {"id": str(id), "name": str(name)} as call} if (
                    id not in known
                ):
                    arguments = entry.line.to_json(get_field(call, "args", dict) or {})
                    self.calls[f"{entry.id}:{id}"] = id
                    self.open_calls.add(id)
                    made = ToolCall(tool_call_id=id, name=name, arguments=arguments)
                    yield f"{id}:call", made

    def _read_call(self, entry: EntrySteps, call: JsonDict, index: int) -> list[NamedBlock]:
        """Return a call and its result."""
        name = require_field(call, "name", str)
        told = get_field(call, "id", str) or f"{entry.id}-{index}"
        arguments = entry.line.to_json(get_field(call, "args", dict) or {})
        result = get_field(call, "result", list)
        place = f"{entry.id}:{told}/{index}"
        unique = f"{told}-{entry.id}-{index}" if told in self.open_calls else told
        known = self.calls.setdefault(place, unique)
        made = ToolCall(tool_call_id=known, name=name, arguments=arguments)
        pieces: list[NamedBlock] = [(f"{told}/{index}:call", made)]
        if result is not None or call.get("status") in (*_FAILED_STATUSES, "success"):
            pieces.append((f"{told}/{index}:result", _read_answer(call, known, entry.line)))
            self.open_calls.discard(known)
        else:
            self.open_calls.add(known)
        return pieces


def _mark(name: str, block: AnyBlock) -> str:
    """Name a block apart from its place, which changes if a text comes again in a list."""
    return name if isinstance(block, ToolCall | ToolResult) else f"{block.kind}:{name[-16:]}"


def _read_answer(call: JsonDict, known: str, line: SourceLine) -> ToolResult:
    parts: list[ContentPart] = []
    is_error = call.get("status") in _FAILED_STATUSES
    for index, part in enumerate(call.get("result") or []):
        match part:
            case str(text) | {"text": str(text)}:
                parts.append(text)
            case {"functionResponse": dict(response)}:
                answer = read_function_response(response, line)
                parts += answer.parts
                is_error = is_error or answer.is_error
            case _ if media := read_media_part(part):
                parts.append(media)
            case _:
                raise MalformedError(f"result[{index}]: not a part that is known")
    return ToolResult(tool_call_id=known, content=make_result_content(parts), is_error=is_error)


def list_parts(item: Any) -> list[JsonDict]:
    """Return the parts of a message's content; none if it is a text."""
    content = item.get("content") if isinstance(item, dict) else None
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


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


def _is_thought_part(part: Any) -> bool:
    return isinstance(part, dict) and part.get("thought") is True


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
