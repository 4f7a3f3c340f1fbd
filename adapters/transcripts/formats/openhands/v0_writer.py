"""Writes a session in the older format of OpenHands: a list of actions and observations."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .....domain.blocks import AnyBlock, Block, Media, Text, ToolCall, ToolResult
from .....domain.messages import Role
from ..chat_content import make_call_items, split_thoughts
from ..content_items import list_result_parts, make_content_items
from ..fields import JsonDict
from ..media_text import make_media_address
from ..outgoing import (
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    read_entry_type,
)
from .call_usage import make_usage_report
from .event_writer import EventOfBlocks, EventWriter, format_local_time, format_origin_time
from .v0_content import METADATA_FIELD
from .v0_reader import FORMAT_NAME, LINE_ENTRY


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    """Yield the list of events, or the original line if the session was one."""
    session = _V0EventWriter(outgoing, FORMAT_NAME)
    events = list(session.write_events())
    whole = {**session.line, "history": events} if session.line is not None else events
    yield json.dumps(whole, ensure_ascii=False).encode(errors="replace") + b"\n"


class _V0EventWriter(EventWriter):
    line: JsonDict | None = None
    """The original fields around the events."""
    next_id = 0

    def __init__(self, outgoing: OutgoingSession, own: str) -> None:
        super().__init__(outgoing, own)
        self.causes: dict[str, tuple[int, JsonDict]] = {}
        """The event of each call, and its metadata."""

    def restore_event(self, entry: OutgoingEntry) -> JsonDict | None:
        if read_entry_type(entry) == LINE_ENTRY and entry.remainder is None:
            self.line = json.loads(entry.raw or "{}")
            return None
        event = self.restorer.restore(entry)
        if not isinstance(event, dict):
            return None
        self.is_prompted |= event.get("action") == "system"
        id = event.get("id")
        if type(id) is int:
            self.next_id = max(self.next_id, id + 1)
            if entry.remainder is not None:
                self.shown[id] = entry.outgoing_blocks
            for said in entry.outgoing_blocks:
                if isinstance(said.block, ToolCall):
                    self.causes[said.block.tool_call_id] = id, event.get(METADATA_FIELD) or {}
        return event

    def _make_event(self, source: str, message: str, time: str, **more: Any) -> JsonDict:
        id, self.next_id = self.next_id, self.next_id + 1
        return {"id": id, "timestamp": time, "source": source, "message": message, **more}

    def make_prompt(self, prompt: str, tools: list[Any], time: str) -> JsonDict:
        about = {"openhands_version": None, "agent_class": "CodeActAgent"}
        args = {"content": prompt, "tools": tools, **about}
        return self._make_event("agent", prompt, time, action="system", args=args)

    def make_condensation(self, part: OutgoingCompaction, details: JsonDict) -> JsonDict:
        span = {"forgotten_events_start_id": None, "forgotten_events_end_id": None}
        args = {"forgotten_event_ids": details["forgotten_event_ids"], **span, **details}
        time = format_local_time(part.time)
        return self._make_event("agent", "", time, action="condensation", args=args)

    def make_events(self, message: OutgoingMessage) -> Iterator[EventOfBlocks]:
        said = message.outgoing_blocks
        match message.role:
            case Role.TOOL_RESULT:
                for one in said:
                    yield self._make_observation(one), [one]
            case Role.DEVELOPER:
                for one in said:
                    yield self._make_recall(one), [one]
            case Role.ASSISTANT if any(isinstance(one.block, ToolCall) for one in said):
                yield from self._make_calls(message)
            case role:
                text, images = self._make_content(message.blocks)
                source = "agent" if role is Role.ASSISTANT else "user"
                args = {"content": text, "image_urls": images or None, "wait_for_response": False}
                time = format_origin_time(said[0])
                yield self._make_event(source, text, time, action="message", args=args), said

    def _make_recall(self, said: OutgoingBlock) -> JsonDict:
        # The only place for the program's text is a recall observation.
        name = said.block.name if isinstance(said.block, Block) else None
        known = {"name": name or "", "trigger": "", "content": said.block.text}
        title = "Added microagent knowledge"
        return self._make_event(
            "environment",
            title,
            format_origin_time(said),
            observation="recall",
            content=title,
            extras={"recall_type": "knowledge", "microagent_knowledge": [known]},
        )

    def _make_calls(self, message: OutgoingMessage) -> Iterator[EventOfBlocks]:
        response = self._make_response(message)
        thought = response["choices"][0]["message"]["content"] or ""
        said = [one for one in message.outgoing_blocks if not isinstance(one.block, ToolCall)]
        calls = [one for one in message.outgoing_blocks if isinstance(one.block, ToolCall)]
        for one in calls:
            call = one.block
            assert isinstance(call, ToolCall), "only calls were taken"
            metadata = {
                "function_name": call.name,
                "tool_call_id": call.tool_call_id,
                "model_response": response,
                "total_calls_in_response": len(calls),
            }
            asked = {"name": call.name, "arguments": call.parse_arguments(), "thought": thought}
            event = self._make_event(
                "agent",
                f"Calling {call.name}",
                format_origin_time(one),
                action="call_tool_mcp",
                tool_call_metadata=metadata,
                args=asked,
            )
            self.causes[call.tool_call_id] = event["id"], metadata
            yield event, [*said, one]
            said, thought = [], ""

    def _make_response(self, message: OutgoingMessage) -> JsonDict:
        blocks = message.blocks
        text, images = self._make_content(blocks)
        if images:
            self.outgoing.count_loss("images in the model's messages", len(images))
        call = message.call
        made = f"{self.outgoing.key}:{message.outgoing_blocks[0].position}"
        answer: JsonDict = {
            "role": "assistant",
            "content": text or None,
            "tool_calls": make_call_items(blocks),
        }
        signed, plain = split_thoughts(blocks, self.outgoing)
        if signed:
            answer["thinking_blocks"] = signed
        if plain:
            answer["reasoning_content"] = "\n\n".join(plain)
        reason = (call.stop_reason if call else None) or "tool_calls"
        return {
            "id": call.call_id if call else made,
            "object": "chat.completion",
            "created": 0,
            "model": (call.model if call else None) or self.outgoing.model or "unknown",
            "choices": [{"index": 0, "finish_reason": reason, "message": answer}],
            "usage": make_usage_report(call.usage) if call and call.usage else None,
        }

    def _make_observation(self, said: OutgoingBlock) -> JsonDict:
        result = said.block
        assert isinstance(result, ToolResult), "a message of a tool"
        cause, metadata = self.causes.get(result.tool_call_id, (None, {}))
        texts: list[str] = []
        images: list[str] = []
        for part in list_result_parts(result):
            match part:
                case Text():
                    texts.append(part.text)
                case Media(type="image"):
                    images.append(make_media_address(part))
                case _:
                    lost = "parts of tool results that are neither text nor images"
                    self.outgoing.count_loss(lost)
        return self._make_event(
            "agent",
            "",
            format_origin_time(said),
            cause=cause,
            observation="error" if result.is_error else "mcp",
            tool_call_metadata=metadata,
            content="\n".join(texts),
            extras={"image_urls": images} if images else {},
        )

    def _make_content(self, blocks: Sequence[AnyBlock]) -> tuple[str, list[str]]:
        items = make_content_items(
            blocks, self.outgoing, lambda media: {"image": make_media_address(media)}
        )
        texts = [item["text"] for item in items if "text" in item]
        images = [item["image"] for item in items if "image" in item]
        return "\n\n".join(texts), images
