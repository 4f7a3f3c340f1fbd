"""Reads Gemini CLI sessions: one JSON document of messages, each with its tool calls."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Origin, Text, ToolCall, ToolResult
from .....domain.compaction_events import Trigger
from .....domain.session_events import Usage
from ..entry_steps import EntrySteps, digest_text, read_entry_steps
from ..fields import JsonDict, MalformedError, drop_fields, get_field, require_field
from ..format import Format
from ..json_lines import SourceLine
from ..placeholders import Placeholder, make_remainder
from ..source import TranscriptSource
from ..steps import (
    Append,
    EntryEnd,
    ImportStep,
    RawEntry,
    ReportedCall,
    SessionStart,
    SourceCompaction,
    SourceProblem,
)
from ..summary_mark import find_marked_summary
from .gemini_cli_writer import FORMAT_NAME, GEMINI_MESSAGE_PREFIX, GEMINI_SESSION_ENTRY, write
from .parts import (
    classify_gemini_text,
    make_media_placeholders,
    make_result_content,
    read_function_response,
    read_media_part,
)

_FAILED_STATUSES = ("error", "cancelled")
_CALL_FIELDS = ("id", "name", "args", "displayName", "description", "renderOutputAsMarkdown")


@dataclass(slots=True)
class SessionProgress:
    line: SourceLine
    open_calls: set[str] = field(default_factory=set)
    has_content: bool = False


class GeminiMessageReader:
    """The state of reading a message. Its envelope keeps what its blocks do not hold."""

    def __init__(self, of: SessionProgress, entry: EntrySteps, item: JsonDict, id: str) -> None:
        self.of = of
        self.entry = entry
        self.line = of.line
        self.item = item
        self.id = id
        self.time = get_field(item, "timestamp", str)
        self.envelope = dict(item)
        self.said: list[ImportStep] = []

    def read_user(self) -> None:
        for at, owner, text in self._content_parts():
            if found := find_marked_summary(self.item, text):
                if self.of.has_content:
                    key = f"{self.id}:compacted"
                    self.said.append(SourceCompaction(key, Trigger.MANUAL, found.text))
                    continue
                block = Block.developer(found.text, name="summary")
            elif text is not None:
                block = Block(kind=classify_gemini_text(text), text=text)
            else:
                self._append_media(at, owner)
                continue
            self._append_text(at, owner, block, text or "")

    def read_gemini(self) -> None:
        for index, thought in enumerate(get_field(self.item, "thoughts", list) or []):
            self._append_thought(thought, index)
        for at, owner, text in self._content_parts():
            if text is not None:
                self._append_text(at, owner, Block.assistant(text), text)
        for index, call in enumerate(get_field(self.item, "toolCalls", list) or []):
            try:
                self._append_call(call, index)
            except MalformedError as error:
                raw = self.line.to_json(call)
                self.entry.add_problem(f"toolCalls[{index}]: {error}", raw)
        usage = _read_usage(self.item)
        if usage:
            fields = {
                "call_id": self.id,
                "model": get_field(self.item, "model", str),
                "usage": usage,
                "source_time": self.time,
            }
            self.said.append(ReportedCall(f"{self.id}:call", fields, first_answer_id=self.id))

    def _content_parts(self) -> Iterator[tuple[list[str | int], Any, str | None]]:
        """Yield texts and other parts of the content: path, owner and text."""
        content = self.item.get("content")
        if content is None or isinstance(content, str):
            if content:
                yield ["content"], None, content
            return
        for index, part in enumerate(require_field(self.item, "content", list)):
            match part:
                case str(text) if text:
                    yield ["content", index], None, text
                case {"text": str(text)} if text:
                    yield ["content", index], part, text
                case dict() if "inlineData" in part or "fileData" in part:
                    yield ["content", index], part, None
                case _:
                    pass  # it stays in the envelope

    def _append_text(self, at: list[str | int], owner: Any, block: Block, text: str) -> None:
        holes: list[Placeholder] = []
        if block.text == text:  # a summary's mark stays in the remainder
            holes.append(Placeholder(("value",) if owner is None else ("value", "text")))
        key = f"{self.id}:{'/'.join(map(str, at))}:{digest_text(block.text)}"
        self._append_block(key, at, (text if owner is None else owner, holes), block)

    def _append_media(self, at: list[str | int], owner: JsonDict) -> None:
        media = read_media_part(owner)
        if media is None:
            raise MalformedError("content: expected a mimeType and data, or a fileUri")
        holes = make_media_placeholders(owner, media, ("value",))
        block = Block(kind=Kind(media.type), media=media)
        self._append_block(f"{self.id}:{'/'.join(map(str, at))}", at, (owner, holes), block)

    def _append_thought(self, thought: Any, index: int) -> None:
        if not isinstance(thought, dict):
            raise MalformedError(f"thoughts[{index}]: expected an object")
        within = f"thoughts[{index}]."
        subject = get_field(thought, "subject", str, within)
        description = get_field(thought, "description", str, within) or ""
        lead = f"**{subject}**\n\n" if subject else ""
        if not lead and not description:
            return
        at: list[str | int] = ["thoughts", index]
        holes: list[Placeholder] = []
        whole = lead + description
        if description:
            holes.append(Placeholder(("value", "description"), span=(len(lead), len(whole))))
        key = f"{self.id}:thoughts/{index}:{digest_text(whole)}"
        self._append_block(key, at, (thought, holes), Block.thinking(whole))

    def _append_call(self, call: Any, index: int) -> None:
        """Append a call and its result. The result's remainder keeps its other fields."""
        if not isinstance(call, dict):
            raise MalformedError("expected an object")
        name = require_field(call, "name", str)
        told = get_field(call, "id", str) or f"{self.id}-{index}"
        arguments = get_field(call, "args", dict)
        result = get_field(call, "result", list)
        at: list[str | int] = ["toolCalls", index]
        answered = result is not None or call.get("status") in (*_FAILED_STATUSES, "success")
        mine = {field: one for field, one in call.items() if field in _CALL_FIELDS or not answered}
        holes = [] if arguments is None else [Placeholder(("value", "args"), "json")]
        known = f"{told}-{self.id}-{index}" if told in self.of.open_calls else told
        made = ToolCall(tool_call_id=known, name=name, arguments=self.line.to_json(arguments or {}))
        answer = self._read_answer(call, known) if answered else None
        self._append_block(f"{self.id}:{told}/{index}:call", at, (mine, holes), made)
        if answer:
            self._append_block(f"{self.id}:{told}/{index}:result", at, *answer)
        else:
            self.of.open_calls.add(known)

    def _read_answer(
        self, call: JsonDict, known: str
    ) -> tuple[tuple[JsonDict, list[Placeholder]], ToolResult]:
        rest = {field: one for field, one in call.items() if field not in _CALL_FIELDS}
        holes: list[Placeholder] = []
        parts: list[Any] = []
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
        shown = call.get("resultDisplay")
        if isinstance(shown, str) and shown and parts and isinstance(parts[0], Text):
            start = parts[0].text.find(shown)
            if start >= 0:
                span = (start, start + len(shown))
                holes.append(Placeholder(("value", "resultDisplay"), "text", 0, span=span))
        content = make_result_content(parts)
        made = ToolResult(tool_call_id=known, content=content, is_error=is_error)
        return (rest, holes), made

    def _append_block(
        self, key: str, at: list[str | int], piece: tuple[Any, list[Placeholder]], block: AnyBlock
    ) -> None:
        """Append a block; its remainder is the piece of the message at that path."""
        value, holes = piece
        rest = self.line.to_json(make_remainder({"at": at, "value": value}, holes))
        origin = Origin(
            format=FORMAT_NAME, id=self.id, time=self.time, line=self.entry.number, entry=rest
        )
        by_model = self.item["type"] == "gemini" and not isinstance(block, ToolResult)
        shared = {"origin": origin, "message_id": self.id if by_model else None}
        self.said.append(Append(key, block.model_copy(update=shared), self.id))
        self._blank_content(at)

    def _blank_content(self, at: list[str | int]) -> None:
        """Blank what blocks hold in the envelope; list positions stay."""
        if len(at) == 1:
            self.envelope.pop(str(at[0]), None)
            return
        field, index = str(at[0]), int(at[1])
        if self.envelope[field] is self.item[field]:
            self.envelope[field] = list(self.item[field])
        self.envelope[field][index] = None


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


_DISPLAY_TYPES = ("info", "warning", "error")


def recognizes(source: TranscriptSource) -> bool:
    document = source.document
    match document.value if document else None:
        case {"sessionId": str(), "projectHash": _, "startTime": _, "messages": list()}:
            return True
        case _:
            return False


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    line = source.document
    if line is None or line.problem or not isinstance(line.value, dict):
        yield SourceProblem(1, (line and line.problem) or "not one JSON object")
        yield EntryEnd("error", line.end if line else source.size)
        return
    yield from GeminiSessionReader(line, source.stem).read_steps()


class GeminiSessionReader:
    def __init__(self, line: SourceLine, stem: str) -> None:
        self.line = line
        self.document: JsonDict = line.value
        key = self.document.get("sessionId")
        self.key = key if isinstance(key, str) and key else stem
        self.known = SessionProgress(line)

    def read_steps(self) -> Iterator[ImportStep]:
        yield from read_entry_steps(self.line, 0, self._read_header, self.document)
        messages = self.document.get("messages")
        for number, message in enumerate(messages if isinstance(messages, list) else [], 1):
            yield from read_entry_steps(self.line, number, self._read_message, message)

    def _read_header(self, entry: EntrySteps, document: JsonDict) -> None:
        title = document.get("summary")
        entry.add(SessionStart(self.key, title=title if isinstance(title, str) and title else None))
        raw = self.line.to_json(drop_fields(document, "messages"))
        entry.add(
            RawEntry(
                f"{GEMINI_SESSION_ENTRY}:{digest_text(raw)}",
                GEMINI_SESSION_ENTRY,
                raw,
                self.key,
                entry.number,
            )
        )

    def _read_message(self, entry: EntrySteps, item: Any) -> None:
        if not isinstance(item, dict):
            raise MalformedError("messages: expected an object")
        kind = require_field(item, "type", str)
        id = get_field(item, "id", str) or f"message-{entry.number}"
        message = GeminiMessageReader(self.known, entry, item, id)
        if kind == "user":
            message.read_user()
        elif kind == "gemini":
            message.read_gemini()
        elif kind not in _DISPLAY_TYPES:
            entry.add_unknown(f"{GEMINI_MESSAGE_PREFIX}{kind}", self.line.to_json(item), id)
            return
        raw = self.line.to_json(message.envelope)
        key = f"{id}:{digest_text(raw)}"
        # A new version, not a piece of another entry.
        entry.add(RawEntry(key, f"{GEMINI_MESSAGE_PREFIX}{kind}", raw, id))
        entry.add(*message.said)
        self.known.has_content |= any(isinstance(one, Append) for one in message.said)


FORMAT = Format(
    name=FORMAT_NAME,
    description="sessions of Gemini CLI",
    recognizes=recognizes,
    read=read,
    write=write,
    suffix=".json",
    home_patterns=("~/.gemini/tmp",),
)
