"""Reads Gemini CLI sessions: one JSON document of messages, each with its tool calls."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, Origin, Text, ToolCall, ToolResult
from .....domain.compaction_events import Trigger
from .....domain.session_events import Usage
from ..entry_steps import EntrySteps, digest_text, read_entry_steps
from ..fields import (
    JsonDict,
    MalformedError,
    drop_fields,
    find_text,
    get_field,
    require_field,
    require_object,
)
from ..format import make_document_format
from ..json_lines import SourceLine
from ..placeholders import JsonPath, Placeholder, make_remainder
from ..steps import Append, ImportStep, RawEntry, ReportedCall, SessionStart, SourceCompaction
from ..summary_mark import find_marked_summary
from .gemini_cli_writer import FORMAT_NAME, GEMINI_MESSAGE_PREFIX, GEMINI_SESSION_ENTRY, write
from .parts import (
    classify_gemini_text,
    make_media_placeholders,
    make_result_content,
    read_function_response,
    read_media_part,
    require_media_part,
)

_FAILED_STATUSES = ("error", "cancelled")
_CALL_FIELDS = ("id", "name", "args", "displayName", "description", "renderOutputAsMarkdown")
_MESSAGE_TYPES = ("user", "gemini", "info", "warning", "error")
"""Types of messages; the last three are only displayed."""


def _is_session(value: Any) -> bool:
    match value:
        case {"sessionId": str(), "projectHash": _, "startTime": _, "messages": list()}:
            return True
        case _:
            return False


def _read_session(line: SourceLine, stem: str) -> Iterator[ImportStep]:
    key = line.value["sessionId"] or stem
    yield from read_entry_steps(line, 0, _read_header, line, key)
    reader = _MessageReader(line)
    for number, message in enumerate(line.value["messages"], 1):
        yield from read_entry_steps(line, number, reader.read, message)


def _read_header(entry: EntrySteps, line: SourceLine, key: str) -> None:
    entry.add(SessionStart(key, title=find_text(line.value, "summary")))
    raw = line.to_json(drop_fields(line.value, "messages"))
    name = f"{GEMINI_SESSION_ENTRY}:{digest_text(raw)}"
    entry.add(RawEntry(name, GEMINI_SESSION_ENTRY, raw, key, entry.number))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block, and the value at a path of its message that it holds, except for `holes`."""

    at: JsonPath
    block: AnyBlock
    value: Any
    holes: list[Placeholder]
    name: str
    """Its key in the message."""


@dataclass(slots=True)
class _MessageReader:
    """The state of reading a session. A message's envelope keeps what its blocks do not hold."""

    line: SourceLine
    open_calls: set[str] = field(default_factory=set)
    has_content: bool = False

    def read(self, entry: EntrySteps, message: Any) -> None:
        item = require_object(message, "messages: ")
        kind = require_field(item, "type", str)
        id = get_field(item, "id", str) or f"message-{entry.number}"
        if kind not in _MESSAGE_TYPES:
            entry.add_unknown(f"{GEMINI_MESSAGE_PREFIX}{kind}", self.line.to_json(item), id)
            return
        time = get_field(item, "timestamp", str)
        said: list[ImportStep] = []
        envelope = dict(item)
        for piece in self._read_pieces(entry, kind, item, id):
            if not isinstance(piece, _Piece):
                said.append(piece)
                continue
            rest = make_remainder({"at": piece.at, "value": piece.value}, piece.holes)
            origin = Origin(
                format=FORMAT_NAME,
                id=id,
                time=time,
                line=entry.number,
                entry=self.line.to_json(rest),
            )
            by_model = kind == "gemini" and not isinstance(piece.block, ToolResult)
            shared = {"origin": origin, "message_id": id if by_model else None}
            said.append(Append(f"{id}:{piece.name}", piece.block.model_copy(update=shared), id))
            _blank_content(envelope, item, piece.at)
        raw = self.line.to_json(envelope)
        # A new version, not a piece of another entry.
        entry.add(RawEntry(f"{id}:{digest_text(raw)}", f"{GEMINI_MESSAGE_PREFIX}{kind}", raw, id))
        entry.add(*said)
        self.has_content |= any(isinstance(one, Append) for one in said)

    def _read_pieces(
        self, entry: EntrySteps, kind: str, item: JsonDict, id: str
    ) -> Iterator[_Piece | SourceCompaction | ReportedCall]:
        if kind == "user":
            for at, part, text in _content_parts(item):
                yield self._read_user_part(at, part, text, item, id)
        elif kind == "gemini":
            for index, thought in enumerate(get_field(item, "thoughts", list) or []):
                yield from _read_thought(thought, index)
            for at, part, text in _content_parts(item):
                if text is not None:
                    yield _make_text_piece(at, part, Block.assistant(text), text)
            for index, call in enumerate(get_field(item, "toolCalls", list) or []):
                try:
                    yield from self._read_call(require_object(call), index, id)
                except MalformedError as error:
                    entry.add_problem(f"toolCalls[{index}]: {error}", self.line.to_json(call))
            if usage := _read_usage(item):
                fields = {
                    "call_id": id,
                    "model": get_field(item, "model", str),
                    "usage": usage,
                    "source_time": get_field(item, "timestamp", str),
                }
                yield ReportedCall(f"{id}:call", fields, first_answer_id=id)

    def _read_user_part(
        self, at: JsonPath, part: Any, text: str | None, item: JsonDict, id: str
    ) -> _Piece | SourceCompaction:
        if text is None:
            media = require_media_part(part, "content: ")
            holes = make_media_placeholders(part, media, ("value",))
            block = Block(kind=Kind(media.type), media=media)
            return _Piece(at, block, part, holes, _join_path(at))
        found = find_marked_summary(item, text)
        if found and self.has_content:
            return SourceCompaction(f"{id}:compacted", Trigger.MANUAL, found.text)
        if found:
            return _make_text_piece(at, part, Block.developer(found.text, name="summary"), text)
        return _make_text_piece(at, part, Block(kind=classify_gemini_text(text), text=text), text)

    def _read_call(self, call: JsonDict, index: int, id: str) -> list[_Piece]:
        """Return a call and its result. The result's remainder keeps its other fields."""
        name = require_field(call, "name", str)
        told = get_field(call, "id", str) or f"{id}-{index}"
        arguments = get_field(call, "args", dict)
        result = get_field(call, "result", list)
        answered = result is not None or call.get("status") in (*_FAILED_STATUSES, "success")
        mine = {field: one for field, one in call.items() if field in _CALL_FIELDS or not answered}
        holes = [] if arguments is None else [Placeholder(("value", "args"), "json")]
        known = f"{told}-{id}-{index}" if told in self.open_calls else told
        made = ToolCall(tool_call_id=known, name=name, arguments=self.line.to_json(arguments or {}))
        at = ("toolCalls", index)
        pieces = [_Piece(at, made, mine, holes, f"{told}/{index}:call")]
        if answered:
            answer, answer_holes = self._read_answer(call, known)
            rest = drop_fields(call, *_CALL_FIELDS)
            pieces.append(_Piece(at, answer, rest, answer_holes, f"{told}/{index}:result"))
        else:
            self.open_calls.add(known)
        return pieces

    def _read_answer(self, call: JsonDict, known: str) -> tuple[ToolResult, list[Placeholder]]:
        holes: list[Placeholder] = []
        parts: list[Text | Media] = []
        is_error = call.get("status") in _FAILED_STATUSES
        for index, part in enumerate(call.get("result") or []):
            place = ("value", "result", index)
            match part:
                case str(text):
                    holes.append(Placeholder(place, "text", len(parts)))
                    parts.append(Text(text=text))
                case {"text": str(text)}:
                    holes.append(Placeholder((*place, "text"), "text", len(parts)))
                    parts.append(Text(text=text))
                case {"functionResponse": dict(response)}:
                    where = (*place, "functionResponse")
                    answer = read_function_response(response, where, self.line, len(parts))
                    parts += answer.parts
                    holes += answer.holes
                    is_error = is_error or answer.is_error
                case dict() if media := read_media_part(part):
                    holes += make_media_placeholders(part, media, place, len(parts))
                    parts.append(media)
                case _:
                    raise MalformedError(f"result[{index}]: not a part that is known")
        shown = find_text(call, "resultDisplay")
        if shown and parts and isinstance(parts[0], Text):
            start = parts[0].text.find(shown)
            if start >= 0:
                span = (start, start + len(shown))
                holes.append(Placeholder(("value", "resultDisplay"), "text", 0, span=span))
        content = make_result_content(parts)
        return ToolResult(tool_call_id=known, content=content, is_error=is_error), holes


def _content_parts(item: JsonDict) -> Iterator[tuple[JsonPath, Any, str | None]]:
    """Yield path, value and text of texts and media; the other parts stay in the envelope."""
    content = item.get("content")
    if content is None or isinstance(content, str):
        if content:
            yield ("content",), content, content
        return
    for index, part in enumerate(require_field(item, "content", list)):
        match part:
            case str(text) | {"text": str(text)} if text:
                yield ("content", index), part, text
            case {"inlineData": _} | {"fileData": _}:
                yield ("content", index), part, None


def _make_text_piece(at: JsonPath, part: Any, block: Block, text: str) -> _Piece:
    holes: list[Placeholder] = []
    if block.text == text:  # a summary's mark stays in the remainder
        holes.append(Placeholder(("value",) if isinstance(part, str) else ("value", "text")))
    return _Piece(at, block, part, holes, f"{_join_path(at)}:{digest_text(block.text)}")


def _read_thought(thought: Any, index: int) -> Iterator[_Piece]:
    within = f"thoughts[{index}]"
    item = require_object(thought, f"{within}: ")
    subject = get_field(item, "subject", str, f"{within}.")
    description = get_field(item, "description", str, f"{within}.") or ""
    lead = f"**{subject}**\n\n" if subject else ""
    whole = lead + description
    if not whole:
        return
    holes: list[Placeholder] = []
    if description:
        holes.append(Placeholder(("value", "description"), span=(len(lead), len(whole))))
    name = f"thoughts/{index}:{digest_text(whole)}"
    yield _Piece(("thoughts", index), Block.thinking(whole), item, holes, name)


def _join_path(at: JsonPath) -> str:
    return "/".join(map(str, at))


def _blank_content(envelope: JsonDict, item: JsonDict, at: JsonPath) -> None:
    """Blank what a block holds in the envelope; list positions stay."""
    name, *index = str(at[0]), *at[1:]
    if not index:
        envelope.pop(name)
        return
    if envelope[name] is item[name]:
        envelope[name] = list(item[name])
    envelope[name][index[0]] = None


def _read_usage(item: JsonDict) -> Usage | None:
    """Return the tokens of a call; its prompt tokens include cached ones."""
    tokens = get_field(item, "tokens", dict)
    if tokens is None:
        return None
    read, cached, wrote, thought, tools = (
        get_field(tokens, name, int, "tokens.")
        for name in ("input", "cached", "output", "thoughts", "tool")
    )
    return Usage(
        input=None if read is None else max(0, read - (cached or 0)) + (tools or 0),
        cache_read=cached,
        output=None if wrote is None else wrote + (thought or 0),
        reasoning=thought,
    )


FORMAT = make_document_format(
    FORMAT_NAME,
    "sessions of Gemini CLI",
    _is_session,
    _read_session,
    write,
    home_patterns=("~/.gemini/tmp",),
)
