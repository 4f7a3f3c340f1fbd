"""Converts the parts of an opencode message."""

import json
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import Block, Kind, Media, Native, Origin, Text, ToolCall, ToolResult
from .....domain.event import MAX_COUNT
from .....domain.session_events import Usage
from .. import media_text
from ..entry_steps import EntrySteps
from ..fields import JsonDict, drop_fields, get_field, require_field
from ..json_lines import SourceLine
from ..placeholders import JsonPath, Placeholder, make_remainder

FORMAT_NAME = "opencode"

OPENCODE_SESSION_ENTRY = "session"
"""The type of the note that holds the document without its messages."""
OPENCODE_MESSAGE_PREFIX = "message/"
"""The type prefix of a note that holds a message without its parts; its role follows."""
PART_PREFIX = "part/"
PRUNED_TEXT = "pruned"
"""The type of the note with the time at which a result left the context."""

ANTHROPIC = "anthropic"
RESPONSES = "openai-responses"


@dataclass(slots=True)
class OpencodeMessage:
    id: str
    index: int
    info: JsonDict = field(default_factory=dict)
    role: str | None = None
    step: int = 0
    summary: list[str] | None = None
    """The texts of a message that is the summary of a compaction."""
    part_ids: list[str] = field(default_factory=list)

    @property
    def message_id(self) -> str:
        """The id that the pieces of one answer share."""
        return f"{self.id}#{self.step}" if self.step else self.id


@dataclass(frozen=True, slots=True)
class OpencodePart:
    item: JsonDict
    id: str
    entry: EntrySteps
    line: SourceLine
    message: OpencodeMessage

    def make_origin(self, holes: list[Placeholder], entry: JsonDict | None = None) -> Origin:
        """Return the origin of a block, with the remainder of the part, or of `entry` in it."""
        time = self.item.get("time")
        if time is None and isinstance(state := self.item.get("state"), dict):
            time = state.get("time")
        start = time.get("start") if isinstance(time, dict) else None
        told = str(start) if isinstance(start, int) else None
        rest = self.line.to_json(make_remainder(self.item if entry is None else entry, holes))
        return Origin(format=FORMAT_NAME, id=self.id, time=told, entry=rest, line=self.entry.number)


def read_thought_native(part: JsonDict, text: str) -> Native | None:
    """Return the provider's data of a thought, which opencode keeps in `metadata`."""
    match part.get("metadata"):
        case {"anthropic": {"signature": str(signature)}}:
            item = {"type": "thinking", "thinking": text, "signature": signature}
            return Native(provider=ANTHROPIC, item=json.dumps(item, ensure_ascii=False))
        case {"anthropic": {"redactedData": str(data)}}:
            redacted = {"type": "redacted_thinking", "data": data}
            return Native(provider=ANTHROPIC, item=json.dumps(redacted))
        case {"openai": {"itemId": str(id), "reasoningEncryptedContent": str(encrypted)}}:
            summary = [{"type": "summary_text", "text": text}] if text else []
            reasoning = {"type": "reasoning", "id": id, "summary": summary}
            sealed = reasoning | {"encrypted_content": encrypted}
            return Native(provider=RESPONSES, item=json.dumps(sealed, ensure_ascii=False))
        case _:
            return None


def read_file_media(file: JsonDict) -> Media | None:
    """Return the media of a file part.

    Return None if no model was sent any: text files are sent as text parts.
    """
    mime, url = require_field(file, "mime", str), require_field(file, "url", str)
    what = media_text.media_kind_of(mime)
    name = get_field(file, "filename", str)
    if mime.startswith("text/") or mime == "application/x-directory":
        return None
    if url.startswith(("http://", "https://")):
        return Media(type=what, mime=mime, url=url, name=name)
    held = media_text.split_data_url(url)
    if held is None:
        return None
    raw = media_text.require_base64(held[1], "url: ")
    return Media(type=what, mime=mime, data=raw, name=name)


def make_file_block(part: OpencodePart) -> Block | None:
    """Return an image or a document; None if no model was sent it."""
    media = read_file_media(part.item)
    if media is None:
        return None
    origin = part.make_origin(_make_placeholders(media, part.item["url"], ("url",)))
    return Block(kind=Kind(media.type), media=media, name=media.name, origin=origin)


def make_tool_call(part: OpencodePart, call: str) -> ToolCall:
    """Return the call of a tool part. Its remainder is the part without its result."""
    state = require_field(part.item, "state", dict)
    arguments = require_field(state, "input", dict, "state.")
    done = state.get("status") in ("completed", "error")
    entry = part.item | {"state": {"input": arguments} if done else state}
    return ToolCall(
        tool_call_id=call,
        name=require_field(part.item, "tool", str),
        arguments=part.line.to_json(arguments),
        message_id=part.message.message_id,
        origin=part.make_origin([Placeholder(("state", "input"), "json")], entry),
    )


def make_tool_result(part: OpencodePart, call: str) -> ToolResult:
    """Return the result of a tool part. Its remainder is the part's state without the input."""
    told: JsonDict = part.item["state"]
    state: JsonDict = drop_fields(told, "input")
    failed = state["status"] == "error"
    field = "error" if failed else "output"
    output = require_field(state, field, str, "state.")
    if isinstance(times := state.get("time"), dict) and "compacted" in times:
        state["time"] = drop_fields(times, "compacted")
    holes = [Placeholder(("state", field), part=0)]
    match state.get("metadata"):
        case {"output": str(again)} if again == output:
            holes.append(Placeholder(("state", "metadata", "output"), part=0))
    content: list[Text | Media] = [Text(text=output)]
    for index, file in enumerate(get_field(state, "attachments", list, "state.") or []):
        media = read_file_media(file) if isinstance(file, dict) else None
        if media is None:
            continue
        holes += _make_placeholders(
            media, file["url"], ("state", "attachments", index, "url"), len(content)
        )
        content.append(media)
    return ToolResult(
        tool_call_id=call,
        content=tuple(content) if len(content) > 1 else output,
        is_error=failed,
        origin=part.make_origin(holes, {"state": state}),
    )


def read_pruned_time(part: JsonDict) -> Any:
    """Return when opencode removed the result from the context; None if it did not."""
    match part["state"]:
        case {"time": {"compacted": time}}:
            return time
        case _:
            return None


def read_opencode_usage(owner: JsonDict) -> Usage | None:
    """Return the tokens of a step or of a message. Their output excludes reasoning."""
    tokens = get_field(owner, "tokens", dict)
    if tokens is None:
        return None
    cache = get_field(tokens, "cache", dict, "tokens.") or {}
    read, output, reasoning = (
        get_field(tokens, name, int, "tokens.") for name in ("input", "output", "reasoning")
    )
    return Usage(
        input=read,
        cache_read=get_field(cache, "read", int, "tokens.cache."),
        cache_write=get_field(cache, "write", int, "tokens.cache."),
        output=None if output is None else output + (reasoning or 0),
        reasoning=reasoning,
    )


def read_cost(owner: JsonDict) -> float | None:
    match owner.get("cost"):
        case bool():
            return None
        case int(cost) | float(cost) if 0 <= cost <= MAX_COUNT:
            return float(cost)
        case _:
            return None


def _make_placeholders(
    media: Media, url: str, at: JsonPath, part: int | None = None
) -> list[Placeholder]:
    """Return the place of a URL, if encoding the bytes gives the same one."""
    is_same = bool(media.data) and media_text.make_media_address(media) == url
    return [Placeholder(at, "address", part)] if is_same else []
