"""Reads and writes Gemini API histories: arrays of contents, bare or in a checkpoint."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, ToolCall, ToolResult
from .....domain.compaction_events import Trigger
from .. import json_lines
from ..entry_steps import EntryBlocks, EntryLocation, EntrySteps, digest_text, read_entry_steps
from ..fields import JsonDict, MalformedError, drop_fields, get_field, require_field
from ..format import Format
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..outgoing import (
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    group_own_entries,
)
from ..placeholders import JsonPath, Placeholder, fill_entry
from ..source import TranscriptSource
from ..steps import EntryEnd, ImportStep, RawEntry, SessionStart, SourceCompaction, SourceProblem
from ..summary_mark import SUMMARY_MARK, find_marked_summary
from .parts import (
    classify_gemini_text,
    is_snapshot,
    make_inline_part,
    make_media_placeholders,
    make_result_content,
    make_summary_text,
    make_user_part,
    read_function_response,
    read_media_part,
)

FORMAT_NAME = "gemini-history"
CHECKPOINT_ENTRY = "checkpoint"
"""The type of the note that holds the rest of the checkpoint."""


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    """Yield the session as one array, or as its original checkpoint."""
    history = GeminiContents(outgoing)
    history.put_all()
    if outgoing.system_prompt:
        outgoing.count_loss("system prompts")
    contents: Any = history.contents
    if history.around is not None:
        contents = history.around | {"history": contents}
    yield json_lines.encode_document(contents)


class GeminiContents:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.contents: list[JsonDict] = []
        self.around: JsonDict | None = None
        self.names: dict[str, str] = {}

    def put_all(self) -> None:
        """Add the log: own contents unchanged, and what cutbank added."""
        for one in group_own_entries(self.outgoing, FORMAT_NAME):
            if isinstance(one, OutgoingEntry):
                self._restore(one)
            else:
                self._add_message(one)

    def _restore(self, entry: OutgoingEntry) -> None:
        block = entry.outgoing_blocks[0].block
        for said in entry.outgoing_blocks:
            if isinstance(said.block, ToolCall):
                self.names[said.block.tool_call_id] = said.block.name
        if entry.remainder is not None:
            if not all(said.is_retracted for said in entry.outgoing_blocks):
                self.contents.append(
                    fill_entry(entry.remainder, [said.block for said in entry.outgoing_blocks])
                )
        elif isinstance(block, Block) and block.name == CHECKPOINT_ENTRY:
            self.around = json.loads(entry.raw or "{}")
        elif isinstance(block, Block) and (block.name or "").startswith("content/"):
            self.contents.append(json.loads(entry.raw or "{}"))

    def _add_message(self, message: OutgoingMessage | OutgoingCompaction) -> None:
        if isinstance(message, OutgoingCompaction):
            if text := make_summary_text(self.outgoing, message):
                self.contents.append({"role": "user", "parts": [{"text": text, **SUMMARY_MARK}]})
        elif isinstance(message.outgoing_blocks[0].block, ToolResult):
            self._add_answer(message)
        elif message.role == "assistant":
            if made := [part for block in message.blocks for part in self._make_parts(block)]:
                self.contents.append({"role": "model", "parts": made})
        else:
            parts = [make_user_part(block) for block in message.blocks]
            self.contents.append({"role": "user", "parts": parts})

    def _make_parts(self, block: Any) -> Iterator[JsonDict]:
        match block:
            case ToolCall(tool_call_id=id, name=name):
                self.names[id] = name
                arguments = block.parse_arguments()
                if "_raw" in arguments:
                    self.outgoing.count_loss("tool arguments that are not a JSON object")
                yield {"functionCall": {"id": id, "name": name, "args": arguments}}
            case Block(kind=Kind.THINKING, text=text, native=native):
                if native:
                    self.outgoing.count_loss("a provider's own reasoning items")
                if text:
                    yield {"text": text, "thought": True}
            case Block(text=text) if text:
                yield {"text": text}
            case _:
                self.outgoing.count_loss("a provider's own items")

    def _add_answer(self, message: OutgoingMessage) -> None:
        """Group the responses to the calls of one content in the next content."""
        parts: list[JsonDict] = []
        for said in message.outgoing_blocks:
            result = said.block
            assert isinstance(result, ToolResult)
            id = result.tool_call_id
            response: JsonDict = {
                "id": id,
                "name": self.names.get(id, "unknown"),
                "response": {"error" if result.is_error else "output": result.text},
            }
            more = () if isinstance(result.content, str) else result.content
            if any(isinstance(part, NativePart) for part in more):
                self.outgoing.count_loss("parts of tool results in a provider's own form")
            if media := [make_inline_part(part) for part in more if isinstance(part, Media)]:
                response["parts"] = media
            parts.append({"functionResponse": response})
        match self.contents[-1:]:
            case [{"role": "user", "parts": [{"functionResponse": _}, *_]} as before]:
                before["parts"] += parts
            case _:
                self.contents.append({"role": "user", "parts": parts})


_ROLES = ("user", "model", "function")
_NATIVE_PARTS = ("executableCode", "codeExecutionResult")


def recognizes(source: TranscriptSource) -> bool:
    document = source.document
    match document.value if document else None:
        case [{"role": _, "parts": list()}, *_] as contents:
            return any(_is_content(content) for content in contents)
        case {"history": [{"role": _, "parts": list()}, *_] as contents}:
            return any(_is_content(content) for content in contents)
        case _:
            return False


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    line = source.document
    if line is None or line.problem:
        yield SourceProblem(1, (line and line.problem) or "not one JSON array")
        yield EntryEnd("error", line.end if line else source.size)
        return
    yield SessionStart(_make_key(line))
    yield from GeminiHistoryReader(line).read_steps()


@dataclass(frozen=True, slots=True)
class PartLocation:
    """The path of a part in its content, and the index of its block."""

    holes: list[Placeholder]
    content_index: int
    block_index: int
    name: str


class GeminiHistoryReader:
    """The state of reading a history. Calls are paired by id, or else by name."""

    def __init__(self, line: SourceLine) -> None:
        self.line = line
        self.open: dict[str, list[str]] = {}
        """Calls without a response: their session ids, oldest first."""
        self.taken: set[str] = set()
        self.has_said = False

    def read_steps(self) -> Iterator[ImportStep]:
        contents = self.line.value
        if isinstance(contents, dict):
            yield from read_entry_steps(self.line, 0, self._read_checkpoint, contents)
            contents = contents.get("history")
        for number, content in enumerate(contents if isinstance(contents, list) else [], 1):
            yield from read_entry_steps(self.line, number, self._read_content, content)

    def _read_checkpoint(self, entry: EntrySteps, checkpoint: JsonDict) -> None:
        raw = self.line.to_json(drop_fields(checkpoint, "history"))
        entry.add(RawEntry(f"{CHECKPOINT_ENTRY}:{digest_text(raw)}", CHECKPOINT_ENTRY, raw, line=0))
        require_field(checkpoint, "history", list)

    def _read_content(self, entry: EntrySteps, content: Any) -> None:
        if not isinstance(content, dict):
            raise MalformedError("expected an object")
        role = require_field(content, "role", str)
        if role not in _ROLES:
            raise MalformedError(f"role: {role!r} is not known")
        parts = require_field(content, "parts", list)
        id = f"{entry.number}:{digest_text(self.line.to_json(content))}"
        pieces = EntryBlocks()
        for index, part in enumerate(parts):
            name = f"{entry.number}-{index}"
            place = PartLocation(pieces.placeholders, index, len(pieces.blocks), name)
            try:
                block = self._read_part(entry, part, role, place)
            except MalformedError as error:
                raw = self.line.to_json(part)
                entry.add_problem(f"parts[{index}]: {error}", raw)
                continue
            if block is not None:
                pieces.add(block)
        found = self._read_compaction(content, id) if len(pieces.blocks) == 1 else None
        if found or not pieces.blocks:
            raw = self.line.to_json(content)
            entry.add(RawEntry(id, f"content/{role}", raw, id, entry.number))
            entry.add(*[found] if found else [])
            return
        self.has_said = True
        whence = EntryLocation(FORMAT_NAME, id, self.line, entry.number, id)
        message_id = id if role == "model" else None
        entry.add(*pieces.make_appends(whence, content, message_id, with_copies=False))

    def _read_compaction(self, content: JsonDict, id: str) -> SourceCompaction | None:
        """Return a summary that cutbank exported, if anything precedes it."""
        match content:
            case {"role": "user", "parts": [{"text": str(text)}]} if self.has_said:
                if found := find_marked_summary(content, text):
                    return SourceCompaction(f"{id}:compacted", Trigger.MANUAL, found.text)
        return None

    def _read_part(
        self, entry: EntrySteps, part: Any, role: str, place: PartLocation
    ) -> AnyBlock | None:
        if not isinstance(part, dict):
            raise MalformedError("expected an object")
        at: JsonPath = ("parts", place.content_index)
        match part:
            case {"functionCall": call}:
                return self._read_call(call, place)
            case {"functionResponse": response}:
                return self._read_response(response, place)
            case {"text": _}:
                return self._read_text(part, role, place)
            case {"inlineData": _} | {"fileData": _} if role == "user":
                media = read_media_part(part)
                if media is None:
                    raise MalformedError("expected a mimeType and data, or a fileUri")
                place.holes.extend(
                    make_media_placeholders(part, media, at, block=place.block_index)
                )
                return Block(kind=Kind(media.type), media=media)
            case _ if any(name in part for name in _NATIVE_PARTS):
                place.holes.append(Placeholder(at, "json", block_index=place.block_index))
                return Block.note(self.line.to_json(part), name="code")
            case {"thoughtSignature": _} if len(part) == 1:
                return None  # it stays in the remainder of the content
            case _:
                kind = "part/" + "+".join(sorted(part))
                entry.add_unknown(kind, self.line.to_json(part))
                return None

    def _read_text(self, part: JsonDict, role: str, place: PartLocation) -> Block | None:
        text = require_field(part, "text", str)
        if not text:
            return None
        if role != "model" and (found := find_marked_summary(part, text)):
            # Its mark stays in the remainder of the content.
            return Block.developer(found.text, name="summary")
        place.holes.append(
            Placeholder(("parts", place.content_index, "text"), block_index=place.block_index)
        )
        if role == "model":
            return Block.thinking(text) if part.get("thought") is True else Block.assistant(text)
        if is_snapshot(text):
            return Block.developer(text, name="summary")
        return Block(kind=classify_gemini_text(text), text=text)

    def _read_call(self, call: Any, place: PartLocation) -> ToolCall:
        if not isinstance(call, dict):
            raise MalformedError("functionCall: expected an object")
        name = require_field(call, "name", str, "functionCall.")
        told = get_field(call, "id", str, "functionCall.") or None
        arguments = get_field(call, "args", dict, "functionCall.")
        if arguments is not None:
            at = ("parts", place.content_index, "functionCall", "args")
            place.holes.append(Placeholder(at, "json", block_index=place.block_index))
        known = told if told and told not in self.taken else f"{told or 'call'}-{place.name}"
        self.taken.add(known)
        self.open.setdefault(told or f"name:{name}", []).append(known)
        return ToolCall(tool_call_id=known, name=name, arguments=self.line.to_json(arguments or {}))

    def _read_response(self, response: Any, place: PartLocation) -> ToolResult:
        if not isinstance(response, dict):
            raise MalformedError("functionResponse: expected an object")
        told = get_field(response, "id", str, "functionResponse.") or None
        name = require_field(response, "name", str, "functionResponse.")
        at = ("parts", place.content_index, "functionResponse")
        answer = read_function_response(response, at, self.line, block=place.block_index)
        place.holes.extend(answer.holes)
        waiting = self.open.get(told or f"name:{name}")
        # A response without a call is refused later, and kept as a note.
        known = waiting.pop(0) if waiting else told or f"response-{place.name}"
        said = make_result_content(answer.parts)
        return ToolResult(tool_call_id=known, content=said, is_error=answer.is_error)


def _make_key(line: SourceLine) -> str:
    """Return a key from the start of a history, which has no id, up to the model's first text.

    A checkpoint saved later under another name thus continues the same session.
    """
    value = line.value
    contents = value.get("history") if isinstance(value, dict) else value
    begins: list[Any] = []
    for content in contents if isinstance(contents, list) else []:
        begins.append(content)
        if isinstance(content, dict) and content.get("role") == "model":
            break
    try:
        return f"gemini-{digest_text(line.to_json(begins))}"
    except NestedTooDeeplyError:
        return f"gemini-{line.digest.removeprefix('line:')}"


def _is_content(content: Any) -> bool:
    match content:
        case {"role": "user" | "model", "parts": [dict(), *_]}:
            return True
        case _:
            return False


FORMAT = Format(
    name=FORMAT_NAME,
    description="histories of the Gemini API",
    recognizes=recognizes,
    read=read,
    write=write,
    suffix=".json",
)
