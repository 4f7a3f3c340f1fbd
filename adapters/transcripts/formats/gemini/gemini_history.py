"""Reads and writes Gemini API histories: arrays of contents, bare or in a checkpoint."""

import json
from collections.abc import Iterator
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, ToolCall, ToolResult
from .....domain.compaction_events import Trigger
from .. import json_lines
from ..entry_steps import EntryBlocks, EntryLocation, EntrySteps, digest_text, read_entry_steps
from ..fields import (
    JsonDict,
    MalformedError,
    drop_fields,
    get_field,
    require_field,
    require_object,
)
from ..format import make_document_format
from ..json_lines import SourceLine
from ..outgoing import (
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    group_own_entries,
    read_entry_type,
)
from ..placeholders import JsonPath, fill_entry
from ..steps import ImportStep, RawEntry, SessionStart, SourceCompaction
from ..summary_mark import SUMMARY_MARK, find_marked_summary
from .parts import (
    classify_gemini_text,
    is_snapshot,
    make_call_arguments,
    make_media_placeholders,
    make_response,
    make_result_content,
    make_spoken_texts,
    make_summary_text,
    make_user_part,
    read_function_response,
    require_media_part,
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
        said = entry.outgoing_blocks
        for one in said:
            if isinstance(one.block, ToolCall):
                self.names[one.block.tool_call_id] = one.block.name
        if entry.remainder is not None:
            if not all(one.is_retracted for one in said):
                self.contents.append(fill_entry(entry.remainder, [one.block for one in said]))
        elif (kind := read_entry_type(entry)) == CHECKPOINT_ENTRY:
            self.around = json.loads(entry.raw or "{}")
        elif kind.startswith("content/"):
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

    def _make_parts(self, block: AnyBlock) -> Iterator[JsonDict]:
        if isinstance(block, ToolCall):
            self.names[block.tool_call_id] = block.name
            arguments = make_call_arguments(block, self.outgoing)
            call = {"id": block.tool_call_id, "name": block.name, "args": arguments}
            yield {"functionCall": call}
            return
        for text, is_thought in make_spoken_texts([block], self.outgoing):
            yield {"text": text, "thought": True} if is_thought else {"text": text}

    def _add_answer(self, message: OutgoingMessage) -> None:
        """Group the responses to the calls of one content in the next content."""
        parts: list[JsonDict] = []
        for result in message.blocks:
            assert isinstance(result, ToolResult)
            id = result.tool_call_id
            name = self.names.get(id, "unknown")
            response, media = make_response(result, id, name, self.outgoing)
            if media:
                response["parts"] = media
            parts.append({"functionResponse": response})
        match self.contents[-1:]:
            case [{"role": "user", "parts": [{"functionResponse": _}, *_]} as before]:
                before["parts"] += parts
            case _:
                self.contents.append({"role": "user", "parts": parts})


_ROLES = ("user", "model", "function")
_NATIVE_PARTS = ("executableCode", "codeExecutionResult")


def _is_history(value: Any) -> bool:
    match value.get("history") if isinstance(value, dict) else value:
        case [{"role": _, "parts": list()}, *_] as contents:
            return any(_is_content(content) for content in contents)
        case _:
            return False


def _is_content(content: Any) -> bool:
    match content:
        case {"role": "user" | "model", "parts": [dict(), *_]}:
            return True
        case _:
            return False


def _read_history(line: SourceLine, _stem: str) -> Iterator[ImportStep]:
    value = line.value
    contents = value["history"] if isinstance(value, dict) else value
    yield SessionStart(_make_key(contents, line))
    if isinstance(value, dict):
        yield from read_entry_steps(line, 0, _read_checkpoint, value, line)
    reader = _ContentReader(line)
    for number, content in enumerate(contents, 1):
        yield from read_entry_steps(line, number, reader.read, content)


def _read_checkpoint(entry: EntrySteps, checkpoint: JsonDict, line: SourceLine) -> None:
    raw = line.to_json(drop_fields(checkpoint, "history"))
    entry.add(RawEntry(f"{CHECKPOINT_ENTRY}:{digest_text(raw)}", CHECKPOINT_ENTRY, raw, line=0))


class _ContentReader:
    """The state of reading a history. Calls are paired by id, or else by name."""

    def __init__(self, line: SourceLine) -> None:
        self.line = line
        self.open: dict[str, list[str]] = {}
        """Calls without a response: their session ids, oldest first."""
        self.taken: set[str] = set()
        self.has_said = False

    def read(self, entry: EntrySteps, content: Any) -> None:
        role = require_field(require_object(content), "role", str)
        if role not in _ROLES:
            raise MalformedError(f"role: {role!r} is not known")
        parts = require_field(content, "parts", list)
        id = f"{entry.number}:{digest_text(self.line.to_json(content))}"
        pieces = EntryBlocks()
        for index, part in enumerate(parts):
            try:
                self._read_part(entry, pieces, require_object(part), role, index)
            except MalformedError as error:
                entry.add_problem(f"parts[{index}]: {error}", self.line.to_json(part))
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
        self, entry: EntrySteps, pieces: EntryBlocks, part: JsonDict, role: str, index: int
    ) -> None:
        """Add the block of a part, if it has one; the rest stays in the remainder."""
        at: JsonPath = ("parts", index)
        name = f"{entry.number}-{index}"
        match part:
            case {"functionCall": call}:
                self._read_call(pieces, require_object(call, "functionCall: "), at, name)
            case {"functionResponse": response}:
                told = require_object(response, "functionResponse: ")
                self._read_response(pieces, told, at, name)
            case {"text": _}:
                _read_text(pieces, part, role, at)
            case {"inlineData": _} | {"fileData": _} if role == "user":
                media = require_media_part(part)
                block = len(pieces.blocks)
                pieces.placeholders += make_media_placeholders(part, media, at, block=block)
                pieces.add(Block(kind=Kind(media.type), media=media))
            case _ if any(name in part for name in _NATIVE_PARTS):
                pieces.add_json(Block.note(self.line.to_json(part), name="code"), at)
            case {"thoughtSignature": _} if len(part) == 1:
                pass
            case _:
                entry.add_unknown("part/" + "+".join(sorted(part)), self.line.to_json(part))

    def _read_call(self, pieces: EntryBlocks, call: JsonDict, at: JsonPath, place: str) -> None:
        name = require_field(call, "name", str, "functionCall.")
        told = get_field(call, "id", str, "functionCall.") or None
        arguments = get_field(call, "args", dict, "functionCall.")
        known = told if told and told not in self.taken else f"{told or 'call'}-{place}"
        self.taken.add(known)
        self.open.setdefault(told or f"name:{name}", []).append(known)
        text = self.line.to_json(arguments or {})
        made = ToolCall(tool_call_id=known, name=name, arguments=text)
        pieces.add_json(made, None if arguments is None else (*at, "functionCall", "args"))

    def _read_response(
        self, pieces: EntryBlocks, response: JsonDict, at: JsonPath, place: str
    ) -> None:
        told = get_field(response, "id", str, "functionResponse.") or None
        name = require_field(response, "name", str, "functionResponse.")
        where, block = (*at, "functionResponse"), len(pieces.blocks)
        answer = read_function_response(response, where, self.line, block=block)
        waiting = self.open.get(told or f"name:{name}")
        # A response without a call is refused later, and kept as a note.
        known = waiting.pop(0) if waiting else told or f"response-{place}"
        said = make_result_content(answer.parts)
        pieces.placeholders += answer.holes
        pieces.add(ToolResult(tool_call_id=known, content=said, is_error=answer.is_error))


def _read_text(pieces: EntryBlocks, part: JsonDict, role: str, at: JsonPath) -> None:
    text = require_field(part, "text", str)
    if not text:
        return
    place = (*at, "text")
    if role == "model":
        make = Block.thinking if part.get("thought") is True else Block.assistant
        pieces.add(make(text), place)
    elif found := find_marked_summary(part, text):
        # Its mark stays in the remainder of the content.
        pieces.add(Block.developer(found.text, name="summary"))
    elif is_snapshot(text):
        pieces.add(Block.developer(text, name="summary"), place)
    else:
        pieces.add(Block(kind=classify_gemini_text(text), text=text), place)


def _make_key(contents: list[Any], line: SourceLine) -> str:
    """Return a key from the start of a history, which has no id, up to the model's first text.

    A checkpoint saved later under another name thus continues the same session.
    """
    begins: list[Any] = []
    for content in contents:
        begins.append(content)
        if isinstance(content, dict) and content.get("role") == "model":
            break
    told = line.to_json_or_none(begins)
    return f"gemini-{digest_text(told) if told else line.digest.removeprefix('line:')}"


FORMAT = make_document_format(
    FORMAT_NAME, "histories of the Gemini API", _is_history, _read_history, write
)
