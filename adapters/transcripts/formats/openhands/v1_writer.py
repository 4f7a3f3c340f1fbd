"""Writes a session as the folder of an OpenHands conversation."""

import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from .....domain.blocks import AnyBlock, Block, Kind, Media, ToolCall, ToolResult
from .....domain.messages import Role
from ..content_items import make_answer_items, make_content_items
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
from .v1_reader import FORMAT_NAME, STATE_FILE_NAMES

_SOURCES = {Role.ASSISTANT: "agent", Role.USER: "user"}
"""Who speaks in an event; everything else comes from the environment."""


def write_folder(outgoing: OutgoingSession) -> Iterator[tuple[str, bytes]]:
    """Yield the events, a file each, and finally the conversation's state."""
    conversation = _ConversationWriter(outgoing, FORMAT_NAME)
    for number, event in enumerate(conversation.write_events()):
        id = str(event.get("id") or uuid5(NAMESPACE_OID, f"{outgoing.key}:{number}"))
        # Replace other characters, so that any source id makes a valid file name.
        named = id if _is_plain(id) else str(uuid5(NAMESPACE_OID, id))
        yield f"events/event-{number:05d}-{named}.json", _encode_json(event)
    states = conversation.states or {"base_state.json": conversation.make_state()}
    for name, state in states.items():
        yield name, _encode_json(state)


class _ConversationWriter(EventWriter):
    def __init__(self, outgoing: OutgoingSession, own: str) -> None:
        super().__init__(outgoing, own)
        self.states: JsonDict = {}
        self.actions: dict[str, tuple[str, str]] = {}
        """The event and the tool of each call."""
        self.usages: list[JsonDict] = []
        self.costs: list[JsonDict] = []

    def make_state(self) -> JsonDict:
        model = self.outgoing.model or "unknown"
        metrics = {
            "model_name": model,
            "accumulated_cost": sum(one["cost"] for one in self.costs),
            "costs": self.costs,
            "response_latencies": [],
            "token_usages": self.usages,
        }
        return {
            "id": str(_make_uuid(self.outgoing.key)),
            "agent": {"kind": "Agent", "llm": {"model": model, "usage_id": "agent"}, "tools": []},
            "workspace": {"kind": "LocalWorkspace", "working_dir": "workspace/project"},
            "max_iterations": 500,
            "stuck_detection": True,
            "execution_status": "idle",
            "confirmation_policy": {"kind": "NeverConfirm"},
            "stats": {"usage_to_metrics": {"agent": metrics}},
        } | ({"title": self.outgoing.title} if self.outgoing.title else {})

    def restore_event(self, entry: OutgoingEntry) -> JsonDict | None:
        event = self.restorer.restore(entry)
        name = read_entry_type(entry)
        if entry.remainder is None and name in STATE_FILE_NAMES:
            self.states[name] = event
            return None
        if not isinstance(event, dict):
            return None
        self.is_prompted |= event.get("kind") == "SystemPromptEvent"
        id = str(event.get("id"))
        for said in entry.outgoing_blocks:
            if isinstance(said.block, ToolCall):
                self.actions[said.block.tool_call_id] = id, said.block.name
        if entry.remainder is not None:
            self.shown[id] = entry.outgoing_blocks
        for forgotten in event.get("forgotten_event_ids") or []:
            self.shown.pop(str(forgotten), None)
        return event

    def _make_event(self, kind: str, seed: str, time: str, source: str, **more: Any) -> JsonDict:
        id = self._make_id(seed)
        return {"kind": kind, "id": id, "timestamp": time, "source": source, **more}

    def _make_block_event(
        self, kind: str, said: OutgoingBlock, source: str, **more: Any
    ) -> JsonDict:
        return self._make_event(kind, f"#{said.position}", format_origin_time(said), source, **more)

    def make_prompt(self, prompt: str, tools: list[Any], time: str) -> JsonDict:
        text = {"type": "text", "text": prompt}
        kind, source = "SystemPromptEvent", "agent"
        return self._make_event(kind, "system", time, source, system_prompt=text, tools=tools)

    def make_condensation(self, part: OutgoingCompaction, details: JsonDict) -> JsonDict:
        seed = f"compacted:{part.boundary.after}:{part.time.isoformat()}"
        time, response = format_local_time(part.time), f"summary:{part.boundary.after}"
        event = self._make_event("Condensation", seed, time, "environment", **details)
        return event | {"llm_response_id": self._make_id(response)}

    def make_events(self, message: OutgoingMessage) -> Iterator[EventOfBlocks]:
        """Yield the events of a message: an action for each call, with the text before it."""
        if message.role is Role.TOOL_RESULT:
            for said in message.outgoing_blocks:
                yield self._make_observation(said), [said]
            return
        call = message.call
        response = self._make_id(f"r{message.outgoing_blocks[0].position}")
        if call:
            response = call.call_id
        pending: list[OutgoingBlock] = []
        for said in message.outgoing_blocks:
            pending.append(said)
            if isinstance(said.block, ToolCall):
                yield self._make_action(said.block, pending, response), pending
                pending = []
        if pending:
            yield self._make_message(message.role, pending, response), pending
        if call and call.usage:
            report = {"model": call.model or "", "response_id": call.call_id}
            self.usages.append(report | make_usage_report(call.usage))
            self.costs.append({"model": call.model or "", "cost": call.cost_usd or 0.0})

    def _make_message(self, role: Role, said: Sequence[OutgoingBlock], response: str) -> JsonDict:
        blocks = [one.block for one in said]
        body = {
            "role": "assistant" if role is Role.ASSISTANT else "user",
            "content": make_content_items(blocks, self.outgoing, _make_image),
        }
        event = self._make_block_event(
            "MessageEvent",
            said[0],
            _SOURCES.get(role, "environment"),
            llm_message=body | self._make_thoughts(blocks),
            activated_skills=[],
            extended_content=[],
        )
        return event | ({"llm_response_id": response} if role is Role.ASSISTANT else {})

    def _make_action(
        self, call: ToolCall, said: Sequence[OutgoingBlock], response: str
    ) -> JsonDict:
        blocks = [one.block for one in said[:-1]]
        asked = {"id": call.tool_call_id, "name": call.name, "arguments": call.arguments}
        event = self._make_block_event(
            "ActionEvent",
            said[-1],
            "agent",
            thought=make_content_items(blocks, self.outgoing, _make_image),
            **self._make_thoughts(blocks),
            # OpenHands leaves it empty if it does not know which tool was meant.
            action=None,
            tool_name=call.name,
            tool_call_id=call.tool_call_id,
            tool_call=asked | {"origin": "completion"},
            llm_response_id=response,
            security_risk="UNKNOWN",
        )
        self.actions[call.tool_call_id] = event["id"], call.name
        return event

    def _make_observation(self, said: OutgoingBlock) -> JsonDict:
        result = said.block
        assert isinstance(result, ToolResult), "a message of a tool"
        action, tool = self.actions.get(result.tool_call_id, (self._make_id("lost"), "unknown"))
        return self._make_block_event(
            "ObservationEvent",
            said,
            "environment",
            tool_name=tool,
            tool_call_id=result.tool_call_id,
            observation={
                "kind": "MCPToolObservation",
                "content": make_answer_items(result, self.outgoing, _make_image),
                "is_error": result.is_error,
                "tool_name": tool,
            },
            action_id=action,
        )

    def _make_thoughts(self, blocks: Sequence[AnyBlock]) -> JsonDict:
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
                item = _make_reasoning(json.loads(native.item))
                found.setdefault("responses_reasoning_item", item)
            elif block.text:
                before = found.get("reasoning_content")
                found["reasoning_content"] = f"{before}\n\n{block.text}" if before else block.text
        return found

    def _make_id(self, what: str) -> str:
        return str(uuid5(NAMESPACE_OID, f"{self.outgoing.key}:{what}"))


def _make_image(media: Media) -> JsonDict:
    return {"type": "image", "image_urls": [make_media_address(media)]}


def _make_reasoning(item: JsonDict) -> JsonDict:
    summary = [one["text"] for one in item.get("summary") or [] if "text" in one]
    return {
        "id": item.get("id"),
        "summary": summary,
        "encrypted_content": item.get("encrypted_content"),
    }


def _make_uuid(key: str) -> UUID:
    try:
        return UUID(key)
    except ValueError:
        return uuid5(NAMESPACE_OID, key)


def _is_plain(id: str) -> bool:
    return len(id) >= 8 and set(id) <= set("0123456789abcdefABCDEF-")


def _encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
