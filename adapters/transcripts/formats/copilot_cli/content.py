"""What the events of a Copilot CLI session say, block by block."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, Origin, Text, ToolCall, ToolResult
from .....domain.session_events import Usage
from ..content import media_text
from ..content.holes import Hole, rest_of
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, take, take_optional
from .events import NAME


@dataclass
class Content:
    """The blocks of an event, and where in it their content stood."""

    event: Item
    line: Line
    id: str
    time: str | None
    follows: str | None
    message_id: str | None = None
    blocks: list[AnyBlock] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)

    def add(self, made: AnyBlock) -> int:
        """Add a block: its number."""
        origin = Origin(
            format=NAME,
            id=self.id,
            time=self.time,
            line=self.line.number,
            follows=self.follows if not self.blocks else None,
        )
        more = {"message_id": self.message_id, "origin": origin}
        self.blocks.append(made.model_copy(update=more))
        return len(self.blocks) - 1

    def whole(self) -> list[AnyBlock]:
        """The blocks; the first one tells the rest of the event."""
        if not self.blocks:
            return []
        first, *others = self.blocks
        assert first.origin, "every block that was added has one"
        origin = first.origin.model_copy(
            update={"entry": self.line.json(rest_of(self.event, self.holes))}
        )
        return [first.model_copy(update={"origin": origin}), *others]


def user_message(content: Content, data: Item, *, by_harness: bool) -> None:
    """What a person said: the model got `transformedContent` in its place."""
    said = take_optional(data, "content", str, "data.") or ""
    sent = take_optional(data, "transformedContent", str, "data.")
    text = sent or said
    if text:
        kind = Kind.DEVELOPER if by_harness else Kind.USER
        block = content.add(Block(kind=kind, text=text))
        if sent:
            content.holes.append(Hole(("data", "transformedContent"), block=block))
        if said and (at := text.find(said)) >= 0:
            span = (at, at + len(said))
            content.holes.append(Hole(("data", "content"), block=block, span=span))
    for index, file in enumerate(take_optional(data, "attachments", list, "data.") or []):
        media, field = _attached(file)
        if media is None:
            continue
        block = content.add(Block(kind=Kind(media.type), media=media, name=media.name))
        if media_text.is_spelt_so(media, file[field]):
            at_file = ("data", "attachments", index, field)
            content.holes.append(Hole(at_file, "base64", block=block))


def assistant_message(content: Content, data: Item, calls: Mapping[str, str]) -> dict[str, str]:
    """What a model said: the ids that its calls have in the source, and are known by.

    `calls` are those that wait for their results.
    """
    opened: dict[str, str] = {}
    thought = take_optional(data, "reasoningText", str, "data.")
    if thought:
        block = content.add(Block.thinking(thought))
        content.holes.append(Hole(("data", "reasoningText"), block=block))
    if text := take_optional(data, "content", str, "data."):
        block = content.add(Block.assistant(text))
        content.holes.append(Hole(("data", "content"), block=block))
    for index, request in enumerate(take_optional(data, "toolRequests", list, "data.") or []):
        within = f"data.toolRequests[{index}]"
        if not isinstance(request, dict):
            raise MalformedError(f"{within}: expected an object")
        id = take(request, "toolCallId", str, f"{within}.")
        name = take(request, "name", str, f"{within}.")
        if not id:
            raise MalformedError(f"{within}.toolCallId: expected an id, but it is empty")
        arguments = request.get("arguments", {})
        as_text = isinstance(arguments, str)
        known = f"{id}#{content.id}/{index}" if id in calls or id in opened else id
        told = arguments if as_text else content.line.json(arguments)
        block = content.add(ToolCall(tool_call_id=known, name=name, arguments=told))
        opened[id] = known
        if "arguments" in request:
            at = ("data", "toolRequests", index, "arguments")
            content.holes.append(Hole(at, "text" if as_text else "json", block=block))
    return opened


def tool_result(content: Content, data: Item, call: str) -> None:
    """What a tool answered: the model got `result.content`, or the error's message."""
    failed = take(data, "success", bool, "data.") is False
    result = take_optional(data, "result", dict, "data.")
    owner, field = (result, "content") if result else (data.get("error"), "message")
    name = "result" if result else "error"
    text = take_optional(owner, field, str, f"data.{name}.") if isinstance(owner, dict) else None
    parts: list[Text | Media] = [Text(text=text or "")]
    images: list[tuple[int, Media]] = []
    for index, item in enumerate(take_optional(result or {}, "contents", list, "data.") or []):
        match item:
            case {"type": "image", "data": str(data64), "mimeType": str(mime)}:
                images.append((index, Media(type="image", mime=mime, data=_bytes(data64))))
            case _:
                pass
    whole = (*parts, *(media for _, media in images))
    said = whole if images else text or ""
    block = content.add(ToolResult(tool_call_id=call, content=said, is_error=failed))
    if text is not None:
        content.holes.append(Hole(("data", name, field), part=0, block=block))
    if result and result.get("detailedContent") == text is not None:
        again = ("data", name, "detailedContent")
        content.holes.append(Hole(again, part=0, block=block))
    for place, (index, media) in enumerate(images, 1):
        if result and media_text.is_spelt_so(media, result["contents"][index]["data"]):
            at = ("data", name, "contents", index, "data")
            content.holes.append(Hole(at, "base64", place, block))


def usage_of(data: Item) -> Usage:
    """What is told of a call: mostly no more than what it wrote."""
    counts = {
        ours: take_optional(data, theirs, int, "data.")
        for ours, theirs in (
            ("cache_read", "cacheReadTokens"),
            ("cache_write", "cacheWriteTokens"),
            ("output", "outputTokens"),
            ("reasoning", "reasoningTokens"),
        )
    }
    read = take_optional(data, "inputTokens", int, "data.")
    if read is not None:
        cached = (counts["cache_read"] or 0) + (counts["cache_write"] or 0)
        counts["input"] = max(0, read - cached)
    return Usage(**counts)


def _attached(file: Any) -> tuple[Media | None, str]:
    """The bytes of an attachment that holds them; others lie beside the session, or nowhere."""
    match file:
        case {"type": "blob", "data": str(data), "mimeType": str(mime)}:
            name = file.get("displayName")
            named = name if isinstance(name, str) else None
            return Media(
                type=media_text.what_of(mime), mime=mime, data=_bytes(data), name=named
            ), "data"
        case _:
            return None, ""


def _bytes(base64: str) -> bytes:
    data = media_text.bytes_of(base64)
    if data is None:
        raise MalformedError("data: not base64")
    return data
