"""What a part of an opencode message becomes."""

import json
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import Block, Kind, Media, Native, Origin, Text, ToolCall, ToolResult
from .....domain.record import LARGEST
from .....domain.session_events import Usage
from ..content import media_text
from ..content.holes import At, Hole, rest_of
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, take, take_optional
from .names import ANTHROPIC, NAME, RESPONSES


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message, and where it stands."""

    item: Item
    id: str
    number: int
    """Which entry of the document it is."""
    line: Line

    def origin(self, holes: list[Hole], entry: Item | None = None) -> Origin:
        """Whence a block of it is, with what no block says of the part, or of `entry` in it."""
        time = self.item.get("time")
        if time is None and isinstance(state := self.item.get("state"), dict):
            time = state.get("time")
        start = time.get("start") if isinstance(time, dict) else None
        told = str(start) if isinstance(start, int) else None
        rest = self.line.json(rest_of(self.item if entry is None else entry, holes))
        return Origin(format=NAME, id=self.id, time=told, entry=rest, line=self.number)


def thinking_native(part: Item, text: str) -> Native | None:
    """What the provider must get back of a thought; what opencode keeps of it is in `metadata`."""
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


def media_of(file: Item) -> Media | None:
    """The bytes of a file part, or where they are.

    None where no model was sent any: text files are sent as text parts of their own.
    """
    mime, url = take(file, "mime", str), take(file, "url", str)
    what = media_text.what_of(mime)
    name = take_optional(file, "filename", str)
    if mime.startswith("text/") or mime == "application/x-directory":
        return None
    if url.startswith(("http://", "https://")):
        return Media(type=what, mime=mime, url=url, name=name)
    held = media_text.in_address(url)
    if held is None:
        return None
    raw = media_text.bytes_of(held[1])
    if raw is None:
        raise MalformedError("url: not base64")
    return Media(type=what, mime=mime, data=raw, name=name)


def file_block(part: Part) -> Block | None:
    """An image or a document; None where no model was sent it."""
    media = media_of(part.item)
    if media is None:
        return None
    origin = part.origin(_holes(media, part.item["url"], ("url",)))
    return Block(kind=Kind(media.type), media=media, name=media.name, origin=origin)


def tool_call(part: Part, call: str, message: str) -> ToolCall:
    """The call that a tool part holds. Its rest is the part without what its result says."""
    state = take(part.item, "state", dict)
    arguments = take(state, "input", dict, "state.")
    done = state.get("status") in ("completed", "error")
    entry = part.item | {"state": {"input": arguments} if done else state}
    return ToolCall(
        tool_call_id=call,
        name=take(part.item, "tool", str),
        arguments=part.line.json(arguments),
        message_id=message,
        origin=part.origin([Hole(("state", "input"), "json")], entry),
    )


def tool_result(part: Part, call: str) -> ToolResult:
    """The result that a tool part holds. Its rest is the part's state without the input."""
    told: Item = part.item["state"]
    state: Item = {name: value for name, value in told.items() if name != "input"}
    failed = state["status"] == "error"
    field = "error" if failed else "output"
    output = take(state, field, str, "state.")
    if isinstance(times := state.get("time"), dict) and "compacted" in times:
        state["time"] = {name: time for name, time in times.items() if name != "compacted"}
    holes = [Hole(("state", field), part=0)]
    match state.get("metadata"):
        case {"output": str(again)} if again == output:
            holes.append(Hole(("state", "metadata", "output"), part=0))
        case _:
            pass
    content: list[Text | Media] = [Text(text=output)]
    for index, file in enumerate(take_optional(state, "attachments", list, "state.") or []):
        media = media_of(file) if isinstance(file, dict) else None
        if media is None:
            continue
        holes += _holes(media, file["url"], ("state", "attachments", index, "url"), len(content))
        content.append(media)
    return ToolResult(
        tool_call_id=call,
        content=tuple(content) if len(content) > 1 else output,
        is_error=failed,
        origin=part.origin(holes, {"state": state}),
    )


def pruned_at(part: Item) -> Any:
    """When opencode took the result out of the context; None where it did not."""
    match part["state"]:
        case {"time": {"compacted": time}}:
            return time
        case _:
            return None


def usage_of(owner: Item) -> Usage | None:
    """The tokens of a step or of a message. Their output is told without the reasoning."""
    tokens = take_optional(owner, "tokens", dict)
    if tokens is None:
        return None
    cache = take_optional(tokens, "cache", dict, "tokens.") or {}
    output = _count(tokens, "output", "tokens.")
    reasoning = _count(tokens, "reasoning", "tokens.")
    return Usage(
        input=_count(tokens, "input", "tokens."),
        cache_read=_count(cache, "read", "tokens.cache."),
        cache_write=_count(cache, "write", "tokens.cache."),
        output=None if output is None else output + (reasoning or 0),
        reasoning=reasoning,
    )


def cost_of(owner: Item) -> float | None:
    """What a step cost, in dollars."""
    match owner.get("cost"):
        case bool():
            return None
        case int(cost) | float(cost) if 0 <= cost <= LARGEST:
            return float(cost)
        case _:
            return None


def _count(owner: Item, field: str, within: str) -> int | None:
    return take_optional(owner, field, int, within)


def _holes(media: Media, url: str, at: At, part: int | None = None) -> list[Hole]:
    """The place of an address, where the bytes give the same one again."""
    is_same = bool(media.data) and media_text.address_of(media) == url
    return [Hole(at, "address", part)] if is_same else []
