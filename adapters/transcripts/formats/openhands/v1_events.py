"""Makes events of the OpenHands SDK for what other agents, or cutbank itself, said."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from .....domain.blocks import (
    AnyBlock,
    Block,
    Kind,
    Media,
    NativePart,
    Text,
    ToolCall,
    ToolResult,
)
from .....domain.messages import Role
from ..content.media_text import address_of
from ..outgoing import Compacted, Message, Outgoing, Said
from ..summary_mark import mark_of
from ..writing.as_text import marked_text

Event = dict[str, Any]
Placed = tuple[Event, tuple[int, ...]]
"""An event, and the positions of the blocks that it says."""


class Made:
    """The events of one conversation in the making."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.actions: dict[str, tuple[str, str]] = {}
        """Each tool call's event and tool."""

    def message(self, message: Message) -> Iterator[Placed]:
        """A message as events: an action for each call, with what was said before it."""
        if message.role is Role.TOOL_RESULT:
            for said in message.said:
                yield self._observation(said)
            return
        response = self._response(message)
        pending: list[Said] = []
        for said in message.said:
            pending.append(said)
            if isinstance(said.block, ToolCall):
                yield self._action(said.block, pending, response)
                pending = []
        if pending:
            yield self._message(message.role, pending, response)

    def system(self, prompt: str, tools: list[Any]) -> Event:
        """What was asked beside the messages."""
        return {
            "kind": "SystemPromptEvent",
            "id": self._id("system"),
            "timestamp": _naive(self.outgoing.opened),
            "source": "agent",
            "system_prompt": _text(prompt),
            "tools": tools,
        }

    def condensation(self, part: Compacted, gone: list[str]) -> Event:
        """A compaction: the summary stands behind the system prompt."""
        prompted = self.outgoing.system_prompt is not None or bool(self.outgoing.tools)
        return {
            "kind": "Condensation",
            "id": self._id(f"compacted:{part.boundary.after}:{part.time.isoformat()}"),
            "timestamp": _naive(part.time),
            "source": "environment",
            "forgotten_event_ids": gone,
            "summary": part.summary.text if part.summary else None,
            "summary_offset": int(prompted),
            "llm_response_id": self._id(f"summary:{part.boundary.after}"),
        }

    def _message(self, role: Role, said: Sequence[Said], response: str) -> Placed:
        blocks = [one.block for one in said]
        speaker = {Role.ASSISTANT: "agent", Role.USER: "user"}.get(role, "environment")
        body = {
            "role": "assistant" if role is Role.ASSISTANT else "user",
            "content": self._content(blocks),
        } | self._thoughts(blocks)
        event = self._event("MessageEvent", said[0], speaker) | {
            "llm_message": body,
            "activated_skills": [],
            "extended_content": [],
        }
        if role is Role.ASSISTANT:
            event["llm_response_id"] = response
        return event, _positions(said)

    def _action(self, call: ToolCall, said: Sequence[Said], response: str) -> Placed:
        blocks = [one.block for one in said[:-1]]
        event = self._event("ActionEvent", said[-1], "agent")
        self.actions[call.tool_call_id] = event["id"], call.name
        return event | {
            "thought": self._content(blocks),
            **self._thoughts(blocks),
            # OpenHands leaves it empty where it cannot tell which of its tools was meant.
            "action": None,
            "tool_name": call.name,
            "tool_call_id": call.tool_call_id,
            "tool_call": {
                "id": call.tool_call_id,
                "name": call.name,
                "arguments": call.arguments,
                "origin": "completion",
            },
            "llm_response_id": response,
            "security_risk": "UNKNOWN",
        }, _positions(said)

    def _observation(self, said: Said) -> Placed:
        result = said.block
        assert isinstance(result, ToolResult), "a message of a tool"
        action, tool = self.actions.get(result.tool_call_id, (self._id("lost"), "unknown"))
        parts = (Text(text=result.content),) if isinstance(result.content, str) else result.content
        content = [item for part in parts for item in self._part(part)]
        event = self._event("ObservationEvent", said, "environment") | {
            "tool_name": tool,
            "tool_call_id": result.tool_call_id,
            "observation": {
                "kind": "MCPToolObservation",
                "content": content,
                "is_error": result.is_error,
                "tool_name": tool,
            },
            "action_id": action,
        }
        return event, _positions([said])

    def _content(self, blocks: Sequence[AnyBlock]) -> list[Event]:
        content: list[Event] = []
        for block in blocks:
            match block:
                case Block(kind=Kind.THINKING):
                    pass
                case Block(kind=Kind.IMAGE, media=Media() as media):
                    content.append(_image(media))
                case Block(kind=Kind.DOCUMENT):
                    self.outgoing.lose("documents")
                case Block() if block.text:
                    content.append(_text(marked_text(block)) | mark_of(block))
                case Block():
                    if block.native:
                        self.outgoing.lose("items that only their provider understands")
                case _:
                    pass
        return content

    def _thoughts(self, blocks: Sequence[AnyBlock]) -> Event:
        found: Event = {}
        for block in blocks:
            if not isinstance(block, Block) or block.kind is not Kind.THINKING:
                continue
            native = block.native
            if native and native.provider == "anthropic":
                found.setdefault("thinking_blocks", []).append(json.loads(native.item))
            elif native and native.provider == "openai-responses":
                if "responses_reasoning_item" in found:
                    self.outgoing.lose("further reasoning items of one message")
                found.setdefault("responses_reasoning_item", _reasoning(json.loads(native.item)))
            elif block.text:
                before = found.get("reasoning_content")
                found["reasoning_content"] = f"{before}\n\n{block.text}" if before else block.text
        return found

    def _part(self, part: Text | Media | NativePart) -> Iterator[Event]:
        match part:
            case Text():
                yield _text(part.text)
            case Media(type="image"):
                yield _image(part)
            case Media():
                self.outgoing.lose("documents in tool results")
            case NativePart():
                self.outgoing.lose("parts of tool results that only their provider understands")

    def _event(self, kind: str, said: Said, source: str) -> Event:
        return {
            "kind": kind,
            "id": self._id(f"#{said.position}"),
            "timestamp": time_of(said),
            "source": source,
        }

    def _response(self, message: Message) -> str:
        return message.call.call_id if message.call else self._id(f"r{message.said[0].position}")

    def _id(self, what: str) -> str:
        return str(uuid5(NAMESPACE_OID, f"{self.outgoing.key}:{what}"))


def time_of(said: Said) -> str:
    """When it was said, in the form of OpenHands: local, without a zone."""
    origin = said.block.origin
    if origin and origin.time:
        try:
            return _naive(datetime.fromisoformat(origin.time))
        except ValueError:
            pass  # other formats write their times in other ways: when it was recorded, then
    return _naive(said.time)


def _naive(time: datetime) -> str:
    plain = time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    return plain.isoformat(timespec="microseconds")


def _positions(said: Sequence[Said]) -> tuple[int, ...]:
    return tuple(one.position for one in said)


def _text(text: str) -> Event:
    return {"type": "text", "text": text}


def _image(media: Media) -> Event:
    return {"type": "image", "image_urls": [address_of(media)]}


def _reasoning(item: Event) -> Event:
    summary = [one["text"] for one in item.get("summary") or [] if "text" in one]
    return {
        "id": item.get("id"),
        "summary": summary,
        "encrypted_content": item.get("encrypted_content"),
    }
