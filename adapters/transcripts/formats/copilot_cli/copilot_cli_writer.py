"""Writes a session as Copilot CLI events: own events unchanged, others converted."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .....domain.blocks import Block, Kind, Media, NativePart, ToolCall, ToolResult
from .. import json_lines
from ..fields import JsonDict
from ..media_text import bytes_to_base64
from ..outgoing import (
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    get_block_time,
    group_own_entries,
    make_session_uuid,
    to_iso,
)
from ..placeholders import fill_entry
from ..summary_mark import make_marked_text, make_summary_mark
from .event_content import FORMAT_NAME

COPILOT_VERSION = "1.0.0"


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    yield from map(json_lines.encode_line, CopilotEventWriter(outgoing).write_events())


class CopilotEventWriter:
    """The events of an exported session. Each names the one that was written before it."""

    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.last: str | None = None
        self.written: set[str] = set()
        self.arguments: dict[str, Any] = {}
        self.system_prompt: str | None = None
        self.turns = 0

    def write_events(self) -> Iterator[JsonDict]:
        if self.outgoing.source != FORMAT_NAME or self.outgoing.is_view:
            yield from self._make_header()
        for one in group_own_entries(self.outgoing, FORMAT_NAME):
            if isinstance(one, OutgoingEntry):
                yield from self._restore_event(one)
            else:
                yield from self._make_events(one)

    def _restore_event(self, entry: OutgoingEntry) -> Iterator[JsonDict]:
        """Restore an event. If its parent was skipped, it follows the last event."""
        if entry.raw is not None:
            event: JsonDict = json.loads(entry.raw)
            self._restore_repeats(event)
        else:
            event = fill_entry(
                entry.remainder or {}, [said.block for said in entry.outgoing_blocks]
            )
        above = event.get("parentId")
        if above is not None and not (isinstance(above, str) and above in self.written):
            event["parentId"] = self.last
        match event.get("data"):
            case {"toolRequests": list(requests)}:
                for request in requests:
                    match request:
                        case {"toolCallId": str(call), "arguments": arguments}:
                            self.arguments[call] = arguments
        if isinstance(id := event.get("id"), str):
            self.last = id
            self.written.add(id)
        yield event

    def _restore_repeats(self, event: JsonDict) -> None:
        """Restore the fields that repeat other events."""
        data = event.get("data")
        match event:
            case {"type": "tool.execution_start", "data": {"toolCallId": str(call)}}:
                if call in self.arguments:
                    data.setdefault("arguments", self.arguments[call])  # type: ignore[union-attr]
            case {"type": "system.message", "data": {"content": str(text)}}:
                self.system_prompt = text
            case {"type": "system.message"} if isinstance(data, dict) and self.system_prompt:
                data.setdefault("content", self.system_prompt)

    def _make_header(self) -> Iterator[JsonDict]:
        opened = self.outgoing.opened_at
        start: JsonDict = {
            "sessionId": make_session_uuid(self.outgoing.key),
            "version": 1,
            "producer": "copilot-agent",
            "copilotVersion": COPILOT_VERSION,
            "startTime": to_iso(opened),
        }
        if model := self.outgoing.model:
            start["selectedModel"] = model
        yield self._make_event("session.start", start, opened, "start")
        if title := self.outgoing.title:
            yield self._make_event("session.title_changed", {"title": title}, opened, "title")
        if prompt := self.outgoing.system_prompt:
            told = {"role": "system", "content": prompt}
            yield self._make_event("system.message", told, opened, "system")

    def _make_events(self, message: OutgoingMessage | OutgoingCompaction) -> Iterator[JsonDict]:
        if isinstance(message, OutgoingCompaction):
            yield from self._make_compaction_events(message)
        elif isinstance(message.outgoing_blocks[0].block, ToolResult):
            for said in message.outgoing_blocks:
                yield self._make_result_event(said)
        elif message.role == "assistant":
            yield from self._make_assistant_events(message)
        else:
            yield self._make_user_event(message)

    def _make_user_event(self, message: OutgoingMessage) -> JsonDict:
        first = message.outgoing_blocks[0]
        texts: list[str] = []
        attachments: list[JsonDict] = []
        for block in message.blocks:
            if isinstance(block, Block) and block.media:
                attachments += self._make_attachments(block.media)
            else:
                texts.append(make_marked_text(block))
        data: JsonDict = {"content": "\n\n".join(texts), "attachments": attachments}
        if first.block.kind is Kind.DEVELOPER:
            data["source"] = "system"
            data |= make_summary_mark(first.block)
        return self._make_event("user.message", data, get_block_time(first), first.position)

    def _make_assistant_events(self, message: OutgoingMessage) -> Iterator[JsonDict]:
        first, call = message.outgoing_blocks[0], message.call
        turn = str(self.turns)
        self.turns += 1
        texts: list[str] = []
        thoughts: list[str] = []
        requests: list[JsonDict] = []
        for block in message.blocks:
            match block:
                case ToolCall():
                    requests.append(_make_tool_request(block))
                case Block(kind=Kind.THINKING):
                    thoughts += [block.text] if block.text else []
                    if block.native:
                        self.outgoing.count_loss("a provider's own reasoning items")
                case Block(text=text) if text:
                    texts.append(text)
                case _:
                    self.outgoing.count_loss("a provider's own items")
        id = self._make_id(first.position)
        data: JsonDict = {"messageId": id, "content": "\n\n".join(texts), "toolRequests": requests}
        if thoughts:
            data["reasoningText"] = "\n\n".join(thoughts)
        if model := (call and call.model) or self.outgoing.model:
            data["model"] = model
        if call and call.usage and call.usage.output is not None:
            data["outputTokens"] = call.usage.output
            if call.usage.context is not None:
                self.outgoing.count_loss("token counts of prompts")
        at = get_block_time(first)
        begun = {"turnId": turn}
        yield self._make_event("assistant.turn_start", begun, at, f"{first.position}/start")
        yield self._make_event("assistant.message", data, at, first.position)
        for request in requests:
            call = request["toolCallId"]
            started = {"toolCallId": call, "toolName": request["name"]}
            started["arguments"] = request["arguments"]
            place = f"{first.position}/{call}"
            yield self._make_event("tool.execution_start", started, at, place)
        yield self._make_event("assistant.turn_end", begun, at, f"{first.position}/end")

    def _make_result_event(self, said: OutgoingBlock) -> JsonDict:
        result = said.block
        assert isinstance(result, ToolResult)
        data: JsonDict = {"toolCallId": result.tool_call_id, "success": not result.is_error}
        body: JsonDict = {"content": result.text}
        images: list[JsonDict] = []
        for part in () if isinstance(result.content, str) else result.content:
            if isinstance(part, NativePart):
                self.outgoing.count_loss("parts of tool results in a provider's own form")
            elif isinstance(part, Media) and part.type == "image" and part.data:
                encoded = bytes_to_base64(part.data)
                images.append({"type": "image", "mimeType": part.mime, "data": encoded})
            elif isinstance(part, Media):
                self.outgoing.count_loss("documents and linked images in tool results")
        if images:
            body["contents"] = images
        if result.is_error and not images:
            data["error"] = {"message": result.text, "code": "failure"}
        else:
            data["result"] = body
        return self._make_event(
            "tool.execution_complete", data, get_block_time(said), said.position
        )

    def _make_compaction_events(self, compacted: OutgoingCompaction) -> Iterator[JsonDict]:
        boundary = compacted.boundary
        if compacted.summary is None:
            self.outgoing.count_loss("compactions without a summary")
            return
        if boundary.kept and not self.outgoing.is_view:
            self.outgoing.count_loss("what compactions kept word for word")
        data = {
            "success": True,
            "preCompactionTokens": boundary.pre_tokens,
            "postCompactionTokens": boundary.post_tokens,
            "trigger": str(boundary.trigger),
            "summaryContent": compacted.summary.text,
        }
        place = f"{boundary.after}/compacted"
        yield self._make_event("session.compaction_complete", data, compacted.time, place)

    def _make_attachments(self, media: Media) -> list[JsonDict]:
        if not media.data:
            self.outgoing.count_loss("linked images and documents")
            return []
        data = bytes_to_base64(media.data)
        name = {"displayName": media.name} if media.name else {}
        return [{"type": "blob", "data": data, "mimeType": media.mime} | name]

    def _make_event(self, kind: str, data: JsonDict, at: datetime, place: object) -> JsonDict:
        id, above = self._make_id(place), self.last
        self.last = id
        self.written.add(id)
        event = {"type": kind, "data": data, "id": id, "timestamp": to_iso(at)}
        return event | {"parentId": above}

    def _make_id(self, place: object) -> str:
        return str(uuid5(NAMESPACE_URL, f"{self.outgoing.key}/{place}"))


def _make_tool_request(call: ToolCall) -> JsonDict:
    arguments = call.parse_arguments()
    is_object = "_raw" not in arguments
    return {
        "toolCallId": call.tool_call_id,
        "name": call.name,
        "arguments": arguments if is_object else call.arguments,
        "type": "function" if is_object else "custom",
    }
