"""Converts the parts of an opencode message."""

import json
from dataclasses import dataclass, field

from .....domain.blocks import Block, BlockKind, Media, Native, Text, ToolCall, ToolResult
from .....domain.session_events import Usage
from ..content import media_from_base64, media_kind_of, split_data_url
from ..entry_steps import EntrySteps
from ..fields import JsonDict, get_field, read_usage, require_field

FORMAT_NAME = "opencode"

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
    """Its parts with blocks."""

    @property
    def message_id(self) -> str:
        """The id that the pieces of one answer share."""
        return f"{self.id}#{self.step}" if self.step else self.id


def read_part_time(part: JsonDict) -> str | None:
    time = part.get("time")
    if time is None and isinstance(state := part.get("state"), dict):
        time = state.get("time")
    start = time.get("start") if isinstance(time, dict) else None
    return str(start) if isinstance(start, int) else None


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
    what = media_kind_of(mime)
    name = get_field(file, "filename", str)
    if mime.startswith("text/") or mime == "application/x-directory":
        return None
    if url.startswith(("http://", "https://")):
        return Media(type=what, mime=mime, url=url, name=name)
    held = split_data_url(url)
    return media_from_base64(held[1], mime, "url: ", name) if held else None


def make_file_block(part: JsonDict) -> Block | None:
    """Return an image or a document; None if no model was sent it."""
    media = read_file_media(part)
    return Block(kind=BlockKind(media.type), media=media, name=media.name) if media else None


def make_tool_call(entry: EntrySteps, call: str, message_id: str) -> ToolCall:
    state = require_field(entry.value, "state", dict)
    arguments = require_field(state, "input", dict, "state.")
    return ToolCall(
        tool_call_id=call,
        name=require_field(entry.value, "tool", str),
        arguments=entry.line.to_json(arguments),
        message_id=message_id,
    )


def make_tool_result(part: JsonDict, call: str) -> ToolResult:
    state: JsonDict = part["state"]
    failed = state["status"] == "error"
    output = require_field(state, "error" if failed else "output", str, "state.")
    files = get_field(state, "attachments", list, "state.") or []
    attached = [read_file_media(file) for file in files if isinstance(file, dict)]
    content = (Text(text=output), *(media for media in attached if media))
    return ToolResult(
        tool_call_id=call, content=content if len(content) > 1 else output, is_error=failed
    )


def read_opencode_usage(owner: JsonDict) -> Usage | None:
    """Return the tokens of a step or of a message. Their output excludes reasoning."""
    tokens = get_field(owner, "tokens", dict)
    if tokens is None:
        return None
    return read_usage(
        tokens,
        "tokens.",
        is_reasoning_apart=True,
        input="input",
        cache_read="cache.read",
        cache_write="cache.write",
        output="output",
        reasoning="reasoning",
    )
