"""Writes a session as the folder of an OpenHands conversation."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import NAMESPACE_OID, UUID, uuid5

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, Text, ToolCall, ToolResult
from .....domain.messages import Role
from ..fields import JsonDict
from ..media_text import make_media_address
from ..outgoing import (
    EntryRestorer,
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    group_own_entries,
    read_entry_type,
)
from ..summary_mark import make_marked_text, make_summary_mark
from .call_usage import make_usage_report
from .v1_reader import FORMAT_NAME, STATE_FILE_NAMES

_Id = TypeVar("_Id")
PlacedEvent = tuple[JsonDict, tuple[int, ...]]


def format_local_time(said: OutgoingBlock) -> str:
    """Return the block's time in OpenHands' form: local, without a zone."""
    origin = said.block.origin
    if origin and origin.time:
        try:
            return _local_time(datetime.fromisoformat(origin.time))
        except ValueError:
            pass  # another format's notation: use the time of recording
    return _local_time(said.time)


def forget_events(
    shown: dict[_Id, tuple[int, ...]], part: OutgoingCompaction, outgoing: OutgoingSession
) -> list[_Id]:
    """Remove the events that a compaction did not keep, and return their ids."""
    boundary = part.boundary
    gone = [
        id
        for id, positions in shown.items()
        if not any(position in boundary.kept for position in positions)
    ]
    for id in gone:
        del shown[id]
    if changed := len(boundary.trims) + len(boundary.replacements):
        outgoing.count_loss("blocks that are shown shortened", changed)
    return gone


def _local_time(time: datetime) -> str:
    plain = time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    return plain.isoformat(timespec="microseconds")


def _list_positions(said: Sequence[OutgoingBlock]) -> tuple[int, ...]:
    return tuple(one.position for one in said)


def _make_text(text: str) -> JsonDict:
    return {"type": "text", "text": text}


def _make_image(media: Media) -> JsonDict:
    return {"type": "image", "image_urls": [make_media_address(media)]}


def _make_reasoning(item: JsonDict) -> JsonDict:
    summary = [one["text"] for one in item.get("summary") or [] if "text" in one]
    return {
        "id": item.get("id"),
        "summary": summary,
        "encrypted_content": item.get("encrypted_content"),
    }


def write_folder(outgoing: OutgoingSession) -> Iterator[tuple[str, bytes]]:
    """Yield the events, a file each, and finally the conversation's state."""
    conversation = _ConversationWriter(outgoing)
    for number, event in enumerate(conversation.write_events()):
        id = str(event.get("id") or uuid5(NAMESPACE_OID, f"{outgoing.key}:{number}"))
        # Replace other characters, so that any source id makes a valid file name.
        named = id if _is_plain(id) else str(uuid5(NAMESPACE_OID, id))
        yield f"events/event-{number:05d}-{named}.json", _encode_json(event)
    states = conversation.states or {"base_state.json": conversation.make_state()}
    for name, state in states.items():
        yield name, _encode_json(state)


class _ConversationWriter:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.states: JsonDict = {}
        self.actions: dict[str, tuple[str, str]] = {}
        self.restorer = EntryRestorer()
        self.shown: dict[str, tuple[int, ...]] = {}
        """The events in view, each with the positions of its blocks."""
        self.prompted = False
        self.usages: list[JsonDict] = []

    def write_events(self) -> Iterator[JsonDict]:
        for part in group_own_entries(self.outgoing, FORMAT_NAME, with_refused=True):
            match part:
                case OutgoingEntry():
                    yield from self._restore_event(part)
                case OutgoingCompaction():
                    yield from self._write_prompt()
                    gone = forget_events(self.shown, part, self.outgoing)
                    yield self._build_condensation(part, gone)
                case OutgoingMessage():
                    yield from self._write_prompt()
                    for event, positions in self._build_events(part):
                        self.shown[event["id"]] = positions
                        yield event
                    self._count_usage(part)
        yield from self._write_prompt()

    def make_state(self) -> JsonDict:
        model = self.outgoing.model or "unknown"
        return {
            "id": str(_make_uuid(self.outgoing.key)),
            "agent": {"kind": "Agent", "llm": {"model": model, "usage_id": "agent"}, "tools": []},
            "workspace": {"kind": "LocalWorkspace", "working_dir": "workspace/project"},
            "max_iterations": 500,
            "stuck_detection": True,
            "execution_status": "idle",
            "confirmation_policy": {"kind": "NeverConfirm"},
            "stats": {"usage_to_metrics": {"agent": self._make_metrics(model)}},
        } | ({"title": self.outgoing.title} if self.outgoing.title else {})

    def _restore_event(self, entry: OutgoingEntry) -> Iterator[JsonDict]:
        if entry.remainder is not None:
            event = self.restorer.restore(entry)
        elif read_entry_type(entry) in STATE_FILE_NAMES:
            self.states[read_entry_type(entry) or ""] = json.loads(entry.raw or "null")
            return
        else:
            event = json.loads(entry.raw or "null")
        if not isinstance(event, dict):
            return
        self.prompted |= event.get("kind") == "SystemPromptEvent"
        id = str(event.get("id"))
        for said in entry.outgoing_blocks:
            if isinstance(said.block, ToolCall):
                self.actions[said.block.tool_call_id] = id, said.block.name
        if entry.remainder is not None:
            self.shown[id] = tuple(said.position for said in entry.outgoing_blocks)
        for forgotten in event.get("forgotten_event_ids") or []:
            self.shown.pop(str(forgotten), None)
        yield event

    def _write_prompt(self) -> Iterator[JsonDict]:
        outgoing = self.outgoing
        if not self.prompted and (outgoing.system_prompt is not None or outgoing.tools):
            yield self._build_system_event(outgoing.system_prompt or "", list(outgoing.tools))
        self.prompted = True

    def _count_usage(self, message: OutgoingMessage) -> None:
        call = message.call
        if call and call.usage:
            report = {"model": call.model or "", "response_id": call.call_id}
            self.usages.append(
                report | make_usage_report(call.usage) | {"cost": call.cost_usd or 0.0}
            )

    def _make_metrics(self, model: str) -> JsonDict:
        costs = [{"model": one["model"], "cost": one.pop("cost")} for one in self.usages]
        return {
            "model_name": model,
            "accumulated_cost": sum(one["cost"] for one in costs),
            "costs": costs,
            "response_latencies": [],
            "token_usages": self.usages,
        }

    def _build_events(self, message: OutgoingMessage) -> Iterator[PlacedEvent]:
        """Yield the events of a message: an action for each call, with the text before it."""
        if message.role is Role.TOOL_RESULT:
            for said in message.outgoing_blocks:
                yield self._build_observation(said)
            return
        response = self._response_id(message)
        pending: list[OutgoingBlock] = []
        for said in message.outgoing_blocks:
            pending.append(said)
            if isinstance(said.block, ToolCall):
                yield self._build_action(said.block, pending, response)
                pending = []
        if pending:
            yield self._build_message(message.role, pending, response)

    def _build_system_event(self, prompt: str, tools: list[Any]) -> JsonDict:
        return {
            "kind": "SystemPromptEvent",
            "id": self._make_id("system"),
            "timestamp": _local_time(self.outgoing.opened_at),
            "source": "agent",
            "system_prompt": _make_text(prompt),
            "tools": tools,
        }

    def _build_condensation(self, part: OutgoingCompaction, gone: list[str]) -> JsonDict:
        """Return a compaction whose summary follows the system prompt."""
        prompted = self.outgoing.system_prompt is not None or bool(self.outgoing.tools)
        return {
            "kind": "Condensation",
            "id": self._make_id(f"compacted:{part.boundary.after}:{part.time.isoformat()}"),
            "timestamp": _local_time(part.time),
            "source": "environment",
            "forgotten_event_ids": gone,
            "summary": part.summary.text if part.summary else None,
            "summary_offset": int(prompted),
            "llm_response_id": self._make_id(f"summary:{part.boundary.after}"),
        }

    def _build_message(
        self, role: Role, said: Sequence[OutgoingBlock], response: str
    ) -> PlacedEvent:
        blocks = [one.block for one in said]
        speaker = {Role.ASSISTANT: "agent", Role.USER: "user"}.get(role, "environment")
        body = {
            "role": "assistant" if role is Role.ASSISTANT else "user",
            "content": self._build_content(blocks),
        } | self._build_thoughts(blocks)
        event = self._build_event("MessageEvent", said[0], speaker) | {
            "llm_message": body,
            "activated_skills": [],
            "extended_content": [],
        }
        if role is Role.ASSISTANT:
            event["llm_response_id"] = response
        return event, _list_positions(said)

    def _build_action(
        self, call: ToolCall, said: Sequence[OutgoingBlock], response: str
    ) -> PlacedEvent:
        blocks = [one.block for one in said[:-1]]
        event = self._build_event("ActionEvent", said[-1], "agent")
        self.actions[call.tool_call_id] = event["id"], call.name
        return event | {
            "thought": self._build_content(blocks),
            **self._build_thoughts(blocks),
            # OpenHands leaves it empty if it does not know which tool was meant.
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
        }, _list_positions(said)

    def _build_observation(self, said: OutgoingBlock) -> PlacedEvent:
        result = said.block
        assert isinstance(result, ToolResult), "a message of a tool"
        action, tool = self.actions.get(result.tool_call_id, (self._make_id("lost"), "unknown"))
        parts = (Text(text=result.content),) if isinstance(result.content, str) else result.content
        content = [item for part in parts for item in self._build_part(part)]
        event = self._build_event("ObservationEvent", said, "environment") | {
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
        return event, _list_positions([said])

    def _build_content(self, blocks: Sequence[AnyBlock]) -> list[JsonDict]:
        content: list[JsonDict] = []
        for block in blocks:
            match block:
                case Block(kind=Kind.THINKING):
                    pass
                case Block(kind=Kind.IMAGE, media=Media() as media):
                    content.append(_make_image(media))
                case Block(kind=Kind.DOCUMENT):
                    self.outgoing.count_loss("documents")
                case Block() if block.text:
                    content.append(_make_text(make_marked_text(block)) | make_summary_mark(block))
                case Block():
                    if block.native:
                        self.outgoing.count_loss("items that only their provider understands")
        return content

    def _build_thoughts(self, blocks: Sequence[AnyBlock]) -> JsonDict:
        found: JsonDict = {}
        for block in blocks:
            if not isinstance(block, Block) or block.kind is not Kind.THINKING:
                continue
            native = block.native
            if native and native.provider == "anthropic":
                found.setdefault("thinking_blocks", []).append(json.loads(native.item))
            elif native and native.provider == "openai-responses":
                if "responses_reasoning_item" in found:
                    self.outgoing.count_loss("further reasoning items of one message")
                found.setdefault(
                    "responses_reasoning_item", _make_reasoning(json.loads(native.item))
                )
            elif block.text:
                before = found.get("reasoning_content")
                found["reasoning_content"] = f"{before}\n\n{block.text}" if before else block.text
        return found

    def _build_part(self, part: Text | Media | NativePart) -> Iterator[JsonDict]:
        match part:
            case Text():
                yield _make_text(part.text)
            case Media(type="image"):
                yield _make_image(part)
            case Media():
                self.outgoing.count_loss("documents in tool results")
            case NativePart():
                self.outgoing.count_loss(
                    "parts of tool results that only their provider understands"
                )

    def _build_event(self, kind: str, said: OutgoingBlock, source: str) -> JsonDict:
        return {
            "kind": kind,
            "id": self._make_id(f"#{said.position}"),
            "timestamp": format_local_time(said),
            "source": source,
        }

    def _response_id(self, message: OutgoingMessage) -> str:
        return (
            message.call.call_id
            if message.call
            else self._make_id(f"r{message.outgoing_blocks[0].position}")
        )

    def _make_id(self, what: str) -> str:
        return str(uuid5(NAMESPACE_OID, f"{self.outgoing.key}:{what}"))


def _make_uuid(key: str) -> UUID:
    try:
        return UUID(key)
    except ValueError:
        return uuid5(NAMESPACE_OID, key)


def _is_plain(id: str) -> bool:
    return len(id) >= 8 and set(id) <= set("0123456789abcdefABCDEF-")


def _encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
