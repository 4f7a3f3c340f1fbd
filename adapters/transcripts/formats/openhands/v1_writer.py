"""Writes a session as the folder of an OpenHands conversation."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from .....domain.blocks import ToolCall
from ..outgoing import OutgoingCompaction, OutgoingEntry, OutgoingMessage, OutgoingSession
from ..writing.own_entries import EntryRestorer, group_own_entries, read_entry_type
from . import v1_events
from .call_usage import make_usage_report
from .event_folder import STATE_FILE_NAMES
from .v1_reader import FORMAT_NAME

_EventObject = dict[str, Any]


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
        self.states: dict[str, Any] = {}
        self.made = v1_events.V1EventBuilder(outgoing)
        self.restorer = EntryRestorer()
        self.shown: dict[str, tuple[int, ...]] = {}
        """The events in view, each with the positions of its blocks."""
        self.prompted = False
        self.usages: list[dict[str, Any]] = []

    def write_events(self) -> Iterator[_EventObject]:
        for part in group_own_entries(self.outgoing, FORMAT_NAME, with_refused=True):
            match part:
                case OutgoingEntry():
                    yield from self._restore_event(part)
                case OutgoingCompaction():
                    yield from self._write_prompt()
                    yield self._make_condensation(part)
                case OutgoingMessage():
                    yield from self._write_prompt()
                    for event, positions in self.made.build_events(part):
                        self.shown[event["id"]] = positions
                        yield event
                    self._count_usage(part)
        yield from self._write_prompt()

    def make_state(self) -> dict[str, Any]:
        """Return the state of a conversation from another source."""
        model = self.outgoing.model or "unknown"
        return {
            "id": str(_make_uuid(self.outgoing.key)),
            "agent": {
                "kind": "Agent",
                "llm": {"model": model, "usage_id": "agent"},
                "tools": [],
            },
            "workspace": {"kind": "LocalWorkspace", "working_dir": "workspace/project"},
            "max_iterations": 500,
            "stuck_detection": True,
            "execution_status": "idle",
            "confirmation_policy": {"kind": "NeverConfirm"},
            "stats": {"usage_to_metrics": {"agent": self._make_metrics(model)}},
        } | ({"title": self.outgoing.title} if self.outgoing.title else {})

    def _restore_event(self, entry: OutgoingEntry) -> Iterator[_EventObject]:
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
                self.made.actions[said.block.tool_call_id] = id, said.block.name
        if entry.remainder is not None:
            self.shown[id] = tuple(said.position for said in entry.outgoing_blocks)
        for forgotten in event.get("forgotten_event_ids") or []:
            self.shown.pop(str(forgotten), None)
        yield event

    def _write_prompt(self) -> Iterator[_EventObject]:
        outgoing = self.outgoing
        if not self.prompted and (outgoing.system_prompt is not None or outgoing.tools):
            yield self.made.build_system_event(outgoing.system_prompt or "", list(outgoing.tools))
        self.prompted = True

    def _make_condensation(self, part: OutgoingCompaction) -> _EventObject:
        boundary = part.boundary
        gone = [
            id
            for id, positions in self.shown.items()
            if not any(position in boundary.kept for position in positions)
        ]
        for id in gone:
            del self.shown[id]
        if boundary.trims or boundary.replacements:
            count = len(boundary.trims) + len(boundary.replacements)
            self.outgoing.count_loss("blocks that are shown shortened", count)
        return self.made.build_condensation(part, gone)

    def _count_usage(self, message: OutgoingMessage) -> None:
        call = message.call
        if call and call.usage:
            report = {"model": call.model or "", "response_id": call.call_id}
            self.usages.append(
                report | make_usage_report(call.usage) | {"cost": call.cost_usd or 0.0}
            )

    def _make_metrics(self, model: str) -> dict[str, Any]:
        costs = [{"model": one["model"], "cost": one.pop("cost")} for one in self.usages]
        return {
            "model_name": model,
            "accumulated_cost": sum(one["cost"] for one in costs),
            "costs": costs,
            "response_latencies": [],
            "token_usages": self.usages,
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
