"""Writes a session as Copilot CLI's events: its own as they came, others in their shape."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from .....domain.blocks import Block, Kind, Media, NativePart, ToolCall, ToolResult
from ..content.filling import filled
from ..content.media_text import base64_of
from ..content.moments import iso, said_at
from ..outgoing import Compacted, Entry, Message, Outgoing, Said
from ..reading.fields import Item
from ..summary_mark import mark_of
from ..writing import json_out
from ..writing.as_text import marked_text
from ..writing.own_entries import own_entries
from .events import NAME

VERSION = "1.0.0"


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """The session's events, one a line."""
    yield from map(json_out.line, Events(outgoing).all())


class Events:
    """The events of a session on its way out. Each names the one that was written before it."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.last: str | None = None
        self.written: set[str] = set()
        self.arguments: dict[str, Any] = {}
        self.system_prompt: str | None = None
        self.turns = 0

    def all(self) -> Iterator[Item]:
        own = self.outgoing.source == NAME and not self.outgoing.is_view
        if not own:
            yield from self._header()
        for one in own_entries(self.outgoing, NAME):
            if isinstance(one, Entry):
                yield from self._put(one)
            else:
                yield from self._made(one)

    def _put(self, entry: Entry) -> Iterator[Item]:
        """An event as it came. One that follows an event which was skipped follows the last."""
        if entry.raw is not None:
            event: Item = json.loads(entry.raw)
            self._complete(event)
        else:
            event = filled(entry.rest or {}, [said.block for said in entry.said])
        above = event.get("parentId")
        if above is not None and not (isinstance(above, str) and above in self.written):
            event["parentId"] = self.last
        match event.get("data"):
            case {"toolRequests": list(requests)}:
                for request in requests:
                    match request:
                        case {"toolCallId": str(call), "arguments": arguments}:
                            self.arguments[call] = arguments
                        case _:
                            pass
            case _:
                pass
        if isinstance(id := event.get("id"), str):
            self.last = id
            self.written.add(id)
        yield event

    def _complete(self, event: Item) -> None:
        """Put back what other events say as well."""
        data = event.get("data")
        match event:
            case {"type": "tool.execution_start", "data": {"toolCallId": str(call)}}:
                if call in self.arguments:
                    data.setdefault("arguments", self.arguments[call])  # type: ignore[union-attr]
            case {"type": "system.message", "data": {"content": str(text)}}:
                self.system_prompt = text
            case {"type": "system.message"} if isinstance(data, dict) and self.system_prompt:
                data.setdefault("content", self.system_prompt)
            case _:
                pass

    def _header(self) -> Iterator[Item]:
        opened = self.outgoing.opened
        start: Item = {
            "sessionId": _session_id(self.outgoing.key),
            "version": 1,
            "producer": "copilot-agent",
            "copilotVersion": VERSION,
            "startTime": iso(opened),
        }
        if model := self.outgoing.model:
            start["selectedModel"] = model
        yield self._event("session.start", start, opened, "start")
        if title := self.outgoing.title:
            yield self._event("session.title_changed", {"title": title}, opened, "title")
        if prompt := self.outgoing.system_prompt:
            told = {"role": "system", "content": prompt}
            yield self._event("system.message", told, opened, "system")

    def _made(self, message: Message | Compacted) -> Iterator[Item]:
        if isinstance(message, Compacted):
            yield from self._compaction(message)
        elif isinstance(message.said[0].block, ToolResult):
            for said in message.said:
                yield self._result(said)
        elif message.role == "assistant":
            yield from self._assistant(message)
        else:
            yield self._user(message)

    def _user(self, message: Message) -> Item:
        first = message.said[0]
        texts: list[str] = []
        attachments: list[Item] = []
        for block in message.blocks:
            if isinstance(block, Block) and block.media:
                attachments += self._attachment(block.media)
            else:
                texts.append(marked_text(block))
        data: Item = {"content": "\n\n".join(texts), "attachments": attachments}
        if first.block.kind is Kind.DEVELOPER:
            data["source"] = "system"
            data |= mark_of(first.block)
        return self._event("user.message", data, said_at(first), first.position)

    def _assistant(self, message: Message) -> Iterator[Item]:
        first, call = message.said[0], message.call
        turn = str(self.turns)
        self.turns += 1
        texts: list[str] = []
        thoughts: list[str] = []
        requests: list[Item] = []
        for block in message.blocks:
            match block:
                case ToolCall():
                    requests.append(_request(block))
                case Block(kind=Kind.THINKING):
                    thoughts += [block.text] if block.text else []
                    if block.native:
                        self.outgoing.lose("a provider's own reasoning items")
                case Block(text=text) if text:
                    texts.append(text)
                case _:
                    self.outgoing.lose("a provider's own items")
        id = self._id(first.position)
        data: Item = {"messageId": id, "content": "\n\n".join(texts), "toolRequests": requests}
        if thoughts:
            data["reasoningText"] = "\n\n".join(thoughts)
        if model := (call and call.model) or self.outgoing.model:
            data["model"] = model
        if call and call.usage and call.usage.output is not None:
            data["outputTokens"] = call.usage.output
            if call.usage.context is not None:
                self.outgoing.lose("token counts of prompts")
        at = said_at(first)
        begun = {"turnId": turn}
        yield self._event("assistant.turn_start", begun, at, f"{first.position}/start")
        yield self._event("assistant.message", data, at, first.position)
        for request in requests:
            started = {
                "toolCallId": request["toolCallId"],
                "toolName": request["name"],
                "arguments": request["arguments"],
            }
            place = f"{first.position}/{request['toolCallId']}"
            yield self._event("tool.execution_start", started, at, place)
        yield self._event("assistant.turn_end", begun, at, f"{first.position}/end")

    def _result(self, said: Said) -> Item:
        result = said.block
        assert isinstance(result, ToolResult)
        data: Item = {"toolCallId": result.tool_call_id, "success": not result.is_error}
        body: Item = {"content": result.text}
        images: list[Item] = []
        for part in () if isinstance(result.content, str) else result.content:
            if isinstance(part, NativePart):
                self.outgoing.lose("parts of tool results in a provider's own form")
            elif isinstance(part, Media) and part.type == "image" and part.data:
                encoded = base64_of(part.data)
                images.append({"type": "image", "mimeType": part.mime, "data": encoded})
            elif isinstance(part, Media):
                self.outgoing.lose("documents and linked images in tool results")
        if images:
            body["contents"] = images
        if result.is_error and not images:
            data["error"] = {"message": result.text, "code": "failure"}
        else:
            data["result"] = body
        return self._event("tool.execution_complete", data, said_at(said), said.position)

    def _compaction(self, compacted: Compacted) -> Iterator[Item]:
        boundary = compacted.boundary
        if compacted.summary is None:
            self.outgoing.lose("compactions without a summary")
            return
        if boundary.kept and not self.outgoing.is_view:
            self.outgoing.lose("what compactions kept word for word")
        data = {
            "success": True,
            "preCompactionTokens": boundary.pre_tokens,
            "postCompactionTokens": boundary.post_tokens,
            "trigger": str(boundary.trigger),
            "summaryContent": compacted.summary.text,
        }
        place = f"{boundary.after}/compacted"
        yield self._event("session.compaction_complete", data, compacted.time, place)

    def _attachment(self, media: Media) -> list[Item]:
        if not media.data:
            self.outgoing.lose("linked images and documents")
            return []
        data = base64_of(media.data)
        name = {"displayName": media.name} if media.name else {}
        return [{"type": "blob", "data": data, "mimeType": media.mime} | name]

    def _event(self, kind: str, data: Item, at: datetime, place: object) -> Item:
        id = self._id(place)
        event = {
            "type": kind,
            "data": data,
            "id": id,
            "timestamp": iso(at),
            "parentId": self.last,
        }
        self.last = id
        self.written.add(id)
        return event

    def _id(self, place: object) -> str:
        return str(uuid5(NAMESPACE_URL, f"{self.outgoing.key}/{place}"))


def _request(call: ToolCall) -> Item:
    arguments = call.parsed()
    is_object = "_raw" not in arguments
    return {
        "toolCallId": call.tool_call_id,
        "name": call.name,
        "arguments": arguments if is_object else call.arguments,
        "type": "function" if is_object else "custom",
    }


def _session_id(key: str) -> str:
    try:
        return str(UUID(key))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, key))
